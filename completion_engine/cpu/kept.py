"""Where compiled kernels are kept, and whether all of them are there. Imports nothing heavy.

The folder's name follows from the kernels' sources. What numba keeps in it is for one processor, one
interpreter and one place of the sources, and so is the mark that says that nothing is missing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_dir

_SOURCES = Path(__file__).parent
_NAME = re.compile("[0-9a-f]{16}")
_DAYS_UNUSED = 60


def folder_for(sources: Iterable[Path]) -> Path:
    """Where kernels made of these files are kept.

    numba itself looks at a kernel's own file only, and would go on with what it inlined from another.
    """
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sorted(sources)))
    return Path(user_cache_dir("slipstream", appauthor=False)) / "kernels" / digest.hexdigest()[:16]


KEPT_IN = folder_for(_SOURCES.glob("*.py"))


def are_compiled() -> bool:
    """Whether a process like this one has compiled all that the default target needs."""
    mark = _mark()
    if not mark.is_file():
        return False
    with suppress(OSError):
        mark.touch()  # they are in use: see `forget_unused`
    return True


def mark_compiled() -> None:
    """Nothing is left to compile. Raises OSError where that cannot be kept."""
    _mark().touch()


def forget_unused(kept_in: Path, now: float) -> None:
    """Remove what other versions kept beside `kept_in` and have not used for long; `now` in seconds."""
    until = now - _DAYS_UNUSED * 86_400
    for folder in kept_in.parent.iterdir():
        if folder == kept_in or not _NAME.fullmatch(folder.name):
            continue
        with suppress(OSError):
            if max(entry.stat().st_mtime for entry in (folder, *folder.iterdir())) < until:
                shutil.rmtree(folder)


def can_keep() -> bool:
    """Whether there is a place where what is compiled can stay; makes it."""
    try:
        KEPT_IN.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(KEPT_IN, os.W_OK | os.X_OK)


def _mark() -> Path:
    from llvmlite import binding  # noqa: PLC0415 - a tenth of a second, loaded with numba anyway

    processor = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    place = repr((processor, str(_SOURCES), sys.version)).encode()
    return KEPT_IN / f"compiled-{hashlib.sha256(place).hexdigest()[:16]}"
