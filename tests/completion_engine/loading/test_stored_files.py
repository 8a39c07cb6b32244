"""Damaged files are found and made anew once, and a damaged drafter is left out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from completion_engine import load_engine as loading
from completion_engine.compile_kernels import DRAFTER, TARGET, write_toy_model
from completion_engine.config import EngineConfig
from completion_engine.cpu import packed_file
from completion_engine.cpu.linear import can_quantise
from completion_engine.cpu.packed_file import packed_folder
from completion_engine.drafting.distilled import DrafterFiles
from completion_engine.engine import CompletionEngine
from completion_engine.errors import DataError
from completion_engine.load_engine import load_engine
from completion_engine.loading import drafters
from completion_engine.models import ModelStore
from completion_engine.target_model.model_files import weight_files

needs_bytes = pytest.mark.skipif(
    not can_quantise(torch.device("cpu")), reason="this machine does not multiply bytes fast"
)


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toy target whose packed weights lie in a cache of its own."""
    monkeypatch.setattr(packed_file, "user_cache_dir", lambda *_, **__: str(tmp_path / "cache"))
    monkeypatch.setattr(packed_file, "_WORTH_BYTES", 0)
    write_toy_model(tmp_path)
    return tmp_path / TARGET


def load(target: Path) -> CompletionEngine:
    return load_engine(EngineConfig(str(target), (), device="cpu", dtype="int8"), warms_up=False)


def zero_the_end(file: Path, num_bytes: int) -> None:
    content = file.read_bytes()
    file.unlink()  # a loaded engine may have it mapped
    file.write_bytes(content[:-num_bytes] + bytes(num_bytes))


@needs_bytes
def test_a_page_of_zeros_is_found_and_made_anew_by_the_next_load(target: Path) -> None:
    load(target)
    (packed,) = packed_folder(weight_files(target)).glob("*.safetensors")
    whole = packed.read_bytes()
    zero_the_end(packed, 4096)
    assert packed.read_bytes() != whole
    load(target)
    assert packed.read_bytes() == whole


@pytest.mark.parametrize(("is_damaged", "num_loads"), [(True, 2), (False, 1)])
def test_damaged_files_are_made_anew_once(
    monkeypatch: pytest.MonkeyPatch, *, is_damaged: bool, num_loads: int
) -> None:
    """A load that fails for its files is tried again if some of them did not match their checksums."""
    loaded: list[str] = []

    def fail(folder: Path, *_: object, **__: object) -> CompletionEngine:
        loaded.append(folder.name)
        raise DataError("The model is damaged.")

    monkeypatch.setattr(loading, "load_engine_from", fail)
    monkeypatch.setattr(ModelStore, "ensure", lambda *_: Path("model"))
    monkeypatch.setattr(ModelStore, "discard_damaged", lambda *_: is_damaged)
    with pytest.raises(DataError):
        load_engine(EngineConfig("model"))
    assert loaded == ["model"] * num_loads


@needs_bytes
def test_a_damaged_shipped_drafter_is_left_out_and_named(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = target.with_name(DRAFTER)
    monkeypatch.setattr(drafters, "trained_folder", lambda _: folder)
    config = EngineConfig(str(target), ("neural",), device="cpu", dtype="int8")
    assert "neural" in load_engine(config, warms_up=False).drafters
    zero_the_end(folder / "drafter.safetensors", 64)
    engine = load_engine(config, warms_up=False)
    assert "neural" not in engine.drafters
    assert "checksum of drafter.safetensors does not match" in engine.describe()["backend_reason"]


def test_the_drafters_that_ship_match_their_checksums() -> None:
    folders = [folder for folder in drafters._TRAINED.iterdir() if folder.is_dir()]
    assert folders
    for folder in folders:
        assert '"checksum"' in (folder / "config.json").read_text("utf-8")
        DrafterFiles.read(folder)


def test_a_copy_of_a_model_has_packed_weights_of_its_own(target: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(target, tmp_path / "copy" / "target"))
    shutil.copy(target.parent / "weights.bin", copy.parent)
    assert packed_folder(weight_files(copy)) != packed_folder(weight_files(target))
