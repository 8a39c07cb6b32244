"""The ways to run a target on this machine, best first: our GPU kernels, plain torch on the GPU, the CPU.

`plan_rungs` is pure: it takes facts and returns rungs. Nothing is loaded here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from completion_engine.cpu.linear import can_pack
from completion_engine.cpu.quantised import can_quantise
from completion_engine.errors import UserError
from completion_engine.gpu import machine
from completion_engine.gpu.machine import Flaw, Gpu
from completion_engine.target_model.weights import Precision, WeightKind

RungName = Literal["GPU kernels", "GPU torch", "CPU"]

_KERNELS_FROM = (8, 0)  # has bf16 matrix instructions and asynchronous copies
_HALVES_FROM = (7, 0)  # older GPUs compute float16 many times slower than float32
_CPU = torch.device("cpu")
_HELD: dict[str, WeightKind] = {"int8": "int8", "int4": "int4"}  # dtypes that round weights


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to run a target. `dtype` is the setting, for models that our kernels cannot run."""

    name: RungName
    device: torch.device
    precision: Precision
    dtype: str = "auto"

    def __str__(self) -> str:
        return f"{self.name} in {self.precision.name}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The rungs to try in order, the CPU last, and the reasons that others are missing."""

    rungs: tuple[Rung, ...]
    reasons: tuple[str, ...] = ()


def plan_here(device: str, dtype: str) -> Plan:
    """Return the rungs on this machine; see `plan_rungs`."""
    return plan_rungs(device, dtype, None if device == "cpu" else machine.find_gpu())


def plan_rungs(device: str, dtype: str, gpu: Gpu | Flaw | None) -> Plan:
    """Return the rungs for the settings `device` and `dtype`.

    The CPU is the last rung even if `device` is "cuda". Raises UserError for unknown names, and for a dtype
    that no rung supports.
    """
    if device not in {"auto", "cpu", "cuda"}:
        raise UserError(f"Unknown device {device!r}.", advice="Choose auto, cpu or cuda.")
    if device == "cpu":
        return Plan((_cpu_rung(dtype, is_fallback=False),))
    if not isinstance(gpu, Gpu):
        absent = "There is no GPU." if device == "cuda" else ""
        reason = str(gpu) if gpu else absent
        return Plan((_cpu_rung(dtype, is_fallback=device == "cuda"),), (reason,) if reason else ())
    reasons = tuple(_obstacles(gpu))
    return Plan((*_gpu_rungs(gpu, dtype), _cpu_rung(dtype, is_fallback=True)), reasons)


def _obstacles(gpu: Gpu) -> Iterator[str]:
    version = ".".join(map(str, gpu.capability))
    if not gpu.has_code:
        yield f"This torch has no code for {gpu.name} (compute capability {version})."
    elif not gpu.is_nvidia:
        yield f"Slipstream's GPU kernels are for NVIDIA GPUs, and {gpu.name} is none."
    elif gpu.capability < _KERNELS_FROM:
        yield f"Slipstream's GPU kernels need compute capability 8.0, and {gpu.name} has {version}."


def _gpu_rungs(gpu: Gpu, dtype: str) -> Iterator[Rung]:
    if not gpu.has_code:
        return
    has_bf16 = gpu.capability >= _KERNELS_FROM or not gpu.is_nvidia
    if has_bf16 and gpu.is_nvidia:
        yield Rung("GPU kernels", gpu.device, choose_precision(dtype, torch.device("cuda")), dtype)
    floats = [torch.float32]
    if dtype != "float32" and gpu.capability >= _HALVES_FROM:
        floats = [torch.bfloat16] if has_bf16 else [torch.float16, torch.float32]
    for computed in floats:
        yield Rung("GPU torch", gpu.device, Precision(str(computed).removeprefix("torch."), computed), dtype)


def _cpu_rung(dtype: str, *, is_fallback: bool) -> Rung:
    """Return the CPU rung; as a fallback it uses the CPU's best dtype if it lacks the setting's."""
    try:
        return Rung("CPU", _CPU, choose_precision(dtype, _CPU), dtype)
    except UserError:
        if not is_fallback or dtype not in {"int4", "int8"}:
            raise
        return Rung("CPU", _CPU, choose_precision("auto", _CPU))


def choose_precision(name: str, device: torch.device) -> Precision:
    """Return the precision for a dtype's name on this machine. Raises UserError if it is not supported.

    `auto` is int8 weights if the machine multiplies them fast, else bf16 if it computes that, else float32.
    On a GPU it is int8, because a pass takes about as long as reading its weights.
    """
    if device.type == "cuda" and name in {*_HELD, "auto"}:
        held = "int8" if name == "auto" else name
        return Precision(held, torch.bfloat16, _HELD[held])
    computes_bf16 = device.type == "cuda" or can_pack(torch.empty(1, 1, dtype=torch.bfloat16))
    best = torch.bfloat16 if computes_bf16 else torch.float32
    has_bytes = can_quantise(device)
    if name == "int8" and not has_bytes:
        raise UserError(
            "This processor cannot run int8 (it needs an x86 CPU with AVX2, FMA and F16C, or an "
            "ARM one with FEAT_DotProd).",
            advice="Set dtype to auto.",
        )
    if name == "int4":
        raise UserError("Weights in 4 bits need a GPU.", advice="Set dtype to auto.")
    if name == "int8" or (name == "auto" and has_bytes):
        return Precision("int8", best, "int8")
    known = {"auto": best, "bfloat16": torch.bfloat16, "float32": torch.float32}
    if name not in known:
        raise UserError(f"Unknown dtype {name!r}.", advice="Choose auto, bfloat16, float32, int8 or int4.")
    return Precision(str(known[name]).removeprefix("torch."), known[name])
