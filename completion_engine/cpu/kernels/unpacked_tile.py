"""A tile whose levels are unpacked once for all rows of a pass, as instructions that a product is made of.

Some blocks are unpacked at a time, as many as stay in the first cache, and then multiplied with each group of
rows, by the matrix unit or by `row_quads`. Sums of all groups lie in memory meanwhile.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from completion_engine.cpu.kernels import matrix_unit
from completion_engine.cpu.kernels.dot import INSTRUCTION_SETS
from completion_engine.cpu.kernels.packing import RECORDS, TILE_OUTPUTS
from completion_engine.cpu.kernels.row_quads import QuadTile, add_quads
from completion_engine.cpu.kernels.vectors import F32, I8, I32, I64, Vectors, instruction, many
from completion_engine.cpu.kernels.weight_tile import fetch_ahead
from completion_engine.cpu.kernels.x86_dot import MatrixUnit

LINE = 64
TOTAL_BYTES = 4 * TILE_OUTPUTS  # bytes of a row's sums
SMALLEST_GROUP = matrix_unit.SIZES[-1]  # rows that can be multiplied together
_QUAD_BLOCKS = 8  # blocks of inputs at a time


def unpacks(instruction_set: int) -> bool:
    """Whether products are made of what is here, where there are rows enough."""
    found = INSTRUCTION_SETS[instruction_set]
    return isinstance(found, MatrixUnit) or found.quads is not None


def unpacks_from(instruction_set: int) -> int:
    """Rows from which on that pays."""
    return 9 if isinstance(INSTRUCTION_SETS[instruction_set], MatrixUnit) else 17


def blocks_at_once(instruction_set: int) -> int:
    """Number of blocks that are unpacked at a time."""
    is_unit = isinstance(INSTRUCTION_SETS[instruction_set], MatrixUnit)
    return matrix_unit.BLOCKS_AT_ONCE if is_unit else _QUAD_BLOCKS


def room_for_blocks(instruction_set: int, bits: int) -> int:
    """Bytes that unpacked blocks take, and what the unit writes beside them."""
    number = blocks_at_once(instruction_set)
    if isinstance(INSTRUCTION_SETS[instruction_set], MatrixUnit):
        return number * matrix_unit.LEVEL_BYTES + matrix_unit.NUM_SUMS * matrix_unit.SUM_BYTES
    return number * _tile_of(instruction_set, bits).num_bytes


def _tile_of(instruction_set: int, bits: int) -> QuadTile:
    if (quads := INSTRUCTION_SETS[instruction_set].quads) is None:
        raise AssertionError("`unpacks` said that there are some")
    return QuadTile(quads, RECORDS[bits])


@instruction(num_literals=1)
def begin(make: Vectors, instruction_set: int) -> None:
    """Make the registers of this thread ready."""
    if isinstance(INSTRUCTION_SETS[instruction_set], MatrixUnit):
        matrix_unit.write_begin(make)


@instruction(num_literals=1)
def end(make: Vectors, instruction_set: int) -> None:
    """Leave the registers to others."""
    if isinstance(INSTRUCTION_SETS[instruction_set], MatrixUnit):
        matrix_unit.write_end(make)


def write_blocks(
    make: Vectors, instruction_set: int, bits: int, weights: Any, blocks: Any, num_blocks: Any
) -> None:
    """Unpack some blocks' records at `weights` to `blocks`."""
    if isinstance(INSTRUCTION_SETS[instruction_set], MatrixUnit):
        matrix_unit.write_levels(make, bits, weights, blocks, num_blocks)
        return
    tile, record = _tile_of(instruction_set, bits), RECORDS[bits]
    with cgutils.for_range(make.builder, num_blocks) as loop:
        place = make.step(weights, loop.index, record.num_bytes)
        fetch_ahead(make, place, record)
        tile.unpack(make, place, make.step(blocks, loop.index, tile.num_bytes))


def write_products(
    make: Vectors,
    instruction_set: int,
    bits: int,
    num_rows: int,
    weights: Any,
    blocks: Any,
    rows: Any,
    lanes: Any,
    totals: Any,
    num_blocks: Any,
) -> None:
    """Add `(level - zero) * input`, scaled, of some unpacked blocks to `totals` [num_rows, 16] float32.

    First come the number of one of `dot.INSTRUCTION_SETS`, a weight's bits, and how many rows. All other
    arguments but `num_blocks` are addresses.
    """
    if isinstance(INSTRUCTION_SETS[instruction_set], MatrixUnit):
        sums = make.builder.add(blocks, I64(matrix_unit.BLOCKS_AT_ONCE * matrix_unit.LEVEL_BYTES))
        matrix_unit.write_sums(make, bits, num_rows, weights, blocks, rows, sums, totals, num_blocks)
        return
    tile = _tile_of(instruction_set, bits)
    with cgutils.for_range(make.builder, num_blocks) as loop:
        block = make.step(blocks, loop.index, tile.num_bytes)
        add_quads(make, tile, num_rows, block, (rows, lanes), loop.index, totals)


@instruction(num_literals=1)
def fetch_outputs(make: Vectors, instruction_set: int, num_rows: Any, outputs: Any, stride: Any) -> None:
    """Have the lines of a tile's outputs fetched, to be written later: each row lies on a page of its own.

    The matrix unit multiplies so fast that this takes it longer than it gains.
    """
    if isinstance(INSTRUCTION_SETS[instruction_set], MatrixUnit):
        return
    fetch = make.external("llvm.prefetch.p0", [I8.as_pointer(), I32, I32, I32], ir.VoidType())
    with cgutils.for_range(make.builder, num_rows) as loop:
        row = make.step(outputs, loop.index, make.builder.mul(stride, I64(4)))
        make.builder.call(fetch, [make.pointer(row, 0, I8), I32(1), I32(3), I32(1)])


unpack = instruction(num_literals=2)(write_blocks)
add_up = instruction(num_literals=3)(write_products)


@instruction(num_literals=1)
def finish(
    make: Vectors, num_rows: int, totals: Any, units: Any, bias: Any, outputs: Any, stride: Any
) -> None:
    """Write `bias + units * totals` to outputs, whose rows have `stride` numbers, and begin anew at zero."""
    unit, first = (make.load(address, 0, many(F32)) for address in (units, bias))
    for row in range(num_rows):
        result = make.fused(make.load(totals, TOTAL_BYTES * row, many(F32)), unit, first)
        make.store(result, make.step(outputs, stride, 4 * row), 0)
        make.store(ir.Constant(many(F32), None), totals, TOTAL_BYTES * row)
