"""Memory that was freed goes back to the system, where the C library would keep it for later.

glibc keeps what a thread freed in that thread's arena: 0.65 GB beside a model that had given way to another.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys


def give_back() -> None:
    """Tens of milliseconds, without the interpreter's lock. Does nothing where the C library is another."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
