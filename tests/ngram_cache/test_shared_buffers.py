"""Which open buffers may be drafted from in other documents: none that the rules leave out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ngram_cache.indexing import Indexer
from ngram_cache.repository import RepositoryOptions


@pytest.mark.parametrize(
    ("name", "is_shared"),
    [("a.py", True), ("deep/b.py", True), ("ignored.py", False), ("excluded/c.py", False), (".env", False)],
)
def test_what_is_left_out_is_not_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, is_shared: bool
) -> None:
    monkeypatch.setenv("SLIPSTREAM_INDEX_DIR", str(tmp_path / "saved"))
    root = tmp_path / "repository"
    root.mkdir()
    (root / ".gitignore").write_text("ignored.py\n")
    options = RepositoryOptions(exclude=("excluded/",))
    indexer = Indexer(root, lambda texts: [list(text.encode()) for text in texts], "bytes", options)
    assert not indexer.is_shared(root / name)
    indexer.set_overlay(root / name, "x = 1\n")
    assert indexer.is_shared(root / name) is is_shared
    indexer.drop_overlay(root / name)
    assert not indexer.is_shared(root / name)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that the disk is asked about."""
    asked: list[str] = []
    for name in ("stat", "lstat", "readlink", "open", "scandir"):
        original = getattr(os, name)

        def noted(path: Any, *arguments: Any, original: Any = original, **named: Any) -> Any:
            asked.append(str(path))
            return original(path, *arguments, **named)

        monkeypatch.setattr(os, name, noted)
    return asked


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
@pytest.mark.parametrize("folder", ["repository", "link"])
@pytest.mark.parametrize("name", ["a.py", "deep/b.py", "../elsewhere/c.py", "linked/d.py"])
def test_who_asks_whether_a_buffer_is_shared_asks_no_disk(
    tmp_path: Path, asked: list[str], index_folder: Path, folder: str, name: str
) -> None:
    (tmp_path / "repository").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "repository")
    (tmp_path / "repository/linked").symlink_to(tmp_path / "outside")
    root = tmp_path / folder
    indexer = Indexer(root, lambda texts: [list(text.encode()) for text in texts], "bytes")
    indexer.set_overlay(root / name, "x = 1\n")
    assert asked
    asked.clear()
    assert indexer.is_shared(root / name) is (name in {"a.py", "deep/b.py"})
    assert asked == []
