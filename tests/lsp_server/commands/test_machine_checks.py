"""The doctor names the kernel that runs, each fault of a GPU's installation, and the next step."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from numba import config

from completion_engine.cpu.kernels import dot, language, matrix_unit
from completion_engine.gpu import machine
from completion_engine.gpu.machine import Flaw, Gpu, compiler_flaw, find_gpu, flaw_of_torch, has_code_for
from completion_engine.loading import backends as choices
from completion_engine.loading.backends import choose_precision
from completion_engine.target_model.weights import Precision
from lsp_server.commands.machine_checks import backend_check, gpu_checks, kernel_check, kernels_check

AVX2 = "+avx2,+fma,+f16c"
VNNI = f"{AVX2},+avx512f,+avx512bw,+avx512vnni"
CPU = torch.device("cpu")
BF16 = Precision("bfloat16", torch.bfloat16)

Force = Callable[[str], None]


@pytest.fixture
def force(monkeypatch: pytest.MonkeyPatch) -> Iterator[Force]:
    """Compile for a processor with just these features, as `NUMBA_CPU_FEATURES` does."""

    def forced(features: str) -> None:
        monkeypatch.setattr(config, "CPU_FEATURES", features)
        monkeypatch.setattr(matrix_unit, "is_allowed", lambda: True)
        language.features.cache_clear()
        dot.instruction_sets.cache_clear()

    yield forced
    language.features.cache_clear()
    dot.instruction_sets.cache_clear()


@pytest.mark.parametrize(
    ("features", "name"),
    [
        (AVX2, "AVX2"),
        (f"{AVX2},+avxvnni", "AVX-VNNI"),
        (VNNI, "AVX-512 VNNI"),
        (f"{VNNI},+amx-tile,+amx-int8", "AMX and AVX-512 VNNI"),
        ("+dotprod", "sdot"),
        ("+dotprod,+i8mm", "smmla"),
    ],
)
def test_weights_in_bytes_are_multiplied_by_the_named_kernel(force: Force, features: str, name: str) -> None:
    force(features)
    (check,) = kernel_check(choose_precision("auto", CPU), CPU)
    assert (check.state, check.found, check.advice) == ("ok", f"{name}, with weights in bytes", "")


@pytest.mark.parametrize(
    ("features", "state", "found"),
    [
        (AVX2, "slow", "bfloat16 by torch, not in hardware"),
        (f"{VNNI},+avx512bf16", "ok", "bfloat16 by torch, in hardware (avx512bf16)"),
    ],
)
def test_bf16_is_warned_of_where_it_is_asked_for_and_not_in_hardware(
    force: Force, features: str, state: str, found: str
) -> None:
    force(features)
    (check,) = kernel_check(BF16, CPU)
    assert (check.state, check.found) == (state, found)
    assert ("set dtype to auto" in check.advice) == (state == "slow")


@pytest.mark.parametrize("has_bf16", [True, False])
def test_a_processor_without_products_of_bytes_is_named_as_slow(
    force: Force, monkeypatch: pytest.MonkeyPatch, has_bf16: bool
) -> None:
    force("+sse2")
    monkeypatch.setattr(choices, "computes_bf16", lambda: has_bf16)
    (check,) = kernel_check(choose_precision("auto", CPU), CPU)
    assert check.state == "slow"
    assert check.found == ("bfloat16 by torch, not in hardware" if has_bf16 else "float32 by torch")
    assert "AVX2 with FMA and F16C" in check.advice


def test_a_gpu_needs_no_kernel_of_the_processor() -> None:
    assert kernel_check(BF16, torch.device("cuda")) == []


CARD = Gpu("A card", (8, 9), 8_000_000_000)


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a path on which there are only the programs that are named."""

    def make(*programs: str) -> None:
        for name in programs:
            (tmp_path / name).write_text("#!/bin/sh\nexit 0\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setattr(machine, "_DRIVER_FILE", tmp_path / "none")

    return make


@pytest.mark.parametrize(
    ("said", "cuda_version", "found", "advice"),
    [
        ("Torch not compiled with CUDA enabled", "", "without CUDA", "CUDA build (several GB)"),
        (
            "The NVIDIA driver on your system is too old (found version 11040).",
            "13.0",
            "too old for torch's CUDA 13.0",
            "Update the driver",
        ),
        ("CUDA unknown error\nmore", "13.0", "cannot use the GPU: CUDA unknown error", "nvidia-smi"),
    ],
)
def test_what_torch_says_is_explained(said: str, cuda_version: str, found: str, advice: str) -> None:
    flaw = flaw_of_torch(said, cuda_version)
    assert found in flaw.found
    assert advice in flaw.advice
    (check,) = gpu_checks(flaw)
    assert (check.state, check.found, check.advice) == ("slow", flaw.found, flaw.advice)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_driver_without_a_cuda_build_is_a_flaw_and_no_driver_is_none(
    bare_path: Callable[..., None],
) -> None:
    bare_path()
    assert find_gpu() is None
    assert [(check.state, check.found) for check in gpu_checks(None)] == [
        ("ok", "none: the model runs on the processor")
    ]
    bare_path("nvidia-smi")
    assert isinstance(find_gpu(), Flaw)


def test_a_missing_compiler_and_missing_headers_are_named(
    bare_path: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda _: object())
    headers = {**sysconfig.get_paths(), "include": str(tmp_path / "include")}
    monkeypatch.setattr(machine.sysconfig, "get_paths", lambda: headers)
    bare_path()
    flaw = compiler_flaw()
    assert flaw is not None
    assert (flaw.found, flaw.advice) == ("There is no C compiler, and Triton needs one.", "Install gcc.")
    bare_path("gcc")
    flaw = compiler_flaw()
    assert flaw is not None
    assert "Python.h" in flaw.found
    assert flaw.advice == f"Install python{sys.version_info.major}.{sys.version_info.minor}-dev."
    check = kernels_check(flaw)
    assert check.state == "slow"
    assert "plain torch" in check.advice
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "Python.h").touch()
    assert compiler_flaw() is None


@pytest.mark.parametrize(
    ("platform", "advice"), [("linux", "Install triton 3.7.1."), ("win32", "not made for")]
)
def test_a_missing_triton_is_named(platform: str, advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(machine.sys, "platform", platform)
    flaw = compiler_flaw()
    assert flaw is not None
    assert advice in flaw.advice


@pytest.mark.parametrize(
    ("capability", "runs"),
    [((6, 1), False), ((7, 0), False), ((7, 5), True), ((8, 9), True), ((9, 0), True), ((12, 1), True)],
)
def test_code_is_for_the_same_major_version_or_compiled_by_the_driver(
    capability: tuple[int, int], runs: bool
) -> None:
    assert has_code_for(capability, ["sm_75", "sm_80", "sm_86", "sm_90a", "compute_120", "odd"]) == runs


@pytest.mark.parametrize(
    ("gpu", "state", "kernels"),
    [
        (CARD, "ok", "triton"),
        (Gpu("T4", (7, 5), 16_000_000_000), "ok", "need compute capability 8.0, and T4 has 7.5"),
        (Gpu("GTX 1080", (6, 1), 8_000_000_000, has_code=False), "slow", "no code for GTX 1080"),
        (Gpu("RX", (11, 0), 8_000_000_000, is_nvidia=False), "ok", "for NVIDIA GPUs"),
    ],
)
def test_a_card_is_named_with_its_free_memory_and_what_keeps_our_kernels_from_it(
    gpu: Gpu, state: str, kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "num_free_bytes", lambda _: 7_000_000_000)
    monkeypatch.setattr(machine, "compiler_flaw", lambda: None)
    card, said = gpu_checks(gpu)
    assert (card.state, card.found.split(",")[0]) == (state, gpu.name)
    assert "7.0 of" in card.found
    assert kernels in said.found


def test_the_backend_is_named_with_its_reason() -> None:
    assert backend_check("GPU kernels", "").state == "ok"
    check = backend_check("CPU", "The card is full.")
    assert (check.state, check.found) == ("slow", "CPU: The card is full.")
