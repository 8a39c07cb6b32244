"""Finds which file a text is part of, by its lines, because completion requests over HTTP carry no path."""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ngram_cache.file_names import is_secret_path
from ngram_cache.repository import Repository, RepositoryOptions, SkippedFileError

# Shorter lines, such as `else:`, are in many files.
MIN_LINE_CHARS = 8
# A text with fewer lines than this is not found without a file name.
MIN_LINES = 3
# The user edits the text, so that some of its lines are in no file.
MIN_SHARE = 0.6
MAX_TOTAL_LINES = 2_000_000
MAX_WALKED_FILES = 100_000
MAX_SECRET_BYTES = 64 * 1024


def significant_lines(text: str) -> frozenset[int]:
    """Return the hashes of the lines that tell a file from others."""
    stripped = (line.strip() for line in text.split("\n"))
    return frozenset(hash(line) for line in stripped if len(line) >= MIN_LINE_CHARS)


def share_of(lines: frozenset[int], others: frozenset[int]) -> float:
    """Return the share of `lines` that `others` contain."""
    return len(lines & others) / len(lines) if lines else 0.0


@dataclass(frozen=True, slots=True)
class FoundByLines:
    """A file, and the share of a text's lines that it contains."""

    path: Path
    share: float


class LineIndex:
    """The lines of the files of some folders. Immutable once built."""

    def __init__(self, files: Iterable[tuple[Path, str]] = ()) -> None:
        hashes, owners = array("q"), array("i")
        self._paths: list[Path] = []
        for path, text in files:
            lines = significant_lines(text)
            hashes.extend(lines)
            owners.extend([len(self._paths)] * len(lines))
            self._paths.append(path)
            if len(hashes) > MAX_TOTAL_LINES:
                break
        found: np.ndarray[Any, Any] = np.frombuffer(hashes, dtype=np.int64)
        order = np.argsort(found, kind="stable")
        self._hashes = found[order]
        self._owners = np.frombuffer(owners, dtype=np.int32)[order]

    def find(self, lines: frozenset[int], file_names: Sequence[str] = ()) -> FoundByLines | None:
        """Return the file with most of these lines; among equal ones, the one that a client named.

        None if no file has enough of them, or if several have as many and none of them was named.
        """
        if not lines or not self._paths:
            return None
        wanted = np.fromiter(lines, dtype=np.int64, count=len(lines))
        first, end = (np.searchsorted(self._hashes, wanted, side=side) for side in ("left", "right"))
        owners = [self._owners[low:high] for low, high in zip(first, end, strict=True)]
        counts = np.bincount(np.concatenate(owners), minlength=len(self._paths))
        num_best = int(counts.max())
        best = [self._paths[number] for number in np.flatnonzero(counts == num_best)]
        named = [path for path in best if any(_names(name, path) for name in file_names)]
        is_certain = len(lines) >= MIN_LINES or is_secret_path(best[0].name)
        enough = named or (best if is_certain else [])
        if len(enough) != 1 or num_best < MIN_SHARE * len(lines):
            return None
        return FoundByLines(enough[0], num_best / len(lines))


def _names(name: str, path: Path) -> bool:
    """Return whether a client's file name, absolute or relative to any folder, names a file."""
    parts = Path(name.replace("\\", "/")).parts
    return bool(parts) and path.parts[-len(parts) :] == parts


def read_files(folders: Mapping[Path, RepositoryOptions]) -> Iterator[tuple[Path, str]]:
    """Yield the files of folders that may be indexed, and those with a secret's name, with their texts."""
    for folder, options in folders.items():
        yield from _read_secret_files(folder)
        repository = Repository(folder, options)
        for file in repository.walk().files:
            try:
                yield repository.root / file.path, repository.read(file)
            except SkippedFileError:
                continue


def _read_secret_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield files that the language server refuses by their names: found, they are refused here too."""
    names = ((parent, name) for parent, _, files in os.walk(folder) for name in files)
    for parent, name in islice(names, MAX_WALKED_FILES):
        path = Path(parent, name)
        if is_secret_path(path.relative_to(folder).as_posix()) and path.is_file():
            with contextlib.suppress(OSError), path.open("rb") as file:
                yield path, file.read(MAX_SECRET_BYTES).decode("utf-8", "replace")
