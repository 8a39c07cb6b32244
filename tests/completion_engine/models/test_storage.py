"""The listed names in the store's folder are those that the store wrote, and no others."""

from __future__ import annotations

from pathlib import Path

from completion_engine.models import ModelStore
from completion_engine.models.storage import contents, discard, size_of


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_all_that_a_store_wrote_is_named(store: ModelStore, tiny_gguf: Path, tmp_path: Path) -> None:
    store.fetch("toy")
    store.ensure(str(tiny_gguf))
    others = tmp_path / "store" / "hub" / "models--a--b" / "x"
    others.parent.mkdir(parents=True)
    others.touch()
    for path in [*contents(store.root, {"toy": store.list()[0].spec})]:
        discard(path)
    assert files_in(store.root) == {others}


def test_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "root"
    for folder in ("local/x-0123456789ab/prepared", "qwen2.5-coder-0.5b/prepared"):
        (elsewhere / folder).mkdir(parents=True)
    root.mkdir()
    for name in ("local", "qwen2.5-coder-0.5b"):
        (root / name).symlink_to(elsewhere / name)
    assert [*contents(root)] == []


def test_what_another_process_has_just_moved_away_has_no_size(tmp_path: Path) -> None:
    assert size_of(tmp_path / "model.gguf.partial") == 0
