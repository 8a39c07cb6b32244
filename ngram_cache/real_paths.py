"""The real path of a file or folder: one path, however it is spelled.

Links are followed, bind mounts are undone (Linux), and names get the case that the disk has. Reads the disk,
so it may wait.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from ngram_cache.file_names import name_in

# No system opens a longer path, and searching it would take quadratic time.
MAX_PATH_CHARS = 4096

MAX_MOUNT_BYTES = 1 << 20
MAX_ENTRIES = 20_000  # entries that are searched for the spelling of a name in its folder

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One row of the mount table: `root`, a folder of a device, appears at `point`."""

    device: str
    root: PurePosixPath
    point: PurePosixPath


def real_path(path: Path) -> Path:
    """Return the real path of the file at `path`; for a missing file, that of its folder with its name.

    Raises OSError for a path that is too long.
    """
    if len(str(path)) > MAX_PATH_CHARS:
        raise OSError(f"a path of more than {MAX_PATH_CHARS} characters")
    real = Path(os.path.realpath(path))  # pathlib's own raises for a link to itself
    if sys.platform == "linux":
        real = next(filter(lambda other: _is_same(real, other), other_paths(real, read_mounts())), real)
    return real if sys.platform == "win32" else _in_own_letters(real)


def read_mounts() -> list[Mount]:
    """Return the mounts of this process in the order of mounting; empty if the system lists none."""
    try:
        with _MOUNTS.open("rb") as file:
            data = file.read(MAX_MOUNT_BYTES)
    except OSError:
        return []
    return list(parse_mounts(data))


def parse_mounts(data: bytes) -> Iterator[Mount]:
    """Yield the rows of a mount table, without damaged ones."""
    for row in data.split(b"\n"):
        fields = row.split(b" ")
        if len(fields) > 4:
            root, point = (PurePosixPath(os.fsdecode(_ESCAPED.sub(_unescaped, name))) for name in fields[3:5])
            if root.is_absolute() and point.is_absolute():
                yield Mount(os.fsdecode(fields[2]), root, point)


def other_paths(path: Path, mounts: list[Mount]) -> Iterator[Path]:
    """Yield the paths at which other mounts show the file at `path`, those of the widest view first.

    Stops at `path` itself in that order.
    """
    holding = [mount for mount in mounts if name_in(mount.point, PurePosixPath(path)) is not None]
    if not holding:
        return
    # The last mount at a point hides those before it.
    mount = max(reversed(holding), key=lambda found: len(found.point.parts))
    inner = mount.root / (name_in(mount.point, PurePosixPath(path)) or "")
    for other in sorted(mounts, key=lambda found: len(found.root.parts)):
        name = name_in(other.root, inner) if other.device == mount.device else None
        if name is not None:
            found = Path(other.point / name)
            if found == path:
                return
            yield found


def _unescaped(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8) & 0xFF])


def _is_same(path: Path, other: Path) -> bool:
    """Return whether both paths lead to one file; for a missing file, whether their folders are the same."""
    try:
        if path.exists():
            return path.samefile(other)
        return path.name == other.name and path.parent.samefile(other.parent)
    except (OSError, ValueError):
        return False


def _in_own_letters(path: Path) -> Path:
    """Return `path` with each name spelled as its folder lists it, if the folder ignores case."""
    own = Path(path.anchor)
    for name in path.parts[1:]:
        own /= _listed_name(own, name)
    return own


def _listed_name(folder: Path, name: str) -> str:
    swapped = name.swapcase()
    try:
        status = os.lstat(folder / name)
        if name.isascii() and (swapped == name or not os.path.samestat(status, os.lstat(folder / swapped))):
            return name
        with os.scandir(folder) as entries:
            listed = [entry.name for entry in islice(entries, MAX_ENTRIES) if entry.inode() == status.st_ino]
    except (OSError, ValueError):
        return name
    return own_name(name, listed)


def own_name(name: str, listed: list[str]) -> str:
    """Return the spelling of `name` in its folder, out of the `listed` names."""
    folded = [other for other in listed if other.casefold() == name.casefold()]
    return name if name in listed else next(iter([*folded, *listed]), name)
