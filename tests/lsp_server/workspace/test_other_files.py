"""Files that are not open are found by a name in them, within bounds, and only where the rules allow it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.workspace import folder_indexes
from lsp_server.workspace.folder_indexes import MAX_FILES, OtherFiles
from ngram_cache import NgramIndex
from ngram_cache.overlays import TokenSource
from ngram_cache.repository import DEFAULT_OPTIONS

TEXT = "from net import fetch\n"


def encode_many(texts: list[str]) -> list[list[int]]:
    return [list(text.encode()) for text in texts]


def files(root: Path, *names: str, near: str = "net.py", opened: frozenset[str] = frozenset()) -> OtherFiles:
    """The index of these files, which hold the name."""
    for name in names:
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_text(TEXT)
    index = NgramIndex([(name, list(TEXT.encode())) for name in names])
    return OtherFiles(root, DEFAULT_OPTIONS, index, TokenSource("bytes", encode_many), opened, near)


def test_a_file_is_read_as_it_is_now(tmp_path: Path) -> None:
    found = files(tmp_path, "a.py", "b.py")
    (tmp_path / "a.py").write_text("import os\n\nfetch()\n")
    (tmp_path / "b.py").write_text("nothing\n")
    (document,) = found.holding(["fetch"])
    assert document.document == (tmp_path / "a.py").as_uri()
    assert (document.path, document.language) == ("a.py", "python")
    assert document.lines == ("import os", "", "fetch()", "")
    assert list(found.holding(["other"])) == []


def test_open_excluded_missing_and_large_files_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_indexes, "MAX_BYTES", 100)
    names = ("a.py", "ignored.py", "gone.py", "large.py", "linked.py", "open.py")
    found = files(tmp_path, *names, opened=frozenset({"open.py"}))
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "large.py").write_text(TEXT * 9)
    (tmp_path / "linked.py").unlink()
    (tmp_path / "linked.py").symlink_to(tmp_path / "a.py")
    assert [document.path for document in found.holding(["fetch"])] == ["a.py"]


def test_few_files_are_read_and_the_nearest_ones(tmp_path: Path) -> None:
    names = [f"far/{number}.py" for number in range(9)]
    found = files(tmp_path, *names, "b/c/near.py", "b/d.py", near="b/c/net.py")
    read = [document.path for document in found.holding(["fetch"])]
    assert len(read) == MAX_FILES
    assert read[:3] == ["b/c/near.py", "b/d.py", "far/0.py"]


def test_files_of_the_modules_come_first(tmp_path: Path) -> None:
    names = [f"near/{number}.py" for number in range(9)]
    found = files(tmp_path, *names, "far/models.py", "far/schema/a.py", near="near/net.py")
    read = [document.path for document in found.holding(["fetch"], ["models", "schema"])]
    assert read[:3] == ["far/models.py", "far/schema/a.py", "near/0.py"]
