"""When garbage is looked for, and when freed memory goes back to the system. Knows nothing of what it holds.

glibc keeps what a thread freed in that thread's arena: 0.65 GB beside a model that had given way to another.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Iterator

_MANY = 200_000  # objects; what a start makes stays, and each look for garbage goes through much of it again
_SELDOM = 20


def give_back() -> None:
    """Tens of milliseconds, without the interpreter's lock. Does nothing where the C library is another."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """In the block, which makes what stays, garbage is looked for once in a while. One block at a time."""
    before = gc.get_threshold()
    gc.set_threshold(_MANY, _SELDOM, _SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
