"""Triton's interpreter made fit for tests: it sums and rounds as hardware does, and makes its types once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest

from completion_engine.target_model import language_model
from completion_engine.target_model.language_model import WIDTHS, LanguageModel
from completion_engine.target_model.measuring import measure
from completion_engine.target_model.passes import Findings


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


def fused_alike(_builder: object, a: Any, b: Any, c: Any) -> Any:
    """A multiplication and an addition that round once, as hardware does."""
    result = a.data.astype(np.float64) * b.data.astype(np.float64) + c.data.astype(np.float64)
    return type(a)(result.astype(np.float32), a.dtype.scalar)


def check_no_overflow(_semantic: object, left: Any, right: Any, operation: Callable[..., Any]) -> None:
    """Check that a sum, difference or product of integers fits its type.

    The interpreter's own check takes seven tensors, a third of the time of all kernels, and then asserts
    nothing unless it debugs.
    """
    kind = left.type.scalar
    if kind.int_bitwidth < 64:
        whole = _EXACT[operation.__name__](left.handle.data.astype(int), right.handle.data.astype(int))
        assert whole.min() >= kind.get_int_min_value(), f"{kind} overflows in {operation.__name__}"
        assert whole.max() <= kind.get_int_max_value(), f"{kind} overflows in {operation.__name__}"


_EXACT: dict[str, Callable[..., Any]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


def made_once(make: Callable[..., Any], key_of: Callable[..., Any]) -> Callable[..., Any]:
    """`make`, called once for each key of its arguments."""
    made: dict[Any, Any] = {}

    def made_before(*values: Any) -> Any:
        key = key_of(*values)
        if key not in made:
            made[key] = make(*values)
        return made[key]

    return made_before


def is_same_block(block: Any, other: object) -> bool:
    """Whether two types of blocks have the same numbers and shape."""
    if block is other or not isinstance(other, type(block)):
        return block is other
    return bool(block.element_ty == other.element_ty and block.shape.values == other.shape.values)


@contextmanager
def types_made_once() -> Iterator[None]:
    """The interpreter makes its types and shapes, and finds numpy's types, once and not for every tensor.

    Triton compares shapes as values of its own language, which takes a fifth of the time of all kernels; here
    they are compared as lists of integers.
    """
    from triton.language import core
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter

    dtype_of = made_once(interpreter._get_np_dtype, lambda kind: kind.scalar.name)
    block_of = made_once(core.block_type, lambda element, shape: (element.name, tuple(shape)))
    shape_of = cache(lambda sizes: (tuple(map(core.constexpr, sizes)), core.constexpr(math.prod(sizes))))
    broadcast: Callable[[Any, Any, Any], Any] = TritonSemantic.broadcast_impl_value

    def begin_tensor(tensor: Any, handle: Any, kind: Any) -> None:
        tensor.handle, tensor.type, tensor.dtype = handle, kind, kind.scalar
        tensor.shape, tensor.numel = shape_of(tuple(kind.shape.values) if kind.is_block() else ())

    def broadcast_unless_alike(semantic: Any, left: Any, right: Any) -> Any:
        types = left.type, right.type
        if all(kind.is_block() for kind in types) and types[0].shape.values == types[1].shape.values:
            return left, right
        return broadcast(semantic, left, right)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "_get_np_dtype", dtype_of)
        patch.setattr(core.block_type, "with_element_ty", lambda block, kind: block_of(kind, block.shape))
        patch.setattr(
            interpreter.InterpreterBuilder, "get_block_ty", lambda _, kind, shape: block_of(kind, shape)
        )
        patch.setattr(core.block_type, "__eq__", is_same_block)
        patch.setattr(TritonSemantic, "broadcast_impl_value", broadcast_unless_alike)
        patch.setattr(core.tensor, "__init__", begin_tensor)
        yield


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


# Findings for a target in a test that compares no bits.
KNOWN = Findings(True, True, True, dict.fromkeys(WIDTHS, 1.0), 0.0, {1: 1.0}, are_final=True)


def quickly_measured(target: LanguageModel) -> Findings:
    """Findings of a load. No pass of our own kernels is measured: interpreted, that takes most of a minute.

    The interpreter stays for a whole run of tests, in which other targets measure theirs, also where the
    decoder's module cannot be imported.
    """
    if type(target.decoder).__name__ != "GraphedDecoder":
        return measure(target)
    flags = target.is_row_invariant, target.verifies_drafts, target.verifies_trees
    return Findings(*flags, dict.fromkeys(target.widths, 1.0), 0.0, target.governor.paces)


@contextmanager
def interpreted() -> Iterator[None]:
    """Kernels that are launched in the block run on the CPU, as hardware computes; they are not measured."""
    from triton.language.semantic import TritonSemantic
    from triton.runtime.interpreter import InterpreterBuilder

    with pytest.MonkeyPatch.context() as patch, language_patched_once(), types_made_once():
        patch.setattr(language_model, "measure", quickly_measured)
        patch.setattr(TritonSemantic, "binary_op_sanitize_overflow_impl", check_no_overflow)
        patch.setattr(InterpreterBuilder, "create_dot", dot_alike)
        patch.setattr(InterpreterBuilder, "create_fma", fused_alike)
        patch.setattr(InterpreterBuilder, "create_fp_trunc", round_alike)
        yield
