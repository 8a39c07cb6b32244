"""The least time of a pass on a rung: to read the weights once, and to launch what torch launches."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import torch

from completion_engine.gpu.memory import read_geometry
from completion_engine.loading.rungs import Rung

_NUM_NUMBERS = 1 << 25  # float32 that are read: more than most caches hold
_NUM_ROUNDS = 3
_PACKED_SHARE = 0.35  # share of bf16: weights of 4 to 8 bits with their scales
_LAUNCHES_MS = 0.08  # launches of a layer in plain torch: some 20 kernels, each some microseconds to launch


def least_pass_ms(folder: Path, rung: Rung) -> float:
    """Return milliseconds that no pass on the rung can undercut; infinity where sizes are unknown."""
    geometry = read_geometry(folder)
    if geometry is None:
        return float("inf")
    share = {"int8": _PACKED_SHARE if rung.name == "CPU" else 0.5, "int4": 0.25}.get(rung.precision.kind)
    share = share or rung.precision.dtype.itemsize / 2
    launches_ms = _LAUNCHES_MS * geometry.num_layers if rung.name == "GPU torch" else 0.0
    return max(launches_ms, geometry.pass_bytes() * share / bytes_per_ms(rung.device))


@cache
def bytes_per_ms(device: torch.device) -> float:
    """Measure how fast a device reads its memory; some tens of milliseconds, once."""
    numbers = torch.ones(_NUM_NUMBERS, device=device)
    times = []
    for _ in range(_NUM_ROUNDS):
        begin = time.perf_counter()
        numbers.sum().item()
        times.append((time.perf_counter() - begin) * 1e3)
    return numbers.nbytes / min(times)
