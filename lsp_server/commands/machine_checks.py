"""The doctor's look at the machine: libraries, processor and kernels, cores, memory, GPU and disk.

Reads facts and rates them. Must not change anything on the machine.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import psutil

from completion_engine.errors import SlipstreamError

if TYPE_CHECKING:
    import torch

    from completion_engine.gpu.machine import Flaw, Gpu
    from completion_engine.target_model.weights import Precision


_MAX_CHARS = 300
_MIN_MEMORY_BYTES = 4_000_000_000  # the default model with its cache and the index of a large repository
_MIN_DISK_BYTES = 3_000_000_000
_BF16_FEATURES = frozenset({"avx512bf16", "amx-bf16", "bf16"})  # as LLVM names them
_USE_BYTES = "Several times slower than bytes: set dtype to auto, with a model of `slipstream models`."
_NO_BYTES = "Several times slower than bytes, which need AVX2 with FMA and F16C, or ARM's FEAT_DotProd."

CheckState = Literal["ok", "slow", "missing"]
CHECK_STATES: tuple[CheckState, ...] = ("ok", "slow", "missing")  # the worst last


class Check(NamedTuple):
    """One row: the subject, its state, the finding, and the advice if the state is not `ok`."""

    name: str
    state: CheckState
    found: str
    advice: str = ""


def rated(name: str, found: str, is_ok: object, advice: str) -> Check:
    """A check that is ok, or slow with advice."""
    return Check(name, "ok" if is_ok else "slow", found, "" if is_ok else advice)


def guarded(name: str, look: Callable[[], Iterable[Check]]) -> list[Check]:
    """Return the checks that `look` yields. If it fails, the last one reports the failure."""
    found: list[Check] = []
    try:
        found.extend(look())
    except SlipstreamError as error:
        found.append(Check(name, "missing", error.message, error.advice))
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_CHARS]
        found.append(Check(name, "missing", f"fails: {reason}", "Install Slipstream again, or report it."))
    return found


def version_of(package: str) -> str:
    """The installed version of a package; empty when it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def machine_checks() -> Iterator[Check]:
    """Check the libraries and the hardware."""
    yield Check("python", "ok", sys.version.split()[0])
    for package in ("torch", "transformers", "pygls"):
        yield from guarded(package, partial(_library_checks, package))
    yield Check("processor", "ok", processor())
    yield Check("cores", "ok", str(_num_usable_cores()))
    memory = psutil.virtual_memory()
    found = f"{memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB free"
    advice = "Close other programs, or choose a smaller target."
    yield rated("memory", found, memory.available >= _MIN_MEMORY_BYTES, advice)
    yield from guarded("gpu", _gpu_checks)
    yield from guarded("compiled kernels", lambda: [kernel_storage_check()])


def _library_checks(package: str) -> list[Check]:
    if not (version := version_of(package)):
        return [Check(package, "missing", "not installed", "Install it.")]
    import_module(package)  # an installed package may still fail to load
    return [Check(package, "ok", version)]


def _gpu_checks() -> Iterator[Check]:
    from completion_engine.gpu.machine import find_gpu  # noqa: PLC0415 - loads torch

    yield from gpu_checks(find_gpu())


def kernel_storage_check() -> Check:
    """Check that compiled kernels can be stored where no other user can change them."""
    from completion_engine.cpu.kernels import kernel_cache  # noqa: PLC0415 - not needed for help

    if problem := kernel_cache.storage_problem():
        return Check("compiled kernels", "slow", f"not stored: {problem.found}", problem.advice)
    return Check("compiled kernels", "ok", f"stored in {kernel_cache.KERNEL_FOLDER}")


def kernel_check(precision: Precision, device: torch.device) -> list[Check]:
    """Name the kernel that computes the model's products on the processor; nothing for a GPU."""
    from completion_engine.cpu.kernels import dot, language  # noqa: PLC0415 - loads numba

    if device.type != "cpu":
        return []
    if precision.kind == "int8":
        name = dot.INSTRUCTION_SETS[dot.instruction_sets()[0]].name
        return [Check("kernel", "ok", f"{name}, with weights in bytes")]
    features = sorted(_BF16_FEATURES & language.features()) if precision.name == "bfloat16" else []
    hardware = f", in hardware ({', '.join(features)})" if features else ", not in hardware"
    found = f"{precision.name} by torch{hardware if precision.name == 'bfloat16' else ''}"
    return [rated("kernel", found, features, _USE_BYTES if dot.instruction_sets() else _NO_BYTES)]


def expected_kernel_check(dtype: str, device: str) -> list[Check]:
    """The kernel that a model of the store would run on. Raises UserError for what cannot be."""
    from completion_engine.loading.backends import plan_here  # noqa: PLC0415 - loads torch

    best = plan_here(device, dtype).backends[0]
    return kernel_check(best.precision, best.device)


def disk_check(folder: Path) -> Check:
    """Check the space on the disk of `folder`, which need not exist yet."""
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    num_free_bytes = shutil.disk_usage(existing).free
    found = f"{num_free_bytes / 1e9:.1f} GB free at {folder}"
    advice = "Free some space, or set SLIPSTREAM_MODEL_DIR."
    return rated("disk for models", found, num_free_bytes >= _MIN_DISK_BYTES, advice)


def processor() -> str:
    """The name of the processor, as the system gives it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _num_usable_cores() -> int:
    """Cores that this process may use, within a container's limit."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return min(cores, max(1, round(int(quota) / int(period))))
    except (OSError, ValueError):
        return cores


def gpu_checks(gpu: Gpu | Flaw | None) -> Iterator[Check]:
    """Check the GPU that torch finds, or the reason that it finds none."""
    from completion_engine.gpu.machine import Flaw, compiler_flaw, num_free_bytes  # noqa: PLC0415 - loads torch
    from completion_engine.loading.backends import plan_backends  # noqa: PLC0415 - as above

    if gpu is None:
        yield Check("gpu", "ok", "none: the model runs on the processor")
        return
    if isinstance(gpu, Flaw):
        yield Check("gpu", "slow", gpu.found, gpu.advice)
        return
    version = ".".join(map(str, gpu.capability))
    memory = f"{num_free_bytes(gpu.device) / 1e9:.1f} of {gpu.num_total_bytes / 1e9:.1f} GB free"
    found = f"{gpu.name}, {memory}, compute capability {version}"
    plan = plan_backends("auto", "auto", gpu)
    yield rated("gpu", found, plan.backends[0].name != "CPU", "Install a torch build that has code for it.")
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


def backend_check(backend: str, reason: str) -> Check:
    """Name the way the loaded model runs, and why it does not run on a faster one."""
    found = f"{backend}: {reason}" if reason else backend
    return rated("runs on", found, not reason, "See docs/gpu.md, and the log for details.")
