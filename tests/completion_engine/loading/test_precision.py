"""What a target computes in: the best that the machine is fast at, or a clear error."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from completion_engine.cpu.linear import can_quantise
from completion_engine.errors import UserError
from completion_engine.loading.backends import choose_precision, plan_here
from completion_engine.loading.model import load_language_model

CPU = torch.device("cpu")
HAS_BYTES = can_quantise(torch.device("cpu"))


@pytest.mark.parametrize(
    ("name", "dtype"), [("bfloat16", torch.bfloat16), ("float32", torch.float32)], ids=["bf16", "float32"]
)
def test_a_named_dtype_is_taken(name: str, dtype: torch.dtype) -> None:
    precision = choose_precision(name, CPU)
    assert (precision.name, precision.dtype, precision.kind) == (name, dtype, "float")


def test_auto_takes_bytes_where_they_are_fast() -> None:
    assert choose_precision("auto", CPU).kind == ("int8" if HAS_BYTES else "float")


@pytest.mark.parametrize("name", ["fp4", "float16", ""])
def test_an_unknown_dtype_is_a_clear_error(name: str) -> None:
    with pytest.raises(UserError, match="Unknown dtype"):
        choose_precision(name, CPU)


@pytest.mark.skipif(HAS_BYTES, reason="this machine multiplies bytes fast")
def test_bytes_without_the_machine_for_them_are_a_clear_error() -> None:
    with pytest.raises(UserError, match="AVX2"):
        choose_precision("int8", CPU)


def test_an_unknown_device_is_a_clear_error() -> None:
    with pytest.raises(UserError, match="Unknown device"):
        plan_here("tpu", "auto")


@pytest.mark.skipif(not HAS_BYTES, reason="this machine does not multiply bytes fast")
def test_bytes_take_less_memory_and_stay_exact(tiny_model_dir: Path) -> None:
    small, large = (load_language_model(tiny_model_dir, "cpu", dtype, 512) for dtype in ("int8", "bfloat16"))
    assert small.num_weight_bytes < large.num_weight_bytes
    assert small.is_row_invariant
    assert small.verifies_trees
