"""Which open buffers may be drafted from in other documents: none that the rules leave out."""

from __future__ import annotations

from pathlib import Path

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
