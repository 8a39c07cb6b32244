"""The folder of compiled kernels, whether they are safe to load, and whether all of them exist.

numba stores pickles and machine code: a user who can write them runs code as this user. So they lie in
folders that belong to this user alone. The last folder's name follows from the kernels' sources, so that an
update that does not change them compiles nothing. Its content is for one processor, one compiler and one
interpreter, and so is the mark that nothing is missing. Imports nothing heavy.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from platformdirs import user_cache_dir

_SOURCES = Path(__file__).parent
_NAME = re.compile("[0-9a-f]{16}")
_DAYS_UNUSED = 60
_PRIVATE = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class UnsafeError(OSError):
    """Others may have put something there; the message says where, and why."""


@dataclass(frozen=True, slots=True)
class StorageProblem:
    """Why kernels are neither stored nor loaded, and what to do about it."""

    found: str
    advice: str


def folder_for(sources: Iterable[Path]) -> Path:
    """Return the folder of kernels made of these files.

    numba itself checks a kernel's own file only, and would keep code that it inlined from another.
    """
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sorted(sources)))
    return Path(user_cache_dir("slipstream", appauthor=False)) / "kernels" / digest.hexdigest()[:16]


KERNEL_FOLDER = folder_for(_SOURCES.glob("*.py"))


def storage_problem() -> StorageProblem | None:
    """Why the kernels' folder cannot be used; None where it is this user's alone. Makes what is missing."""
    *above, own = KERNEL_FOLDER.parents[1], KERNEL_FOLDER.parent, KERNEL_FOLDER
    try:
        for folder in above:
            _take_from_others(folder)
        for folder in (*above, own):
            make_private(folder)
    except UnsafeError as error:
        return StorageProblem(
            str(error), "Move that folder away. Slipstream creates a new one that only you can write."
        )
    except OSError as error:
        return StorageProblem(str(error), "Free some space, or set XDG_CACHE_HOME to another folder.")
    if not os.access(own, os.W_OK | os.X_OK):
        return StorageProblem(f"{own} cannot be written", "Move it away. Slipstream creates it again.")
    return None


def make_private(folder: Path) -> None:
    """Make a folder for this user alone where there is none.

    Raises UnsafeError where others may have put something there, OSError where it cannot be made.
    """
    if not folder.parent.exists():
        make_private(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(_PRIVATE)
    status = folder.lstat()
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        raise UnsafeError(f"{folder} is not a folder")
    if flaw := flaw_of(status):
        raise UnsafeError(f"{folder} {flaw}")


def flaw_of(status: os.stat_result) -> str:
    """Why what has this status may hold what others wrote, or "".

    Systems without owners and modes, such as Windows, give each user a cache of his own.
    """
    if stat.S_ISLNK(status.st_mode):
        return "is a link"
    if sys.platform == "win32":
        return ""
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    return "can be written by other users" if status.st_mode & _OTHERS_WRITE else ""


def _take_from_others(folder: Path) -> None:
    """Make a folder of this user that a generous umask has made writable by this user alone.

    Its files are checked separately: no other user can have given it this user as its owner.
    """
    if sys.platform == "win32":
        return
    with suppress(FileNotFoundError):
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and flaw_of(status) and status.st_uid == os.geteuid():
            folder.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS_WRITE)


def can_store() -> bool:
    """Whether there is a safe place where what is compiled can stay; makes it."""
    return storage_problem() is None


def are_compiled(device: str) -> bool:
    """Whether a process like this one has compiled and stored all that the default target needs on `device`.

    `auto` needs nothing where it meant a GPU; where that has gone since, the first calls compile.
    """
    marks = [_mark(kind) for kind in ("cpu", "cuda") if device in {"auto", kind}]
    found = [mark for mark in marks if mark.is_file()]
    if not (can_store() and found):
        return False
    for mark in found:
        with suppress(OSError):
            mark.touch()  # they are in use: see `forget_unused`
    return True


def mark_compiled(kind: str) -> None:
    """Nothing is left to compile for this kind of device. Raises OSError where that cannot be stored."""
    _mark(kind).touch()


def forget_unused(used: Path, now: float) -> None:
    """Remove what other versions stored beside `used` and have not used for long; `now` in seconds."""
    until = now - _DAYS_UNUSED * 86_400
    for folder in used.parent.iterdir():
        if folder == used or not _NAME.fullmatch(folder.name):
            continue
        with suppress(OSError):
            if max(entry.stat().st_mtime for entry in (folder, *folder.iterdir())) < until:
                shutil.rmtree(folder)


def machine_mark() -> str:
    """Identify the conditions of compiled kernels: processor, compiler, interpreter."""
    from llvmlite import binding  # noqa: PLC0415 - a tenth of a second, loaded with numba anyway

    processor = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    named = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    facts = processor, named, metadata.version("numba"), sys.version
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _mark(kind: str) -> Path:
    return KERNEL_FOLDER / f"compiled-{kind}-{machine_mark()}"
