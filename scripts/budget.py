"""Caps on the size of the tree, checked with the locks: python -m scripts.check

A cap only goes down. A commit that raises one says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cap:
    """The most lines and files of Python in a folder, without its subfolders `but`."""

    folder: str
    num_lines: int
    num_files: int
    but: tuple[str, ...] = ()


SHIPPED = ("lsp_server", "completion_engine", "ngram_cache")
CAPS = (
    Cap("lsp_server", 14_522, 88),
    Cap("completion_engine", 26_119, 158),
    Cap("ngram_cache", 4_834, 26),
    Cap("tests", 55_186, 400, but=("benchmarks",)),
    Cap("tests/benchmarks", 15_495, 134),
    Cap("scripts", 3_774, 29),
)
WHOLE = Cap(" and ".join(SHIPPED), 45_475, 272)


def find_overruns(root: Path, caps: tuple[Cap, ...] = CAPS, whole: Cap = WHOLE) -> Iterator[str]:
    """Yield a sentence for each cap that the tree in `root` exceeds."""
    sizes = {cap.folder: _size_of(root, cap) for cap in caps}
    for cap in caps:
        yield from _overrun(cap, *sizes[cap.folder])
    shipped = [sizes[name] for name in SHIPPED if name in sizes]
    yield from _overrun(whole, sum(lines for lines, _ in shipped), sum(files for _, files in shipped))


def _size_of(root: Path, cap: Cap) -> tuple[int, int]:
    """Return the lines and files of a folder."""
    top = root / cap.folder
    left_out = {top / name for name in cap.but}
    files = [path for path in top.rglob("*.py") if not left_out & set(path.parents)]
    return sum(path.read_bytes().count(b"\n") for path in files), len(files)


def _overrun(cap: Cap, num_lines: int, num_files: int) -> Iterator[str]:
    for number, most, what in ((num_lines, cap.num_lines, "lines"), (num_files, cap.num_files, "files")):
        if number > most:
            yield f"{cap.folder} has {number:,} {what} of Python; the cap is {most:,}."
