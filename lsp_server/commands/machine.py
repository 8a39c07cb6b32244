"""What the machine is: processor, cores, memory, GPU, disk.

Knows /proc and torch's view of the GPU. Must not judge anything.
"""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil

BF16_FEATURES = ("amx_bf16", "avx512_bf16", "bf16")


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts; names are empty where the system does not tell."""

    processor: str
    features: tuple[str, ...]
    num_cores: int
    num_memory_bytes: int
    num_free_memory_bytes: int
    gpu: str


def read_machine() -> Machine:
    """The machine this runs on. Loads torch."""
    cpu = _fields("/proc/cpuinfo")
    memory = psutil.virtual_memory()
    flags = set((cpu.get("flags") or cpu.get("Features") or "").split())
    interesting = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", *BF16_FEATURES, "amx_int8", "asimd", "sve")
    return Machine(
        processor=cpu.get("model name") or platform.processor() or platform.machine(),
        features=tuple(name for name in interesting if name in flags),
        num_cores=num_usable_cores(),
        num_memory_bytes=memory.total,
        num_free_memory_bytes=memory.available,
        gpu=_gpu(),
    )


def num_usable_cores() -> int:
    """The cores this process may run on, a container's share included."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return min(cores, max(1, round(int(quota) / int(period))))
    except (OSError, ValueError):
        return cores


def version_of(package: str) -> str:
    """The installed version of a package; empty when it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def num_free_disk_bytes(path: Path) -> int:
    """Free bytes on the disk that holds `path`, which need not exist yet."""
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    return shutil.disk_usage(existing).free


def _fields(path: str) -> dict[str, str]:
    """The first value of each `name: value` line of a file; empty where there is no such file."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    pairs = [line.partition(":") for line in reversed(lines)]
    return {name.strip(): value.strip() for name, _, value in pairs}


def num_free_gpu_bytes() -> int:
    """Free memory of the first GPU; 0 where there is none, or no torch that loads. Loads torch."""
    try:
        import torch  # noqa: PLC0415 - seconds that other commands need not pay
    except Exception:
        return 0
    return torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else 0


def _gpu() -> str:
    try:
        import torch  # noqa: PLC0415 - seconds that other commands need not pay

        if not torch.cuda.is_available():
            return ""
        properties = torch.cuda.get_device_properties(0)
    except Exception:  # a library that is damaged fails as it likes
        return ""
    return f"{properties.name}, {properties.total_memory / 1e9:.0f} GB"
