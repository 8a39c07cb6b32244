"""A damaged model folder is refused with advice, whatever is wrong with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from completion_engine.errors import DataError
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.tokenizer import load_tokenizer
from tests.stored_toy import write_stored_toy


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
