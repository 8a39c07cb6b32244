"""Arrays in the system's huge pages.

A pass reads all weights once. With pages of 4 KB, translating their addresses takes 3 to 13 % of its time
(docs/experiments/kernels.md).
"""

from __future__ import annotations

import logging
import mmap
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from completion_engine.cpu.kernels.language import Array
from completion_engine.runtime import private_pages

logger = logging.getLogger(__name__)

_LINE = 64  # bytes of a cache line, where each array begins
_SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def in_huge_pages(arrays: Sequence[Array]) -> list[Array]:
    """Copies of arrays in one block of huge pages; the arrays themselves where the system has none to give.

    Copies of 4 KB pages would be slower than a mapped file, whose pages may be larger.
    """
    if sys.platform != "linux" or not _are_offered():
        return list(arrays)
    num_bytes = sum(_padded(array) for array in arrays)
    try:
        memory = private_pages(num_bytes)
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError as error:
        logger.warning("Weights stay in the pages of their file: %s", error)
        return list(arrays)
    return [*_copies(arrays, np.frombuffer(memory, np.uint8))]


def _are_offered() -> bool:
    """Return whether this system gives huge pages to a process that wants them."""
    try:
        return "[never]" not in _SWITCH.read_text("ascii")
    except (OSError, ValueError):
        return False


def _padded(array: Array) -> int:
    return -(-array.nbytes // _LINE) * _LINE


def _copies(arrays: Sequence[Array], memory: Array) -> Iterator[Array]:
    at = 0
    for array in arrays:
        copy = memory[at : at + array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(copy, array)
        at += _padded(array)
        yield copy
