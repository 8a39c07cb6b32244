"""A folder with the files of a commit.

Owns what is written to the disk. A tree is hostile: links, submodules and paths that leave the folder are
left out, and the number and size of the files are bounded.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsp_server.history.git_objects import GitObjects, TreeFile

_MAX_FILES = 50_000
_MAX_FILE_BYTES = 1024 * 1024  # larger files are not indexed
_MAX_TOTAL_BYTES = 512 * 1024 * 1024
_MAX_PART_BYTES = 200
_MAX_PATH_BYTES = 1000
_RESERVED_NAMES = frozenset(
    {"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))}
)


def is_safe_path(path: str) -> bool:
    """Whether a path of a tree stays in its folder, can be written on this system, and does not belong to
    git.
    """
    return len(os.fsencode(path)) <= _MAX_PATH_BYTES and all(map(_is_safe_part, path.split("/")))


def _is_safe_part(part: str) -> bool:
    if part in {"", ".", ".."} or part.lower() == ".git" or len(os.fsencode(part)) > _MAX_PART_BYTES:
        return False
    if any(character < " " or "\ud800" <= character <= "\udfff" for character in part):
        return False
    if sys.platform != "win32":
        return True
    is_plain = not set(part) & set('<>:"|?*\\') and part[-1] not in ". "
    return is_plain and part.partition(".")[0].lower() not in _RESERVED_NAMES


@dataclass(slots=True)
class FilesOnDisk:
    """A folder that holds the files of one commit. `blobs` are those on the disk, by path."""

    git: GitObjects
    folder: Path
    blobs: dict[str, str] = field(default_factory=dict)

    def become(self, commit: str) -> int:
        """Make the folder hold the files of `commit`; returns how many are left out.

        Raises SlipstreamError when git cannot read the commit, OSError when the disk is full.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        files, num_left_out = self.git.files(commit)
        wanted = {file.path: file.blob for file in _within_bounds(files)}
        for path in [path for path, blob in self.blobs.items() if wanted.get(path) != blob]:
            self._remove(self.folder / path)
            del self.blobs[path]
        with self.git.blob_reader() as reader:
            for path in wanted.keys() - self.blobs.keys():
                data = reader.read(wanted[path], _MAX_FILE_BYTES)
                if data is not None and _write(self.folder / path, data):
                    self.blobs[path] = wanted[path]
        return num_left_out + len(files) - len(self.blobs)

    def save(self, path: str, text: str) -> dict[str, Any]:
        """Write a file as its author saved it; returns the protocol's event of it."""
        file = self.folder / path
        for other in [other for other in self.blobs if _is_in_the_way(other, path)]:
            self._remove(self.folder / other)
            del self.blobs[other]
        is_new = not file.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        self.blobs[path] = ""
        return {"uri": file.as_uri(), "type": 1 if is_new else 2}

    def _remove(self, file: Path) -> None:
        """Remove a file and the folders that are empty without it: a file may get the name of one."""
        file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the first one with another file ends it
            for folder in file.relative_to(self.folder).parents[:-1]:
                (self.folder / folder).rmdir()


def _is_in_the_way(other: str, path: str) -> bool:
    """Whether a file at `other` keeps one at `path` from being written: one is the other's folder."""
    return other.startswith(f"{path}/") or path.startswith(f"{other}/")


def _within_bounds(files: Sequence[TreeFile]) -> Iterator[TreeFile]:
    """The files that may be written: safe paths, not too large, and not too many."""
    total = 0
    for file in files[:_MAX_FILES]:
        if file.num_bytes <= _MAX_FILE_BYTES and is_safe_path(file.path):
            total += file.num_bytes
            if total > _MAX_TOTAL_BYTES:
                return
            yield file


def _write(path: Path, data: bytes) -> bool:
    """Write a new file; False where another path of the tree is in the way, on systems that ignore case."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)
    except (FileExistsError, NotADirectoryError):
        return False
    return True
