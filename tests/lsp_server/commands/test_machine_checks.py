"""The doctor names the kernel that runs, and warns of slow products only where they would run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from numba import config

from completion_engine.cpu.kernels import dot, matrix_unit, processor
from completion_engine.loading import rungs as choices
from completion_engine.loading.rungs import choose_precision
from completion_engine.target_model.weights import Precision
from lsp_server.commands.machine_checks import kernel_check

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
        processor.features.cache_clear()
        dot.instruction_sets.cache_clear()

    yield forced
    processor.features.cache_clear()
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
    monkeypatch.setattr(choices, "can_pack", lambda _weight: has_bf16)
    (check,) = kernel_check(choose_precision("auto", CPU), CPU)
    assert check.state == "slow"
    assert check.found == ("bfloat16 by torch, not in hardware" if has_bf16 else "float32 by torch")
    assert "AVX2 with FMA and F16C" in check.advice


def test_a_gpu_needs_no_kernel_of_the_processor() -> None:
    assert kernel_check(BF16, torch.device("cuda")) == []
