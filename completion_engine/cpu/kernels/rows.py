"""Kernels that compute one row at a time: norms, the gate of an MLP, and rounding to bytes after either.

A row is one token's numbers. Arrays of numbers are float32 or bf16 (see `language`).
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from completion_engine.cpu.kernels.language import (
    Array,
    Floats,
    exponential,
    inlined,
    kernel,
    narrowed,
    places,
    widened,
)
from completion_engine.cpu.kernels.packing import BLOCK, ONE_BITS, ROW_BYTES, ZERO_LEVELS
from completion_engine.cpu.kernels.vectors import (
    F32,
    I8,
    I16,
    I32,
    LANES,
    Vectors,
    instruction,
    many,
    sum_of_products,
)

MAX_LEVEL = 127
LANE_BYTES = 4  # each block of a row has them, see `rounded.RoundedRows`
_MIDDLE = 128  # keeps what is rounded by cutting off above zero
_SMALLEST_SCALE = 2.0**-99  # scale of zeros; its inverse is still finite
_FRACTION, _EXPONENT = 0x007FFFFF, 0x7F800000  # bits of a float32
_F32 = np.float32


class GroupShape(NamedTuple):
    """How rounded rows lie: blocks of a row, rows of a group, rows before the last group and in it."""

    num_blocks: int
    group_size: int
    num_before_last: int
    last_size: int


_SHAPE = places(GroupShape, 0)
SHAPE_SIZE = len(_SHAPE)


@kernel
def add_norm(x: Floats, added: Array, weight: Array, eps: float, normed: Array) -> None:
    """`x += added`, and `normed` the root mean square norm of that times weight.

    x, added and normed are [num_rows, hidden_size], weight [hidden_size].
    """
    for row in range(x.shape[0]):
        factor = _add(x[row], added[row], eps)
        for at in range(x.shape[1]):
            normed[row, at] = narrowed(x[row, at] * factor * widened(weight[at]), normed)


@kernel
def norm(x: Array, eps: float, normed: Array) -> None:
    """The root mean square norm of each row; both are [num_rows, hidden_size]."""
    for row in range(x.shape[0]):
        factor = norm_factor(x[row], eps)
        for at in range(x.shape[1]):
            normed[row, at] = narrowed(widened(x[row, at]) * factor, normed)


@kernel
def add_norm_levels(
    x: Floats, added: Array, weight: Array, eps: Any, row: int, memory: int, shape: Array
) -> None:
    """`add_norm` of one row, rounded; see `levels`."""
    normed = np.empty(shape[_SHAPE.num_blocks] * BLOCK, np.float32)
    normed[x.shape[1] :] = 0
    factor = _add(x[row], added[row], eps)
    for at in range(x.shape[1]):
        normed[at] = x[row, at] * factor * widened(weight[at])
    _round(normed, row, memory, shape)


@kernel
def gate_levels(gate_up: Array, num_outputs: int, row: int, memory: int, shape: Array) -> None:
    """`silu(gate) * up` of one row [2 * num_outputs], rounded; see `levels`."""
    gated = np.empty(shape[_SHAPE.num_blocks] * BLOCK, np.float32)
    gated[num_outputs:] = 0
    for at in range(num_outputs):
        gated[at] = _gated(widened(gate_up[row, at]), widened(gate_up[row, num_outputs + at]))
    _round(gated, row, memory, shape)


@kernel
def levels(x: Array, row: int, memory: int, shape: Array) -> None:
    """Fill one row of the `rounded.RoundedRows` at an address with the nearest levels of x [num_rows,
    num_inputs].
    """
    wide = np.empty(shape[_SHAPE.num_blocks] * BLOCK, np.float32)
    wide[x.shape[1] :] = 0
    for at in range(x.shape[1]):
        wide[at] = widened(x[row, at])
    _round(wide, row, memory, shape)


@kernel
def round_whole_rows(x: Array, levels: Array, scales: Floats) -> None:
    """The nearest levels of each row, int8 shaped as x [num_rows, num_inputs], and scales [num_rows]."""
    for row in range(x.shape[0]):
        scale = _F32(_SMALLEST_SCALE)
        for at in range(x.shape[1]):
            scale = max(scale, abs(widened(x[row, at])) / _F32(MAX_LEVEL))
        for at in range(x.shape[1]):
            levels[row, at] = np.int8(np.rint(widened(x[row, at]) / scale))
        scales[row] = scale


@inlined
def norm_factor(numbers: Any, eps: Any) -> Any:
    """Factor that makes the root mean square of a row one."""
    return _factor(sum_of_products(numbers, numbers), numbers.shape[0], eps)


@inlined
def _factor(total: Any, size: Any, eps: Any) -> Any:
    return _F32(1) / np.sqrt(total / _F32(size) + _F32(eps))


@inlined
def _gated(left: Any, right: Any) -> Any:
    return left / (_F32(1) + exponential(-left)) * right


@inlined
def _add(x: Any, added: Any, eps: Any) -> Any:
    """`x += added`; returns what norms it."""
    for at in range(x.shape[0]):
        x[at] += widened(added[at])
    return norm_factor(x, eps)


@inlined
def _round(x: Any, row: Any, memory: Any, shape: Any) -> None:
    """Fill in one row of `rounded.RoundedRows`; x is as long as its blocks."""
    num_blocks, size, num_before = (
        shape[_SHAPE.num_blocks],
        shape[_SHAPE.group_size],
        shape[_SHAPE.num_before_last],
    )
    first, place = row // size * size, row % size
    if row >= num_before:
        first, place, size = num_before, row - num_before, shape[_SHAPE.last_size]
    num_held = num_before + shape[_SHAPE.last_size]
    for block in range(num_blocks):
        before = first * num_blocks + block * size
        start = memory + before * ROW_BYTES
        lanes = memory + num_held * num_blocks * ROW_BYTES + before * LANE_BYTES + 4 * place
        numbers, levels = x.ctypes.data + 4 * BLOCK * block, start + place * BLOCK
        _round_block(numbers, levels, start + size * BLOCK + 4 * place, lanes, 4 * size)


def write_rounded(make: Vectors, numbers: Any, levels: Any, beside: Any, lanes: Any, step: Any) -> None:
    """Round 32 numbers to bytes.

    Sums beside the row go to `beside` and `lanes`, in steps of bytes: see `rounded.RoundedRows`.
    """
    builder = make.builder
    parts = [make.load(numbers, 4 * LANES * at, many(F32)) for at in range(BLOCK // LANES)]
    top = make.largest(
        [builder.and_(builder.bitcast(x, many(I32)), make.all_of(I32, 0x7FFFFFFF)) for x in parts]
    )
    scale = builder.fdiv(builder.bitcast(top, F32), F32(MAX_LEVEL))
    scale = builder.select(
        builder.fcmp_unordered(">", scale, F32(_SMALLEST_SCALE)), scale, F32(_SMALLEST_SCALE)
    )
    # The power of two from there up: products scale by adding to an exponent, see `weight_tile`.
    bits = builder.and_(builder.add(builder.bitcast(scale, I32), I32(_FRACTION)), I32(_EXPONENT))
    scale = builder.bitcast(bits, F32)
    inverse = make.spread(builder.bitcast(builder.sub(I32(2 * ONE_BITS), bits), F32))
    shifted = [make.fused(x, inverse, make.all_of(F32, _MIDDLE + 0.5)) for x in parts]
    found = [builder.sub(builder.fptosi(x, many(I32)), make.all_of(I32, _MIDDLE)) for x in shifted]
    for at, part in enumerate(found):
        make.store(builder.trunc(part, many(I8)), levels, LANES * at)
    lane_sums = _by_lanes(make, reduce(builder.add, found))
    total = builder.add(*lane_sums)
    zeros = [builder.mul(total, I32(-level)) for level in ZERO_LEVELS]
    share = builder.fmul(scale, builder.sitofp(total, F32))
    for at, number in enumerate((scale, *zeros, share)):
        make.store(number, make.step(beside, step, at), 0)
    for at, lane_sum in enumerate(lane_sums):
        make.store(builder.trunc(builder.mul(lane_sum, I32(-ZERO_LEVELS[0])), I16), lanes, 2 * at)


def _by_lanes(make: Vectors, levels: Any) -> tuple[Any, Any]:
    """Sums of the first two of all fours, and of the last two."""
    builder = make.builder
    while levels.type.count > 4:
        half = levels.type.count // 2
        levels = builder.add(make.part(levels, 0, half), make.part(levels, half, half))
    beside = builder.shuffle_vector(levels, levels, ir.Constant(many(I32, 4), [1, 0, 3, 2]))
    pairs = builder.add(levels, beside)
    return builder.extract_element(pairs, I32(0)), builder.extract_element(pairs, I32(2))


# `write_rounded` as a part of a kernel.
_round_block = instruction(num_literals=0)(write_rounded)
