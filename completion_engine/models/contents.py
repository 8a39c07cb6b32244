"""The names that the store writes below its folder: a folder that a user named may hold other files, which
stay.

Owns all names, for counting and removal.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from completion_engine.models.catalogue import CATALOGUE, ModelSpec

_NAME = r"[A-Za-z0-9][\w.-]*"
_FROM_HUB = re.compile(f"{_NAME}--{_NAME}")
_FROM_FILE = re.compile(r".+-[0-9a-f]{12}")


def contents(root: Path, catalogue: Mapping[str, ModelSpec] = CATALOGUE) -> Iterator[Path]:
    """All of it, inner files before their folders; only the empty ones of shared folders."""
    for spec in catalogue.values():
        yield from model_contents(root, spec)
    for folder in _below(root / "local"):
        if _FROM_FILE.fullmatch(folder.name):
            yield from _made_in(folder)
    hub = [path for path in _below(root / "hub") if path.suffix in {".json", ".new"}]
    yield from (path for path in hub if _FROM_HUB.fullmatch(path.stem) and not path.is_dir())
    for path in _below(root / "locks"):
        if path.suffix == ".lock" and _is_lock(path.stem, catalogue):
            yield path
        elif _FROM_HUB.fullmatch(path.name) and path.is_dir():
            yield from _made_in(path)
    yield from (root / name for name in ("local", "hub", "locks") if _is_empty(root / name))


def model_contents(root: Path, spec: ModelSpec) -> Iterator[Path]:
    """The same of one model of the catalogue."""
    folder = root / spec.id
    yield from (path for path in _below(folder) if path.name.startswith(f"{spec.file_name}.partial"))
    if (file := folder / spec.file_name).is_file():
        yield file
    yield from _made_in(folder)


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder; links count for themselves, and what has gone is 0.

    Others may be at work there: names of files that are moved or removed a moment later may be found.
    """
    if not path.is_dir() or path.is_symlink():
        return _bytes_of(path)
    return sum(_bytes_of(Path(folder, name)) for folder, _, names in os.walk(path) for name in names)


def discard(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; a link alone. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _bytes_of(file: Path) -> int:
    try:
        return file.lstat().st_size
    except FileNotFoundError:
        return 0


def _made_in(folder: Path) -> Iterator[Path]:
    """The folders that preparing or downloading a model makes; the folder itself if it is empty."""
    for path in _below(folder):
        if path.is_dir() and (path.name == "prepared" or path.name.startswith("work-")):
            yield path
    if _is_empty(folder):
        yield folder


def _is_lock(name: str, catalogue: Mapping[str, ModelSpec]) -> bool:
    return name in catalogue or bool(_FROM_FILE.fullmatch(name) or _FROM_HUB.fullmatch(name))


def _below(folder: Path) -> list[Path]:
    """What lies in a folder; nothing where it is none, or a link to one."""
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())
