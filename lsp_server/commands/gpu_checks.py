"""The doctor's look at the GPU: whether torch can use it, what fits on it, whether kernels compile."""

from __future__ import annotations

from collections.abc import Iterator

from completion_engine.config import EngineConfig
from completion_engine.gpu.machine import Flaw, Gpu, compiler_flaw, num_free_bytes
from completion_engine.gpu.memory import largest_fitting
from completion_engine.loading.gpu_target import NUM_MORE_CACHES
from completion_engine.loading.rungs import plan_rungs
from lsp_server.commands.machine_checks import Check, rated, version_of

_NUM_CACHES = EngineConfig().num_slots + NUM_MORE_CACHES
_NAMES = {16: "bfloat16", 8: "int8", 4: "int4"}


def gpu_checks(gpu: Gpu | Flaw | None) -> Iterator[Check]:
    """Check the GPU that torch finds, or the reason that it finds none."""
    if gpu is None:
        yield Check("gpu", "ok", "none: the model runs on the processor")
        return
    if isinstance(gpu, Flaw):
        yield Check("gpu", "slow", gpu.found, gpu.advice)
        return
    version = ".".join(map(str, gpu.capability))
    found = f"{gpu.name}, {gpu.num_total_bytes / 1e9:.0f} GB, compute capability {version}"
    plan = plan_rungs("auto", "auto", gpu)
    yield rated("gpu", found, plan.rungs[0].name != "CPU", "Install a torch build that has code for it.")
    yield _largest(num_free_bytes(gpu.device))
    yield from (
        Check("gpu kernels", "slow", reason, "Plain torch is used instead.") for reason in plan.reasons
    )
    if not plan.reasons:
        yield kernels_check(compiler_flaw())


def kernels_check(flaw: Flaw | None) -> Check:
    """Check whether Triton can compile the kernels."""
    if flaw is not None:
        advice = f"{flaw.advice} The model runs on the GPU through plain torch until then."
        return Check("gpu kernels", "slow", flaw.found, advice)
    return Check("gpu kernels", "ok", f"triton {version_of('triton')}")


def rung_check(rung: str, reason: str) -> Check:
    """Name the way the loaded model runs, and why it does not run on a faster one."""
    found = f"{rung}: {reason}" if reason else rung
    return rated("runs on", found, not reason, "See docs/gpu.md, and the log for details.")


def _largest(num_bytes: int) -> Check:
    fitting = ", ".join(
        f"{size} in {_NAMES[bits]}"
        for bits, size in largest_fitting(num_bytes, num_slots=_NUM_CACHES).items()
    )
    found = f"{fitting or 'none'} ({num_bytes / 1e9:.1f} GB free)"
    return rated("largest target on the gpu", found, fitting, "Free GPU memory, or set device to cpu.")
