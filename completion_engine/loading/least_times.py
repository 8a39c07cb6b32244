"""The least time of a pass on a rung: the time to read the weights once, and to launch torch's kernels."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import torch

from completion_engine.gpu.memory import read_geometry
from completion_engine.loading.rungs import Rung

_NUM_NUMBERS = 1 << 25  # float32 numbers to read: more than most processor caches hold
_NUM_ROUNDS = 3
_PACKED_SHARE = 0.35  # size of weights of 4 to 8 bits with their scales, as a share of bf16
_LAUNCHES_MS = 0.08  # per layer in plain torch: about 20 kernels of a few microseconds each


def least_pass_ms(folder: Path, rung: Rung) -> float:
    """Return a lower bound for the milliseconds of a pass on the rung; infinity if sizes are unknown."""
    geometry = read_geometry(folder)
    if geometry is None:
        return float("inf")
    share = {"int8": _PACKED_SHARE if rung.name == "CPU" else 0.5, "int4": 0.25}.get(rung.precision.kind)
    share = share or rung.precision.dtype.itemsize / 2
    launches_ms = _LAUNCHES_MS * geometry.num_layers if rung.name == "GPU torch" else 0.0
    return max(launches_ms, geometry.pass_bytes() * share / bytes_per_ms(rung.device))


@cache
def bytes_per_ms(device: torch.device) -> float:
    """Measure how fast a device reads its memory. Takes tens of milliseconds, once."""
    numbers = torch.ones(_NUM_NUMBERS, device=device)
    times = []
    for _ in range(_NUM_ROUNDS):
        begin = time.perf_counter()
        numbers.sum().item()
        times.append((time.perf_counter() - begin) * 1e3)
    return numbers.nbytes / min(times)
