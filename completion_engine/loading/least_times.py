"""The least time of a pass on a rung: the time to read the weights once, and to launch torch's kernels."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import torch

from completion_engine.gpu.loading import BITS
from completion_engine.gpu.memory import Geometry, read_geometry
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
    launches_ms = _LAUNCHES_MS * geometry.num_layers if rung.name == "GPU torch" else 0.0
    return max(launches_ms, _pass_bytes(geometry, rung) / bytes_per_ms(rung.device))


def _pass_bytes(geometry: Geometry, rung: Rung) -> float:
    """Bytes of weights that a pass reads."""
    kind = rung.precision.kind
    if kind == "float":
        return geometry.pass_bytes() * rung.precision.dtype.itemsize / 2
    return geometry.pass_bytes() * _PACKED_SHARE if rung.name == "CPU" else geometry.pass_bytes(BITS[kind])


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
