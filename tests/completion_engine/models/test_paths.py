"""The meaning of a name never depends on the content of the working folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from completion_engine.config import EngineConfig
from completion_engine.drafting.distilled import WEIGHTS
from completion_engine.errors import MachineError, SlipstreamError, UserError
from completion_engine.loading.drafters import build_drafters, trained_folder
from completion_engine.models import ModelStore
from completion_engine.models.catalogue import path_of
from completion_engine.target_model.language_model import LanguageModel

IDS = ("Qwen/Planted", "planted", "deep/er/planted", "planted.gguf", "Qwen/planted.gguf", "a~b/c", "C/d")


@pytest.fixture
def repository(tmp_path: Path, tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a foreign repository, with a model under each of `IDS` and a trained drafter."""
    folder = tmp_path / "repository"
    for name in IDS:
        shutil.copytree(tiny_model_dir, folder / name)
    (folder / "Qwen" / "drafter").mkdir()
    (folder / "Qwen" / "drafter" / WEIGHTS).write_bytes(b"planted")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("name", IDS)
def test_a_folder_named_like_an_id_is_not_taken_for_it(name: str, store: ModelStore) -> None:
    with pytest.raises((UserError, MachineError)) as raised:
        store.ensure(name)
    assert "./" in raised.value.advice, "whoever means the folder learns how to say so"


@pytest.mark.parametrize("name", ["./Qwen/Planted", "../repository/Qwen/Planted", "./planted"])
def test_what_looks_like_a_path_is_one(name: str, repository: Path, store: ModelStore) -> None:
    folder = store.ensure(name)
    assert folder.is_absolute()
    assert folder.samefile(repository / name)


@pytest.mark.usefixtures("repository")
def test_a_drafter_named_like_an_id_is_not_looked_for_here(target: LanguageModel) -> None:
    for name in ("Qwen/drafter", "Qwen/Planted", "./Qwen/Planted", "./absent"):  # the third is a model's
        config = EngineConfig("tiny", drafters=("neural",), draft_model=name)
        with pytest.raises(UserError, match="is not the path"):
            build_drafters(config, target)
    config = EngineConfig("tiny", drafters=("neural",), draft_model="./Qwen/drafter")
    with pytest.raises(SlipstreamError) as raised:
        build_drafters(config, target)
    assert raised.value.message.startswith(f"The drafter in {Path.cwd()}/Qwen/drafter cannot be read")


def test_only_an_id_has_a_drafter_that_comes_with_the_package(repository: Path) -> None:
    assert trained_folder("qwen2.5-coder-0.5b") is not None
    for target in (str(repository / "Qwen" / "drafter"), "../drafters/qwen2.5-coder-0.5b", "Qwen/drafter"):
        assert trained_folder(target) is None


@pytest.mark.parametrize(
    ("name", "is_path"),
    [
        ("/models/x", True),
        ("~/models/x", True),
        ("./x", True),
        ("../x.gguf", True),
        (".", True),
        *((name, False) for name in IDS),
    ],
)
def test_a_path_is_told_by_its_looks(name: str, is_path: bool) -> None:
    found = path_of(name)
    assert (found is not None) == is_path
    assert found is None or found.is_absolute()


def test_the_home_of_an_unknown_user_is_named() -> None:
    with pytest.raises(UserError, match="names a user that does not exist"):
        path_of("~nobody-of-that-name/model")
