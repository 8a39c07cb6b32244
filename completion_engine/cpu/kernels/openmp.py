"""Torch's own threads for kernels, where its OpenMP can be asked.

Kernels wait where torch's threads do, so neither is in the other's way. A kernel takes its work from a
counter in its task: a thread that comes late finds nothing left to do. Without OpenMP, and where `VARIABLE`
is 0, `team` has threads of its own.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import Any

VARIABLE = "SLIPSTREAM_OPENMP"

_Start = Callable[[int, int, int, int], None]


def call(function: int, task: int) -> None:
    """Call the compiled function at an address with that of a task, on this thread."""
    _plain(function)(task)


@cache
def openmp() -> _Start | None:
    """What starts a function on OpenMP's threads; GNU's library and Intel's have it under this name."""
    start = _found(None) or _found("libgomp.so.1")  # torch's build for ARM shows its library to nobody else
    if start is None or os.environ.get(VARIABLE) == "0":
        return None
    start.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    start.restype = None
    found: _Start = start
    return found


def _found(library: str | None) -> Any:
    """Where it is in a library that is loaded already, or in what all may see; None elsewhere."""
    try:
        if library is None:
            return ctypes.CDLL(None).GOMP_parallel
        return ctypes.CDLL(library, mode=os.RTLD_NOLOAD).GOMP_parallel
    except (AttributeError, OSError, TypeError):
        return None


@cache
def _plain(function: int) -> Callable[[int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
