"""Copies of arrays in huge pages are equal; without huge pages the arrays stay where they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from completion_engine.cpu import packed_file
from completion_engine.cpu.packed_file import in_huge_pages

ARRAYS = (
    np.arange(7 * 5 * 3, dtype=np.uint8).reshape(7, 5, 3),
    np.linspace(-1, 1, 37, dtype=np.float32),
    np.zeros((0, 4), np.float32),
    np.arange(6, dtype=np.int64),
)


def switch_at(folder: Path, text: str) -> Path:
    """The file in which a system states its policy for huge pages."""
    path = folder / "enabled"
    path.write_text(text)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are used on Linux")
@pytest.mark.parametrize("text", ["always [madvise] never\n", "[always] madvise never\n"])
def test_copies_are_equal_and_begin_at_cache_lines(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_file, "_SWITCH", switch_at(tmp_path, text))
    copies = in_huge_pages(ARRAYS)
    for array, copy in zip(ARRAYS, copies, strict=True):
        assert not np.shares_memory(array, copy)
        assert (copy.dtype, copy.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(copy, array)
        assert copy.ctypes.data % 64 == 0 or not copy.size


@pytest.mark.parametrize("text", ["always madvise [never]\n", None])
def test_a_system_without_huge_pages_keeps_the_arrays(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = switch_at(tmp_path, text) if text else tmp_path / "missing"
    monkeypatch.setattr(packed_file, "_SWITCH", path)
    assert all(kept is array for kept, array in zip(in_huge_pages(ARRAYS), ARRAYS, strict=True))


def test_without_memory_for_copies_the_arrays_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(packed_file, "_SWITCH", switch_at(tmp_path, "[always] madvise never\n"))
    monkeypatch.setattr(packed_file, "private_pages", refuse)
    assert all(kept is array for kept, array in zip(in_huge_pages(ARRAYS), ARRAYS, strict=True))
