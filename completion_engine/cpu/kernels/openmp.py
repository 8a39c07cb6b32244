"""Kernels on several threads at once, on torch's own where its OpenMP can be asked.

Those wait where torch's do, so neither is in the other's way. A kernel takes its work from a counter in its
task: a thread that comes late finds nothing left to do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import torch

_Start = Callable[[int, int, int, int], None]


def run(function: int, task: int) -> None:
    """Call the compiled function at an address with that of a task, on as many threads as torch has here."""
    num_threads, start = torch.get_num_threads(), openmp()
    if start is not None:
        start(function, task, num_threads, 0)
        return
    helpers = [_helpers().submit(call, function, task) for _ in range(num_threads - 1)]
    call(function, task)
    for helper in helpers:
        if not helper.cancel():
            helper.result()


def call(function: int, task: int) -> None:
    """The same on this thread alone."""
    _plain(function)(task)


@cache
def openmp() -> _Start | None:
    """What starts a function on OpenMP's threads; GNU's library and Intel's have it under this name."""
    try:
        start = ctypes.CDLL(None).GOMP_parallel
    except (AttributeError, OSError, TypeError):
        return None
    start.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    start.restype = None
    found: _Start = start
    return found


@cache
def _helpers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="kernel")


@cache
def _plain(function: int) -> Callable[[int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
