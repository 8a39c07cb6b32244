"""Model folders as people have them, in one or several files, and folders whose sizes or shapes are wrong."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from completion_engine.errors import DataError
from completion_engine.gpu.reference import reference_logits
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.tokenizer import load_tokenizer
from completion_engine.target_model.llama_family import (
    FamilyModel,
    is_of_family,
    read_family_config,
    rotary_tables,
)
from completion_engine.target_model.model_files import open_weights
from tests.completion_engine.cpu.passes import HeldWeights
from tests.stored_toy import write_stored_toy

LLAMA_3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
PLAIN = {"model_type": "qwen2", "hidden_act": "silu"}
Make = Callable[..., Any]


@pytest.fixture(scope="module")
def make() -> Make:
    """A random model of transformers with two layers."""

    def made(family: str = "qwen2", **options: Any) -> Any:
        from transformers import AutoConfig, AutoModelForCausalLM

        torch.manual_seed(1)
        config = AutoConfig.for_model(
            family, vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
            initializer_range=0.1, **options,
        )  # fmt: skip
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()

    return made


def logits_of(folder: Path, tokens: list[int]) -> torch.Tensor:
    """By what we read of the folder."""
    model = FamilyModel(read_family_config(folder), open_weights(folder, torch.float32))
    return reference_logits(model, tokens, torch.device("cpu"), 16, len(tokens))


@pytest.mark.parametrize(
    ("options", "left_out"),
    [
        ({}, ()),
        ({"tie_word_embeddings": True}, ()),
        ({"rope_parameters": LLAMA_3 | {"rope_theta": 1e4}}, ()),
        ({"family": "llama", "head_dim": 32}, ("head_dim", "layer_types", "rope_parameters", "rms_norm_eps")),
        ({"family": "mistral", "sliding_window": None, "head_dim": 16}, ("pad_token_id", "hidden_act")),
    ],
)
def test_a_folder_computes_what_transformers_makes_of_it(
    make: Make, tmp_path: Path, options: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    model = make(**options)
    model.save_pretrained(tmp_path, max_shard_size="100KB")
    path = tmp_path / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({k: v for k, v in config.items() if k not in left_out}), encoding="utf-8")
    assert (tmp_path / "model.safetensors.index.json").is_file()
    tokens = torch.randint(0, 300, (100,)).tolist()
    with torch.inference_mode():
        wanted = model(torch.tensor([tokens])).logits[0]
    torch.testing.assert_close(logits_of(tmp_path, tokens), wanted, rtol=1e-4, atol=1e-4)


UNSTRETCHED = {"rope_type": "default"}


@pytest.mark.parametrize(
    ("rope", "dtype", "most_off"),
    [
        (
            PLAIN,
            torch.float32,
            5e-5,
        ),  # the module's float32 powers and cosines depend on the machine's library
        (UNSTRETCHED, torch.bfloat16, 0.0),
        ({"rope_type": "linear", "factor": 2.0}, torch.float32, 0.0),
        ({"rope_type": "linear", "factor": 2.0}, torch.bfloat16, 0.0),
        (LLAMA_3, torch.float32, 0.0),
        (LLAMA_3, torch.bfloat16, 0.0),
    ],
)
def test_turns_are_the_modules(make: Make, rope: dict[str, Any], dtype: torch.dtype, most_off: float) -> None:
    model = make("llama", rope_parameters=rope | {"rope_theta": 5e5})
    cos, sin = model.model.rotary_emb(torch.empty(0, dtype=dtype), torch.arange(512)[None])
    signed = torch.cat([-sin[0, :, :8], sin[0, :, 8:]], dim=-1)
    found = rotary_tables(model.config.to_dict(), 16, 512, dtype)
    for table, wanted in zip(found, (cos[0], signed), strict=True):
        assert float((table[:, 0].double() - wanted.double()).abs().max()) <= most_off


@pytest.mark.parametrize(
    ("changes", "is_ours"),
    [
        ({}, True),
        ({"use_sliding_window": False, "sliding_window": 4096}, True),
        ({"use_sliding_window": True}, False),
        ({"use_sliding_window": True, "layer_types": ["full_attention"]}, True),
        ({"layer_types": ["full_attention", "sliding_attention"]}, False),
        ({"model_type": "mistral", "sliding_window": 4096}, False),
        ({"model_type": "gpt2"}, False),
        ({"hidden_act": "gelu"}, False),
        ({"quantization_config": {"quant_method": "awq"}}, False),
    ],
)
def test_only_what_the_kernels_compute_is_of_the_family(changes: dict[str, Any], is_ours: bool) -> None:
    assert is_of_family(PLAIN | changes) == is_ours


def test_a_silent_configuration_says_what_transformers_takes_for_granted(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    config = read_family_config(tmp_path)
    assert config["rms_norm_eps"] == 1e-6
    assert config["num_key_value_heads"] == config["num_attention_heads"] == 32


def test_weights_of_several_files_are_one_mapping(make: Make, tmp_path: Path) -> None:
    model = make()
    model.save_pretrained(tmp_path, max_shard_size="100KB")
    stored = open_weights(tmp_path, torch.bfloat16)
    assert set(stored) == set(model.state_dict())
    assert all(torch.equal(stored[name], weight.bfloat16()) for name, weight in model.state_dict().items())


@pytest.mark.parametrize(
    ("says_so", "has_head", "is_tied"), [(True, True, True), (False, False, True), (False, True, False)]
)
def test_a_head_may_be_the_embedding(
    make: Make, tmp_path: Path, says_so: bool, has_head: bool, is_tied: bool
) -> None:
    make().save_pretrained(tmp_path)
    config = {**read_family_config(tmp_path), "tie_word_embeddings": says_so}
    stored = open_weights(tmp_path, torch.float32)
    left = {name: stored[name] for name in stored if has_head or name != "lm_head.weight"}
    model = FamilyModel(config, HeldWeights(left))
    assert model.is_tied == is_tied
    assert torch.equal(model.head, model.embedding) == is_tied


def truncated(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 1000)


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def with_a_list(folder: Path) -> None:
    (folder / "config.json").write_text("[]", encoding="utf-8")


def with_more_layers(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}), encoding="utf-8")


@pytest.mark.parametrize(
    "damage", [truncated, without_weights, without_config, with_a_list, with_more_layers]
)
def test_damaged_folders_are_named_with_advice(
    make: Make, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    make().save_pretrained(tmp_path)
    damage(tmp_path)
    with pytest.raises(DataError, match=r"cannot be (loaded|built)") as caught:
        load_language_model(tmp_path, "cpu", "float32", 512)
    assert "models pull" in caught.value.advice


def test_weights_that_are_missing_are_not_made_up(make: Make, tmp_path: Path) -> None:
    make().save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    held = load_file(file)
    del held["model.layers.1.mlp.up_proj.weight"]
    save_file(held, file, {"format": "pt"})
    with pytest.raises(DataError, match="hold no model"):
        load_language_model(tmp_path, "cpu", "float32", 512)


def test_a_bug_of_ours_sends_nobody_to_fetch_the_model_again(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from completion_engine import transformers_decoder

    def fail(*_arguments: object) -> None:
        raise ValueError("rows do not fit")

    make().save_pretrained(tmp_path)
    monkeypatch.setattr(transformers_decoder, "TransformersDecoder", fail)
    with pytest.raises(ValueError, match="rows do not fit"):
        load_language_model(tmp_path, "cpu", "float32", 512)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_stored_toy(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(sound, tmp_path / "target"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_size", "64"), ("hidden_size", 0), ("hidden_size", 1 << 40), ("num_hidden_layers", 1.5),
        ("num_attention_heads", []), ("num_attention_heads", 3), ("num_key_value_heads", 3),
        ("vocab_size", -1), ("vocab_size", 10**30), ("max_position_embeddings", "many"),
        ("head_dim", 1 << 31), ("rms_norm_eps", None), ("rms_norm_eps", -1.0), ("rope_theta", 0),
        ("rope_theta", "x"), ("hidden_act", None), ("model_type", []), ("model_type", {}),
        ("hidden_act", ["silu"]), ("layer_types", 7), ("rope_theta", 10**30), ("rope_parameters", [1]),
        ("rope_parameters", {"rope_theta": 10**30}),
    ],
)  # fmt: skip
def test_a_size_that_is_none_is_refused(folder: Path, name: str, value: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, name: value}))
    with pytest.raises(DataError) as refused:
        load_language_model(folder, "cpu", "auto")
    assert refused.value.advice


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("model.embed_tokens.weight", (7, 64)), ("model.norm.weight", (65,)),
        ("model.layers.0.self_attn.q_proj.bias", (3,)), ("model.layers.0.mlp.down_proj.weight", (64, 7)),
        ("model.layers.0.self_attn.k_proj.weight", (1, 1)),
        ("model.layers.0.self_attn.q_proj.weight", (4, 64)),
    ],
)  # fmt: skip
def test_a_weight_of_another_shape_is_refused(folder: Path, name: str, shape: tuple[int, ...]) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, name: torch.zeros(shape, dtype=torch.bfloat16)}, folder / "model.safetensors")
    with pytest.raises(DataError) as refused:
        load_language_model(folder, "cpu", "auto")
    assert refused.value.advice


@pytest.mark.parametrize(
    "named", [{}, {"weight_map": {"a": "../model.safetensors"}}, {"weight_map": {"a": 7}}, []]
)
def test_an_index_names_files_beside_it_alone(folder: Path, named: Any) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps(named))
    with pytest.raises(DataError):
        load_language_model(folder, "cpu", "auto")


@pytest.mark.parametrize("end", [[["x"]], {"a": 1}, "x", 1.5])
def test_odd_ends_of_text_are_ignored(folder: Path, end: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": end}))
    assert load_tokenizer(folder).end_ids == load_tokenizer(folder).end_ids - {7}


def test_a_token_with_an_endless_number_is_refused(folder: Path) -> None:
    """Tables are made of as many entries as the largest number says."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["far"] = 1 << 31
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(DataError):
        load_tokenizer(folder)
