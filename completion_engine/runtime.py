"""Help for Python's runtime: JSON that is nested too deep, whole files, garbage collection, memory.

Does not depend on the objects that are parsed, written or freed.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import mmap
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

# Objects that are made at a start stay, and each collection goes through many of them again.
_MANY, _SELDOM = 200_000, 20
UNFINISHED = ".part"  # the suffix of a file that is being written


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is not JSON, or nested too deep."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("JSON that is nested too deep") from error


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file of this user's alone that is written in the block, and stands at `path` once that has ended.

    Until then each writer has a file of his own: threads and containers may share a process's id.
    """
    number, name = tempfile.mkstemp(UNFINISHED, f"{path.stem}.", path.parent)
    unfinished = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # or after a power cut the name may be there, and not the content
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def private_pages(num_bytes: int) -> mmap.mmap:
    """Zeroed memory of this process alone: shared memory lies in a file, whose pages take longer to make.

    Raises OSError where there is not enough.
    """
    if sys.platform == "win32":
        return mmap.mmap(-1, num_bytes)
    return mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def give_back() -> None:
    """Return freed memory to the system: tens of milliseconds, without the interpreter's lock.

    glibc keeps the memory that a thread freed in that thread's arena: 0.65 GB after one model gave way to
    another. Does nothing with another C library.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect garbage seldom in the block, whose objects stay. One block at a time."""
    before = gc.get_threshold()
    gc.set_threshold(_MANY, _SELDOM, _SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
