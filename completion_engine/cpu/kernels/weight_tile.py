"""The inner loop of a product in the machine's own instructions: sixteen outputs for a few rows.

It is written in LLVM's language, for no other one here has the instructions that multiply bytes (`dot`).
`packing` says how weights lie, `product` how inputs do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from completion_engine.cpu.kernels import dot
from completion_engine.cpu.kernels.packing import (
    BLOCK,
    NUM_GROUPS,
    RECORDS,
    ROW_BYTES,
    ZERO_LEVELS,
    TileRecord,
)
from completion_engine.cpu.kernels.vectors import F16, F32, I1, I8, I16, I32, I64, Vectors, instruction, many

# Bytes of weights that are fetched ahead, far into the second cache and near into the first; the machine's
# own look-ahead comes too late.
_FAR, _NEAR = 8192, 1024
_SECOND, _FIRST = 2, 3  # caches, as LLVM counts them
_LINE = 64  # bytes that memory gives at once


@instruction(num_literals=3)
def add_up(
    make: Vectors,
    instruction_set: int,
    bits: int,
    num_rows: int,
    weights: Any,
    rows: Any,
    units: Any,
    bias: Any,
    outputs: Any,
    stride: Any,
    num_blocks: Any,
) -> None:
    """Write `bias + units * sum(weights * rows)` of one tile for some rows.

    First come the number of one of `dot.INSTRUCTION_SETS`, a weight's bits, and how many rows. Of the others
    all but `stride`, the number of outputs of a row, and `num_blocks` are addresses. Blocks are added one
    behind the other, so that a row's sum is the same beside any.
    """
    totals = make.sums(num_rows)
    tile = _Tile(make, dot.INSTRUCTION_SETS[instruction_set], RECORDS[bits], totals)
    with cgutils.for_range(make.builder, num_blocks) as loop:
        record = make.step(weights, loop.index, RECORDS[bits].num_bytes)
        tile.add_block(record, make.step(rows, loop.index, ROW_BYTES * num_rows))
    unit, first = (make.load(address, 0, many(F32)) for address in (units, bias))
    for row, total in enumerate(totals):
        result = make.fused(make.builder.load(total), unit, first)
        make.store(result, make.step(outputs, stride, 4 * row), 0)


class _Tile:
    """Weights in one form of record, and the sums of some rows."""

    def __init__(self, make: Vectors, product: dot.Dot, record: TileRecord, totals: Sequence[Any]) -> None:
        self._make, self._dot, self._record, self._totals = make, product, record, totals
        self._fetch = make.external("llvm.prefetch.p0", [I8.as_pointer(), I32, I32, I32], ir.VoidType())

    def add_block(self, record: Any, rows: Any) -> None:
        """Add one block's products to the sums; both are addresses."""
        make, num_rows = self._make, len(self._totals)
        scales_at, *zeros_at, shares_at = ((BLOCK + 4 * number) * num_rows for number in range(4))
        zero_at = dict(zip(ZERO_LEVELS, zeros_at, strict=True)).get(self._record.zero_level)
        for line in range(0, self._record.num_bytes, _LINE):
            for distance, cache in ((_FAR, _SECOND), (_NEAR, _FIRST)):
                ahead = make.pointer(record, distance + line, I8)
                make.builder.call(self._fetch, [ahead, I32(0), I32(cache), I32(1)])
        groups = self._groups(record)
        weight_scales = self._halves(record, self._record.scales_at)
        for row, total in enumerate(self._totals):
            inputs = [make.repeated(rows, BLOCK * row + 4 * group, I32) for group in range(NUM_GROUPS)]
            zero = make.repeated(rows, zero_at + 4 * row, I32) if zero_at else make.all_of(I32, 0)
            found = dot.add_up(self._dot, make, self._record.bits, groups, inputs, zero)
            scale = make.builder.fmul(weight_scales, make.repeated(rows, scales_at + 4 * row, F32))
            make.add_product(total, make.builder.sitofp(found, many(F32)), scale)
            if self._record.floors_at:
                floors = self._halves(record, self._record.floors_at)
                make.add_product(total, floors, make.repeated(rows, shares_at + 4 * row, F32))

    def _groups(self, record: Any) -> list[Any]:
        """The levels of sixteen outputs and four inputs each, as bytes."""
        builder = self._make.builder
        if self._record.bits == 8:
            bytes_of = [self._make.load(record, 64 * group, many(I8, 64)) for group in range(NUM_GROUPS)]
            return [builder.bitcast(found, many(I32)) for found in bytes_of]
        pairs = [self._make.load(record, 64 * pair, many(I16, 32)) for pair in range(NUM_GROUPS // 2)]
        low = ir.Constant(many(I16, 32), [0x0F0F] * 32)
        by_four = ir.Constant(many(I16, 32), [4] * 32)
        nibbles = [builder.and_(pair, low) for pair in pairs]
        nibbles += [builder.and_(builder.lshr(pair, by_four), low) for pair in pairs]
        if self._record.highs_at:
            nibbles = [self._with_high(record, group, found) for group, found in enumerate(nibbles)]
        return [builder.bitcast(found, many(I32)) for found in nibbles]

    def _with_high(self, record: Any, group: int, nibbles: Any) -> Any:
        builder = self._make.builder
        is_high = builder.bitcast(
            self._make.load(record, self._record.highs_at + 8 * group, I64), many(I1, 64)
        )
        found = builder.bitcast(nibbles, many(I8, 64))
        return builder.select(is_high, builder.or_(found, ir.Constant(many(I8, 64), [16] * 64)), found)

    def _halves(self, record: Any, at: int) -> Any:
        return self._make.builder.fpext(self._make.load(record, at, many(F16)), many(F32))
