"""Triton's interpreter made fit for tests: sums and roundings as hardware has them, and patched once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest


def as_floats(handle: Any) -> Any:
    """An interpreted tensor's numbers; the interpreter keeps bf16 as 16-bit integers."""
    if str(handle.dtype.scalar) == "bf16":
        return (handle.data.astype(np.uint32) << 16).view(np.float32)
    return handle.data.astype(np.float32)


def dot_alike(_builder: object, a: Any, b: Any, total: Any, *_: object) -> Any:
    """A matrix product that treats every row of a tile alike, as hardware does.

    The interpreter's own asks numpy in float32, whose sums depend on where in a tile a row stands, and takes
    bf16 for integers. Sums in float64 differ by too little to show in float32.
    """
    result = as_floats(a).astype(np.float64) @ as_floats(b).astype(np.float64) + total.data
    return type(total)(result.astype(np.float32), total.dtype.scalar)


def round_alike(builder: Any, number: Any, target: Any) -> Any:
    """A float32 as the nearest bf16, as hardware rounds; the interpreter's own cuts off."""
    if (str(number.dtype.scalar), str(target.scalar)) != ("fp32", "bf16"):
        return builder.cast_impl(number, target)
    bits = number.data.view(np.uint32)
    nearest = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
    return type(number)(nearest.astype(np.uint16), target.scalar)


@contextmanager
def language_patched_once() -> Iterator[None]:
    """The interpreter puts its own functions into Triton's language once, and takes them out at the end.

    By itself it does both for every launch, and looks through the whole language for every function that
    a kernel calls, which takes longer than most kernels.
    """
    from triton.runtime import interpreter

    patch_language: Callable[[Any], Any] = interpreter._patch_lang
    scopes: dict[str, Any] = {}  # by the module in which a kernel or a function of one is defined

    class Kept:
        def restore(self) -> None:
            """A launch has ended."""

    def patch_once(kernel: Callable[..., Any]) -> Kept:
        if kernel.__module__ not in scopes:
            scopes[kernel.__module__] = patch_language(kernel)
        return Kept()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "_patch_lang", patch_once)
        yield
    for scope in reversed(scopes.values()):
        scope.restore()


@contextmanager
def interpreted() -> Iterator[None]:
    """Kernels that are launched in the block run on the CPU, as hardware computes."""
    from triton.runtime.interpreter import InterpreterBuilder

    with pytest.MonkeyPatch.context() as patch, language_patched_once():
        patch.setattr(InterpreterBuilder, "create_dot", dot_alike)
        patch.setattr(InterpreterBuilder, "create_fp_trunc", round_alike)
        yield
