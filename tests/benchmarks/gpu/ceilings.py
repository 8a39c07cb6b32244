"""What the device can do at most: bytes read and copied, bf16 products. Measured before all else."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tests.benchmarks.gpu.clock import time_ms

_BYTES = {"cuda": 4 << 30, "cpu": 1 << 24}  # far beyond a GPU's last cache
_SIDE = {"cuda": 8192, "cpu": 256}


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Bytes a second (of a copy, read and written ones together), and products' operations a second."""

    read_bytes_per_s: float
    copy_bytes_per_s: float
    flops_per_s: float

    @property
    def bytes_per_s(self) -> float:
        """The bandwidth that weights are held against: the better of both."""
        return max(self.read_bytes_per_s, self.copy_bytes_per_s)

    def floor_ms(self, num_bytes: int) -> float:
        """The least time to read this number of bytes (ms)."""
        return num_bytes / self.bytes_per_s * 1e3


def measure_ceilings(device: torch.device) -> Ceilings:
    """Seconds on a GPU. Data is random: zeros multiply faster."""
    num_bytes = _BYTES[device.type]
    if device.type == "cuda":
        num_bytes = min(num_bytes, torch.cuda.mem_get_info(device)[0] // 8)
    source = torch.randint(0, 1 << 30, (num_bytes // 4,), dtype=torch.int32, device=device)
    target = torch.empty_like(source)
    copy_ms = time_ms(lambda: target.copy_(source), device)
    read_ms = time_ms(source.amax, device)
    side = _SIDE[device.type]
    left, right = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    product_ms = time_ms(lambda: left @ right, device, num_rounds=5)
    return Ceilings(
        source.nbytes / read_ms * 1e3, 2 * source.nbytes / copy_ms * 1e3, 2 * side**3 / product_ms * 1e3
    )
