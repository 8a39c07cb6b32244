"""One run on a GPU: ceilings, models with random weights, then a real target beside its peers."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from completion_engine.errors import MachineError
from completion_engine.gpu.memory import Geometry
from completion_engine.request import Progress
from lsp_server.commands.local_engine import Sample
from scripts.random_model import GEOMETRIES
from tests.benchmarks.gpu.ceilings import Ceilings, measure_ceilings
from tests.benchmarks.gpu.report import aims, memory_rows
from tests.benchmarks.gpu.speed import Trial, measure_geometry
from tests.benchmarks.peers import PeerOptions, measure_peers

_TINY = Geometry(2, 64, 160, 4, 2, 16, 1000, is_tied=False)


@dataclass(frozen=True, slots=True)
class GpuRun:
    """What to measure. `sizes` name geometries; `target` a real model, none where it is empty."""

    device: str
    sizes: tuple[str, ...] = ("1.5B", "7B", "32B")
    dtypes: tuple[str, ...] = ("bfloat16",)
    target: str = ""
    num_tokens: int = 64
    samples: Sequence[Sample] = field(default=())
    tunes: bool = False


def measure_gpu(asked: GpuRun, report: Progress) -> dict[str, Any]:
    """All figures as one JSON object. On a CPU a tiny model replaces every geometry.

    Raises MachineError where there is no GPU and none was meant to be tried without.
    """
    device = _device_of(asked)
    report("Measuring the machine", 0, 0)
    ceilings = measure_ceilings(device)
    found: dict[str, Any] = {
        "bench": "gpu",
        **_facts(device),
        "read_gb_per_s": round(ceilings.read_bytes_per_s / 1e9, 1),
        "copy_gb_per_s": round(ceilings.copy_bytes_per_s / 1e9, 1),
        "tflops": round(ceilings.flops_per_s / 1e12, 1),
        "geometries": _measure_geometries(asked, device, ceilings, report),
        "memory": memory_rows(),
    }
    if asked.tunes:
        from tests.benchmarks.gpu.tuning import tune

        report("Trying tiles", 0, 0)
        found["tuning"] = {size: tune(GEOMETRIES[size], 16, device, ceilings) for size in asked.sizes}
    if asked.target:
        peers = PeerOptions(asked.target, asked.num_tokens, "bfloat16")
        found["peers"] = measure_peers(asked.samples, peers, report)
    return found | {"aims": aims(found)}


def _device_of(asked: GpuRun) -> torch.device:
    device = torch.device(asked.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise MachineError(
            "There is no GPU that torch can use, so there is nothing to measure.",
            advice="Run it on a machine with one; `--device cpu` tries it out on a tiny model.",
        )
    return device


def _measure_geometries(
    asked: GpuRun, device: torch.device, ceilings: Ceilings, report: Progress
) -> list[dict[str, Any]]:
    on_gpu = device.type == "cuda"
    trial = Trial(num_tokens=asked.num_tokens) if on_gpu else Trial(40, min(asked.num_tokens, 8), 512)
    geometries = GEOMETRIES if on_gpu else dict.fromkeys(asked.sizes, _TINY)
    rows = []
    for at, (size, dtype) in enumerate((size, dtype) for size in asked.sizes for dtype in asked.dtypes):
        report(f"{size} {dtype}", at, len(asked.sizes) * len(asked.dtypes))
        figures = measure_geometry(geometries[size], dtype, device, ceilings, trial)
        rows.append({"name": size, "dtype": dtype, **figures})
        if on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    return rows


def _facts(device: torch.device) -> dict[str, Any]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    try:
        triton = version("triton")
    except PackageNotFoundError:
        triton = ""
    return {"machine": name, "device": device.type, "torch": version("torch"), "triton": triton}
