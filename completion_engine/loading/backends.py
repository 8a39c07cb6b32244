"""The ways to run a target on this machine, best first, and the fallback to the next one when one fails.

They are our GPU kernels, plain torch on the GPU, and the CPU. `plan_backends` is pure: it takes facts and
returns backends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import torch

from completion_engine.cpu.linear import can_quantise, computes_bf16
from completion_engine.errors import SlipstreamError, UserError
from completion_engine.gpu import machine
from completion_engine.gpu.machine import Flaw, Gpu, first_line, release_memory
from completion_engine.request import CancelledError
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.weights import Precision

BackendName = Literal["GPU kernels", "GPU torch", "CPU"]

_KERNELS_FROM = (8, 0)  # has bf16 matrix instructions and asynchronous copies
_HALVES_FROM = (7, 0)  # older GPUs compute float16 many times slower than float32
_CPU = torch.device("cpu")
logger = logging.getLogger(__name__)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Backend:
    """One way to run a target. `dtype` is the setting, for models that our kernels cannot run."""

    name: BackendName
    device: torch.device
    precision: Precision
    dtype: str = "auto"

    def __str__(self) -> str:
        return f"{self.name} in {self.precision.name}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The backends to try in order, the CPU last, and the reasons that others are missing."""

    backends: tuple[Backend, ...]
    reasons: tuple[str, ...] = ()


def plan_here(device: str, dtype: str) -> Plan:
    """Return the backends on this machine; see `plan_backends`."""
    return plan_backends(device, dtype, None if device == "cpu" else machine.find_gpu())


def plan_backends(device: str, dtype: str, gpu: Gpu | Flaw | None) -> Plan:
    """Return the backends for the settings `device` and `dtype`.

    The CPU is the last backend even if `device` is "cuda". Raises UserError for unknown names, and for a
    dtype that no backend supports.
    """
    if device not in {"auto", "cpu", "cuda"}:
        raise UserError(f"Unknown device {device!r}.", advice="Choose auto, cpu or cuda.")
    if device == "cpu":
        return Plan((_cpu_backend(dtype, is_fallback=False),))
    if not isinstance(gpu, Gpu):
        absent = "There is no GPU." if device == "cuda" else ""
        reason = str(gpu) if gpu else absent
        return Plan((_cpu_backend(dtype, is_fallback=device == "cuda"),), (reason,) if reason else ())
    reasons = tuple(_obstacles(gpu))
    return Plan((*_gpu_backends(gpu, dtype), _cpu_backend(dtype, is_fallback=True)), reasons)


def _obstacles(gpu: Gpu) -> Iterator[str]:
    version = ".".join(map(str, gpu.capability))
    if not gpu.has_code:
        yield f"This torch has no code for {gpu.name} (compute capability {version})."
    elif not gpu.is_nvidia:
        yield f"Slipstream's GPU kernels are for NVIDIA GPUs, and {gpu.name} is none."
    elif gpu.capability < _KERNELS_FROM:
        yield f"Slipstream's GPU kernels need compute capability 8.0, and {gpu.name} has {version}."


def _gpu_backends(gpu: Gpu, dtype: str) -> Iterator[Backend]:
    if not gpu.has_code:
        return
    has_bf16 = gpu.capability >= _KERNELS_FROM or not gpu.is_nvidia
    if has_bf16 and gpu.is_nvidia:
        yield Backend("GPU kernels", gpu.device, choose_precision(dtype, torch.device("cuda")), dtype)
    floats = [torch.float32]
    if dtype != "float32" and gpu.capability >= _HALVES_FROM:
        floats = [torch.bfloat16] if has_bf16 else [torch.float16, torch.float32]
    for computed in floats:
        yield Backend(
            "GPU torch", gpu.device, Precision(str(computed).removeprefix("torch."), computed), dtype
        )


def _cpu_backend(dtype: str, *, is_fallback: bool) -> Backend:
    """Return the CPU backend; as a fallback it uses the CPU's best dtype if it lacks the setting's."""
    try:
        return Backend("CPU", _CPU, choose_precision(dtype, _CPU), dtype)
    except UserError:
        if not is_fallback or dtype != "int8":
            raise
        return Backend("CPU", _CPU, choose_precision("auto", _CPU))


def choose_precision(name: str, device: torch.device) -> Precision:
    """Return the precision for a dtype's name on this machine. Raises UserError if it is not supported.

    `auto` is int8 weights if the machine multiplies them fast, else bf16 if it computes that, else float32.
    On a GPU it is int8, because a pass takes about as long as reading its weights.
    """
    best = torch.bfloat16 if device.type == "cuda" or computes_bf16() else torch.float32
    has_bytes = device.type == "cuda" or can_quantise(device)
    if name == "int8" and not has_bytes:
        raise UserError(
            "This processor cannot run int8 (it needs an x86 CPU with AVX2, FMA and F16C, or an "
            "ARM one with FEAT_DotProd).",
            advice="Set dtype to auto.",
        )
    if name == "int8" or (name == "auto" and has_bytes):
        return Precision("int8", best, "int8")
    known = {"auto": best, "bfloat16": torch.bfloat16, "float32": torch.float32}
    if name not in known:
        raise UserError(f"Unknown dtype {name!r}.", advice="Choose auto, bfloat16, float32 or int8.")
    return Precision(str(known[name]).removeprefix("torch."), known[name])


class BackendError(Exception):
    """A backend cannot be used: its logits are wrong, or memory is short. The message is the reason."""


class BackendChain:
    """The backends for one target, tried in order.

    `load` loads the target on a backend. Any error, except for a wrong setting or a damaged file, is a reason
    to try the next backend.
    """

    def __init__(self, plan: Plan, load: Callable[[Backend], LanguageModel]) -> None:
        self._backends: Sequence[Backend] = plan.backends
        self._reasons = list(plan.reasons)
        self._load = load

    @property
    def backend(self) -> Backend:
        """The backend in use, or the next to be tried."""
        return self._backends[0]

    @property
    def reason(self) -> str:
        """The reason that no better backend is in use; empty if there is none."""
        return " ".join(self._reasons)

    @property
    def has_fallback(self) -> bool:
        """Whether there is another backend after the one in use."""
        return len(self._backends) > 1

    def run_on_best(self, build: Callable[[LanguageModel], R]) -> R:
        """Return the result of `build` with the target on the best backend on which both succeed.

        Raises the error of the last backend, or at once an error that no other backend would avoid.
        """
        while True:
            try:
                return build(self._load(self.backend))
            except Exception as error:
                if not self.fall_back(error):
                    raise

    def fall_back(self, error: Exception) -> bool:
        """Drop the backend in use after `error`; return False if no other backend would help."""
        if isinstance(error, (SlipstreamError, CancelledError)) or not self.has_fallback:
            return False
        logger.warning("The target leaves %s", self.backend, exc_info=error)
        forget_frames(error)
        left, self._backends = self._backends[0], self._backends[1:]
        self._reasons.append(f"{left}: {_sentence(error)}")
        release_memory(left.device)
        return True

    def note(self, reason: str) -> None:
        """Add a note about a feature that is off on the backend in use."""
        self._reasons.append(reason)


def forget_frames(error: BaseException | None) -> None:
    """Drop the frames of an error and of its causes, because they hold the tensors of a backend."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _sentence(error: Exception) -> str:
    """An error's message as one sentence."""
    said = first_line(str(error)).rstrip(".")
    name = "" if isinstance(error, BackendError) else f"{type(error).__name__}: "
    return f"{name}{said or 'it failed'}."
