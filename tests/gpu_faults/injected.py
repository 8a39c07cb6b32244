"""The faults as data: how each is injected, the backend that has to answer, and what has to be said."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from completion_engine import transformers_decoder
from completion_engine.drafting import distilled
from completion_engine.gpu import launch, machine
from completion_engine.gpu.decoder import GraphedDecoder
from completion_engine.gpu.machine import Flaw, Gpu
from completion_engine.loading.backends import BackendName
from completion_engine.target_model.decoder import InPlaceBranches
from completion_engine.target_model.language_model import LanguageModel

Inject = Callable[[pytest.MonkeyPatch], None]
GPU = Gpu("Test GPU", (8, 9), 8_000_000_000, device=torch.device("cpu"))


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its name, its injection, the backend that answers, and a part of the reason.

    `drafts` builds the drafters too; with `later` the fault comes about once the engine is loaded.
    """

    name: str
    inject: Inject
    backend: BackendName
    said: str = ""
    drafts: bool = False
    later: bool = False
    device: str = "auto"


def raises(error: BaseException) -> Callable[..., Any]:
    """A function that raises."""

    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


def fails(owner: Any, name: str, error: BaseException) -> Inject:
    """`owner.name` raises."""
    return lambda patch: patch.setattr(owner, name, raises(error))


def wrong(name: str, damage: Callable[[Any], object], at: int = -1) -> Inject:
    """A launcher computes, and its result is damaged: always in the same way."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        right = getattr(launch, name)

        def run(*values: Any, **options: Any) -> None:
            right(*values, **options)
            damage(values[at])

        patch.setattr(launch, name, run)

    return inject


def both(*all_of: Inject) -> Inject:
    """Several at once."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        for one in all_of:
            one(patch)

    return inject


def found(gpu: Gpu | Flaw | None) -> Inject:
    """The machine has this GPU, or this flaw."""
    return lambda patch: patch.setattr(machine, "find_gpu", lambda: gpu)


def lacks(flaw: str) -> Inject:
    """The compiler lacks something."""
    return lambda patch: patch.setattr(machine, "compiler_flaw", lambda: Flaw(flaw, "Install it."))


def torch_says(error: BaseException, cuda_version: str | None) -> Inject:
    """torch itself is asked for the GPU, beside a driver's program on the path, and raises."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        patch.undo()
        folder = Path(__file__).parent / "driver"
        patch.setenv("PATH", str(folder), prepend=":")
        patch.setattr(torch.cuda, "init", raises(error))
        patch.setattr(torch.version, "cuda", cuda_version)

    return inject


def memory(num_bytes: int) -> Inject:
    """This number of bytes is free on the card."""
    return lambda patch: patch.setattr(machine, "num_free_bytes", lambda _: num_bytes)


def sharpened_attention(patch: pytest.MonkeyPatch) -> None:
    """Attention scales its scores wrongly."""

    def sharpen(decoder: GraphedDecoder) -> None:
        decoder.scale *= 40.0

    patch.setattr(GraphedDecoder, "rehearse", sharpen)


def after(num_calls: int, owner: Any, name: str, error: BaseException) -> Inject:
    """The function works this number of times, then it raises for ever."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        right, calls = getattr(owner, name), [0]

        def run(*values: Any, **options: Any) -> Any:
            calls[0] += 1
            if calls[0] > num_calls:
                raise error
            return right(*values, **options)

        patch.setattr(owner, name, run)

    return inject


def missing_module(patch: pytest.MonkeyPatch) -> None:
    """Importing the decoder fails, as without triton."""
    patch.setitem(sys.modules, "completion_engine.gpu.decoder", None)


def overflows(patch: pytest.MonkeyPatch) -> None:
    """Logits in float16 are not numbers."""
    right = LanguageModel.forward

    def forward(self: LanguageModel, *values: Any, **options: Any) -> torch.Tensor:
        logits = right(self, *values, **options)
        return logits * float("nan") if self.precision.dtype == torch.float16 else logits

    patch.setattr(LanguageModel, "forward", forward)


try:
    from triton.runtime.errors import OutOfResources, PTXASError

    RESOURCES: Exception = OutOfResources(163_840, 101_376, "shared memory")
    PTXAS: Exception = PTXASError("ptxas fatal: Value 'sm_999' is not defined for option 'gpu-name'")
except ImportError:  # the tests that need them are skipped then
    RESOURCES = PTXAS = RuntimeError("no triton")
GCC = subprocess.CalledProcessError(1, ["gcc", "main.c", "-lcuda"])
LIBCUDA = AssertionError("libcuda.so cannot found!\nPossible files are located at []")
OOM = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.02 GiB.")
ILLEGAL = RuntimeError("CUDA error: an illegal memory access was encountered")
TOO_OLD = RuntimeError("The NVIDIA driver on your system is too old (found version 11040).")
NO_IMAGE = RuntimeError("CUDA error: no kernel image is available for execution on the device")
OLD_GPU = replace(GPU, name="GTX 1080", capability=(6, 1), has_code=False)

FAULTS: tuple[Fault, ...] = (
    Fault("none", lambda _: None, "GPU kernels"),
    Fault(
        "Python.h is missing",
        both(fails(launch, "run_add_and_norm", GCC), lacks("Python's headers are missing.")),
        "GPU torch",
        "headers are missing",
    ),
    Fault(
        "no C compiler",
        both(fails(launch, "run_add_and_norm", GCC), lacks("There is no C compiler.")),
        "GPU torch",
        "no C compiler",
    ),
    Fault("gcc fails", fails(launch, "run_add_and_norm", GCC), "GPU torch", "CalledProcessError"),
    Fault("no libcuda", fails(launch, "run_add_and_norm", LIBCUDA), "GPU torch", "libcuda.so"),
    Fault(
        "no triton",
        both(missing_module, lacks("Triton is not installed.")),
        "GPU torch",
        "not installed",
    ),
    Fault("triton is broken", missing_module, "GPU torch", "ModuleNotFoundError"),
    Fault(
        "a product needs too much shared memory",
        fails(launch, "run_product", RESOURCES),
        "GPU torch",
        "shared",
    ),
    Fault(
        "the assembler rejects attention", fails(launch, "run_attention", PTXAS), "GPU torch", "PTXASError"
    ),
    Fault("embed has no image", fails(launch, "run_embed", NO_IMAGE), "GPU torch", "no kernel image"),
    Fault("place_heads raises", fails(launch, "run_place_heads", KeyError("cubin")), "GPU torch", "KeyError"),
    Fault("store_hidden raises", fails(launch, "run_store_hidden", RESOURCES), "GPU torch", "shared memory"),
    Fault(
        "memory ends while weights load",
        fails(GraphedDecoder, "_layer", OOM),
        "GPU torch",
        "memory ran out",
    ),
    Fault(
        "memory ends while passes are captured",
        fails(GraphedDecoder, "rehearse", OOM),
        "GPU torch",
        "ran out",
    ),
    Fault(
        "a capture needs too much",
        fails(GraphedDecoder, "rehearse", RESOURCES),
        "GPU torch",
        "shared memory",
    ),
    Fault(
        "gated_product is wrong",
        wrong("run_gated_product", lambda out: out.neg_()),
        "GPU torch",
        "differ from float32",
    ),
    Fault(
        "a product swaps rows",
        wrong("run_product", lambda out: out.copy_(out.flip(1))),
        "GPU torch",
        "differ from float32",
    ),
    Fault(
        "attention swaps rows",
        wrong("run_attention", lambda out: out.copy_(out.flip(0))),
        "GPU torch",
        "differ from float32",
    ),
    Fault(
        "a kernel writes NaN",
        wrong("run_add_and_norm", lambda out: out.fill_(torch.nan)),
        "GPU torch",
        "by nan%",
    ),
    Fault(
        "embed swaps rows",
        wrong("run_embed", lambda out: out.copy_(out.flip(0))),
        "GPU torch",
        "differ from float32",
    ),
    Fault("attention is too sharp", sharpened_attention, "GPU torch", "differ from float32"),
    Fault(
        "branches cannot be kept",
        fails(InPlaceBranches, "open", ILLEGAL),
        "GPU torch",
        "illegal memory access",
    ),
    Fault(
        "the trained drafter needs too much",
        fails(distilled, "DistilledNetwork", RESOURCES),
        "GPU kernels",
        "trained drafter is not used",
        drafts=True,
    ),
    Fault(
        "a pass fails while answering",
        after(1, GraphedDecoder, "forward", ILLEGAL),
        "GPU torch",
        "illegal",
        later=True,
    ),
    Fault(
        "memory ends while answering",
        after(0, GraphedDecoder, "forward", OOM),
        "GPU torch",
        "OutOfMemory",
        later=True,
    ),
    Fault(
        "a kernel fails while answering",
        fails(launch, "run_attention", RESOURCES),
        "GPU torch",
        "shared",
        later=True,
    ),
    Fault(
        "the whole card fails while answering",
        both(fails(launch, "run_embed", ILLEGAL), fails(transformers_decoder, "module_decoder", ILLEGAL)),
        "CPU",
        "illegal memory access",
        later=True,
    ),
    Fault(
        "kernels and torch both fail",
        both(fails(launch, "run_embed", PTXAS), fails(transformers_decoder, "module_decoder", NO_IMAGE)),
        "CPU",
        "no kernel image",
    ),
    Fault("the card is full", memory(1_000), "CPU", "of GPU memory"),
    Fault(
        "the card does not report its free memory",
        lambda patch: patch.setattr(machine, "num_free_bytes", raises(ILLEGAL)),
        "CPU",
        "illegal memory access",
    ),
    Fault("the driver is too old", torch_says(TOO_OLD, "13.0"), "CPU", "driver is too old"),
    Fault(
        "torch without CUDA beside a driver",
        torch_says(AssertionError("not compiled"), None),
        "CPU",
        "without CUDA",
    ),
    Fault(
        "the driver does not answer",
        torch_says(RuntimeError("CUDA unknown error"), "13.0"),
        "CPU",
        "unknown error",
    ),
    Fault("the setting says cuda and there is no GPU", found(None), "CPU", "no GPU", device="cuda"),
    Fault("a GTX 1080 that torch has no code for", found(OLD_GPU), "CPU", "no code for GTX 1080"),
    Fault(
        "a T4, below compute capability 8.0",
        found(replace(GPU, name="T4", capability=(7, 5))),
        "GPU torch",
        "capability 8.0",
    ),
    Fault(
        "a T4 whose float16 overflows",
        both(found(replace(GPU, name="T4", capability=(7, 5))), overflows),
        "GPU torch",
        "float16: Its logits",
    ),
    Fault(
        "a P100, whose float16 is of no use",
        found(replace(GPU, name="P100", capability=(6, 0))),
        "GPU torch",
        "P100 has 6.0",
    ),
    Fault("an AMD card", found(replace(GPU, name="RX 7900", is_nvidia=False)), "GPU torch", "NVIDIA GPUs"),
)
