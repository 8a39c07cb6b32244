"""Times work on a device: warm, synchronised, the median of a few rounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch


def wait(device: torch.device) -> None:
    """Until the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def time_ms(
    work: Callable[[], object], device: torch.device, *, num_rounds: int = 7, in_row: int = 10
) -> float:
    """Milliseconds of `work`, done `in_row` times between two looks at the clock; round one is left out."""
    found = []
    for _ in range(num_rounds + 1):
        wait(device)
        begin = time.perf_counter()
        for _ in range(in_row):
            work()
        wait(device)
        found.append((time.perf_counter() - begin) * 1e3 / in_row)
    return median(found[1:])
