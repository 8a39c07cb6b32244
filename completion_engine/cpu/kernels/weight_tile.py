"""The inner loop of a product in the machine's own instructions: sixteen outputs for a few rows.

It is written in LLVM's language, for no other one here has the instructions that multiply bytes (`dot`).
`packing` defines the layout of weights, `product` that of inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from completion_engine.cpu.kernels import dot
from completion_engine.cpu.kernels.packing import (
    BLOCK,
    ONE_BITS,
    RECORDS,
    ROW_BYTES,
    TILE_OUTPUTS,
    BlockRow,
    TileRecord,
)
from completion_engine.cpu.kernels.row_quads import QUAD, QuadTile, add_quads
from completion_engine.cpu.kernels.vectors import F16, F32, I8, I32, I64, Vectors, instruction, many

# Bytes of weights that are fetched ahead, far into the second cache and near into the first; the machine's
# own look-ahead comes too late.
_FAR, _NEAR = 8192, 1024
_SECOND, _FIRST = 2, 3  # caches, as LLVM counts them
_LINE = 64  # bytes that memory gives at once


def write_tile(
    make: Vectors,
    instruction_set: int,
    bits: int,
    num_rows: int,
    weights: Any,
    rows: Any,
    lanes: Any,
    units: Any,
    bias: Any,
    outputs: Any,
    stride: Any,
    num_blocks: Any,
) -> None:
    """Write `bias + units * sum(weights * rows)` of one tile for some rows.

    First come the number of one of `dot.INSTRUCTION_SETS`, a weight's bits, and how many rows. All other
    arguments are addresses, except `stride`, the number of outputs of a row, and `num_blocks`. Blocks are
    added one after the other, so that a row's sum is the same beside any.
    """
    product, record = dot.INSTRUCTION_SETS[instruction_set], RECORDS[bits]
    if product.quads is not None and num_rows % QUAD == 0:
        tile = QuadTile(product.quads, record)
        ends = units, bias, outputs, stride
        with (
            _quad_totals(make, num_rows, ends) as totals,
            cgutils.for_range(make.builder, num_blocks) as loop,
        ):
            place, block = make.step(weights, loop.index, record.num_bytes), make.room(tile.num_bytes)
            fetch_ahead(make, place, record)
            tile.unpack(make, place, block)
            add_quads(make, tile, num_rows, block, (rows, lanes), loop.index, totals)
        return
    _write_few(make, product, record, num_rows, (weights, rows), (units, bias, outputs, stride), num_blocks)


# `write_tile` as a part of a kernel.
add_up = instruction(num_literals=3)(write_tile)


@contextmanager
def _quad_totals(make: Vectors, num_rows: int, ends: tuple[Any, Any, Any, Any]) -> Iterator[Any]:
    """The address of sums [num_rows, 16] float32, which begin at zero; outputs are written at the end."""
    units, bias, outputs, stride = ends
    kind = many(F32, TILE_OUTPUTS // 2)
    totals = make.room(4 * TILE_OUTPUTS * num_rows)
    with make.each(num_rows) as row:
        for at in range(2):
            make.store(ir.Constant(kind, None), make.step(totals, row, 4 * TILE_OUTPUTS), 32 * at)
    yield totals
    for at in range(2):
        unit, begin = (make.load(address, 32 * at, kind) for address in (units, bias))
        with make.each(num_rows) as row:
            total = make.load(make.step(totals, row, 4 * TILE_OUTPUTS), 32 * at, kind)
            place = make.step(outputs, row, make.builder.mul(stride, I64(4)))
            make.store(make.fused(total, unit, begin), place, 32 * at)


def _write_few(
    make: Vectors,
    product: dot.Dot,
    record: TileRecord,
    num_rows: int,
    places: tuple[Any, Any],
    ends: tuple[Any, Any, Any, Any],
    num_blocks: Any,
) -> None:
    """Sums stay in registers; places are those of weights and rows."""
    weights, rows = places
    units, bias, outputs, stride = ends
    num_at_once = min(num_rows, product.max_rows)
    with make.each(num_rows // num_at_once) as part:
        tile = _Tile(make, product, record, num_rows, num_at_once)
        levels, beside = (
            make.step(make.builder.add(rows, I64(start)), part, size * num_at_once)
            for start, size in ((0, BLOCK), (BLOCK * num_rows, 4))
        )
        with cgutils.for_range(make.builder, num_blocks) as loop:
            place = make.step(weights, loop.index, record.num_bytes)
            at = make.builder.mul(loop.index, I64(ROW_BYTES * num_rows))
            fetch_ahead(make, place, record)
            tile.add_block(place, make.builder.add(levels, at), make.builder.add(beside, at))
        tile.write(
            units, bias, make.step(outputs, part, make.builder.mul(stride, I64(4 * num_at_once))), stride
        )


def fetch_ahead(make: Vectors, record: Any, form: TileRecord) -> None:
    """Have bytes of later records fetched while this one is used."""
    fetch = make.external("llvm.prefetch.p0", [I8.as_pointer(), I32, I32, I32], ir.VoidType())
    for line in range(0, form.num_bytes, _LINE):
        for distance, cache in ((_FAR, _SECOND), (_NEAR, _FIRST)):
            make.builder.call(fetch, [make.pointer(record, distance + line, I8), I32(0), I32(cache), I32(1)])


class _Tile:
    """Weights in one form of record, and the sums of some of a group's rows."""

    def __init__(
        self, make: Vectors, product: dot.Dot, record: TileRecord, group_size: int, num_rows: int
    ) -> None:
        self._make, self._dot, self._record, self._group_size = make, product, record, group_size
        self._firsts = range(0, TILE_OUTPUTS, product.num_outputs)
        self._totals = [make.sums(num_rows, product.num_outputs) for _ in self._firsts]

    def add_block(self, record: Any, levels: Any, beside: Any) -> None:
        """Add one block's products to the sums; all are addresses, `beside` of what stands beside levels."""
        make = self._make
        rows = [self._row(levels, beside, row) for row in range(len(self._totals[0]))]
        for first, totals in zip(self._firsts, self._totals, strict=True):
            found = self._dot.levels(make, self._record, record, first)
            scales = self._halves(record, self._record.scales_at, first)
            sums = self._dot.add_up(make, self._record, found, rows)
            for row, (total, whole) in enumerate(zip(totals, sums, strict=True)):
                scale = self._scaled(scales, beside, row)
                make.add_product(total, make.builder.sitofp(whole, scales.type), scale)
                if self._record.floors_at:
                    floors = self._halves(record, self._record.floors_at, first)
                    make.add_product(total, floors, self._beside(beside, 3, row, F32))

    def write(self, units: Any, bias: Any, outputs: Any, stride: Any) -> None:
        """Write the sums times units, plus bias, to rows of outputs that are `stride` numbers apart."""
        make, kind = self._make, many(F32, self._dot.num_outputs)
        for first, totals in zip(self._firsts, self._totals, strict=True):
            unit, begin = (make.load(address, 4 * first, kind) for address in (units, bias))
            for row, total in enumerate(totals):
                result = make.fused(make.builder.load(total), unit, begin)
                make.store(result, make.step(outputs, stride, 4 * row), 4 * first)

    def _row(self, levels: Any, beside: Any, row: int) -> BlockRow:
        add = self._make.builder.add
        offset = 4 * (self._record.zero * self._group_size + row)
        zero = add(beside, I64(offset)) if self._record.zero else None
        return BlockRow(add(levels, I64(BLOCK * row)), zero)

    def _scaled(self, scales: Any, beside: Any, row: int) -> Any:
        """Scales times a row's, which is a power of two: either way gives the same bits."""
        if not self._dot.adds_exponents:
            return self._make.builder.fmul(scales, self._beside(beside, 0, row, F32))
        builder, kind = self._make.builder, many(I32, self._dot.num_outputs)
        one = ir.Constant(kind, [ONE_BITS] * self._dot.num_outputs)
        exponents = builder.sub(builder.bitcast(scales, kind), one)
        return builder.bitcast(builder.add(exponents, self._beside(beside, 0, row, I32)), scales.type)

    def _beside(self, beside: Any, number: int, row: int, kind: Any) -> Any:
        offset = 4 * (number * self._group_size + row)
        return self._make.repeated(beside, offset, kind, self._dot.num_outputs)

    def _halves(self, record: Any, at: int, first: int) -> Any:
        make, lanes = self._make, self._dot.num_outputs
        return make.builder.fpext(make.load(record, at + 2 * first, many(F16, lanes)), many(F32, lanes))
