"""The GPU of this machine as torch sees it, and what keeps torch or Triton from using it.

Reads facts about the driver, torch's build and the compiler. Launches nothing.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

import torch

_DRIVER_FILE = Path("/proc/driver/nvidia/version")
_DRIVER_PROGRAM = "nvidia-smi"
_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that torch can address. `has_code` is set if torch's build contains code for it."""

    name: str
    capability: tuple[int, int]
    num_total_bytes: int
    is_nvidia: bool = True
    has_code: bool = True
    device: torch.device = field(default_factory=lambda: torch.device("cuda", 0))


@dataclass(frozen=True, slots=True)
class Flaw:
    """The reason that a GPU is not used, and what to do about it."""

    found: str
    advice: str

    def __str__(self) -> str:
        return f"{self.found} {self.advice}".strip()


def find_gpu() -> Gpu | Flaw | None:
    """Return the first GPU, or why torch cannot use the one that is there; None without a GPU."""
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        properties = torch.cuda.get_device_properties(0)
        capability = properties.major, properties.minor
        return Gpu(
            properties.name,
            capability,
            properties.total_memory,
            is_nvidia=torch.version.hip is None,
            has_code=torch.version.hip is not None or has_code_for(capability, torch.cuda.get_arch_list()),
        )
    except Exception as error:  # torch raises AssertionError, RuntimeError and errors of its own
        return flaw_of_torch(str(error), torch.version.cuda or "") if has_driver() else None


def has_driver() -> bool:
    """Return whether an NVIDIA driver is installed."""
    return _DRIVER_FILE.exists() or shutil.which(_DRIVER_PROGRAM) is not None


def flaw_of_torch(said: str, cuda_version: str) -> Flaw:
    """Explain torch's message `said` beside an NVIDIA driver; `cuda_version` is empty for a CPU build."""
    if not cuda_version:
        return Flaw(
            "An NVIDIA driver is installed, but this torch is the build without CUDA.",
            "Install torch's CUDA build (several GB): see docs/gpu.md.",
        )
    if "driver" in said and "too old" in said:
        return Flaw(
            f"The NVIDIA driver is too old for torch's CUDA {cuda_version}.",
            "Update the driver, or install a torch build for an older CUDA.",
        )
    said = first_line(said).rstrip(".")
    return Flaw(f"torch cannot use the GPU: {said}.", "Check the driver with `nvidia-smi`.")


def has_code_for(capability: tuple[int, int], architectures: list[str]) -> bool:
    """Return whether a build for `architectures` ("sm_86", "compute_90") runs on such a GPU.

    Machine code runs on later GPUs of the same major version; the driver compiles PTX for any later GPU.
    """
    for architecture in architectures:
        kind, _, digits = architecture.partition("_")
        number = digits.rstrip("af")
        if not number.isdigit():
            continue
        major, minor = divmod(int(number), 10)
        if kind == "sm" and major == capability[0] and minor <= capability[1]:
            return True
        if kind == "compute" and (major, minor) <= capability:
            return True
    return False


def compiler_flaw() -> Flaw | None:
    """Return what Triton lacks to compile kernels; None where nothing is missing.

    Triton builds its launcher with a C compiler and Python's headers.
    """
    if importlib.util.find_spec("triton") is None:
        advice = "Triton is not made for Windows." if sys.platform == "win32" else "Install triton 3.7.1."
        return Flaw("Triton is not installed.", advice)
    if sys.platform == "win32":
        return None
    if not (os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")):
        return Flaw("There is no C compiler, and Triton needs one.", "Install gcc.")
    if not Path(sysconfig.get_paths()["include"], "Python.h").is_file():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return Flaw(
            "Python's headers are missing, and Triton needs Python.h.", f"Install python{version}-dev."
        )
    return None


def num_free_bytes(device: torch.device) -> int:
    """Return the free memory of a GPU, without what torch keeps of objects that are gone."""
    gc.collect()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]


def release_memory(device: torch.device) -> None:
    """Return memory of objects that are gone to the GPU; a GPU that failed may refuse that too."""
    gc.collect()
    if device.type != "cuda":
        return
    try:
        torch.cuda.empty_cache()
    except Exception:  # after an illegal access every call fails, with an error of any kind
        return


def first_line(said: str) -> str:
    """Return the first line of a library's message that says something, cut to a readable length."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[0][:_MAX_CHARS] if lines else ""
