"""The inner loop of a product on a processor's matrix unit (AMX), for passes of sixteen rows and more.

Levels are unpacked once for all rows of a pass. The unit then multiplies a block of inputs of up to sixteen
rows by sixteen outputs at once, in whole numbers, while sums of the block before are scaled and added in
floats: in the same order as in `weight_tile`, so that the bits are the same.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from functools import cache
from typing import Any

from llvmlite import binding, ir
from numba.core import cgutils

from completion_engine.cpu.kernels.packing import BLOCK, NUM_GROUPS, RECORDS, ROW_BYTES, TileRecord
from completion_engine.cpu.kernels.vectors import F16, F32, I1, I8, I16, I32, I64, Vectors, many

binding.initialize_native_asmparser()  # for `_Loop.add`

# blocks of inputs; their levels stay in the first cache
BLOCKS_AT_ONCE = 16
LEVEL_BYTES = 64 * NUM_GROUPS  # unpacked levels of a block
SUM_BYTES = 64 * 16  # a block's sums of sixteen rows
NUM_SUMS = 4  # blocks whose sums are on their way
LINE = 64
SIZES = (16, 8)  # rows in a group that the unit multiplies; fewer are not faster with it
_FAR = BLOCKS_AT_ONCE + 8  # blocks that are fetched ahead into the second cache while the unit works
_NEAR = 1024  # bytes that are fetched ahead into the first

# Registers of the unit: sums and inputs of sixteen rows, levels, two of each; then sums and inputs of eight.
_SUMS, _INPUTS = {16: (0, 1), 8: (6, 6)}, {16: (2, 3), 8: (7, 7)}
_LEVELS = (4, 5)
_ADDRESS = I8.as_pointer()
_NOTHING = ir.VoidType()
_BYTES = many(I8, 64)
# numbers of Linux, to be allowed to use the unit's registers
_REQUEST, _TILE_DATA, _ARCH_PRCTL = 0x1023, 18, 158


@cache
def is_allowed() -> bool:
    """Whether the system lets this process use the unit; asks it."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST, _TILE_DATA) == 0)


def _shapes() -> bytes:
    """The registers' shapes as `ldtilecfg` reads them: bytes of a row, and rows."""
    shapes = [(0, 0)] * 16
    for size in SIZES:
        for sums, inputs in zip(_SUMS[size], _INPUTS[size], strict=True):
            shapes[sums], shapes[inputs] = (64, size), (BLOCK, size)
    for levels in _LEVELS:
        shapes[levels] = (64, NUM_GROUPS)
    widths, rows = zip(*shapes, strict=True)
    return struct.pack("<B15x16H16B", 1, *widths, *rows)


def write_begin(make: Vectors) -> None:
    """Shape this thread's registers of the unit."""
    shapes = _shapes()
    kind = ir.ArrayType(I8, len(shapes))
    place = cgutils.alloca_once_value(make.builder, ir.Constant(kind, bytearray(shapes)))
    load = make.external("llvm.x86.ldtilecfg", [_ADDRESS], _NOTHING)
    make.builder.call(load, [make.builder.bitcast(place, _ADDRESS)])


def write_end(make: Vectors) -> None:
    """Leave the registers to others."""
    make.builder.call(make.external("llvm.x86.tilerelease", [], _NOTHING), [])


def write_levels(make: Vectors, bits: int, weights: Any, levels: Any, num_blocks: Any) -> None:
    """Write levels of some blocks of a tile as bytes; both are addresses."""
    record = RECORDS[bits]
    with cgutils.for_range(make.builder, num_blocks) as loop:
        place = make.step(weights, loop.index, record.num_bytes)
        _fetch(make, place, _NEAR, record.num_bytes, 3)
        for group, found in enumerate(_levels(make, record, place)):
            make.store(found, make.step(levels, loop.index, LEVEL_BYTES), LINE * group)


def _fetch(make: Vectors, place: Any, distance: int, num_bytes: int, cache_number: int) -> None:
    """Prefetch this number of bytes at a distance from `place`."""
    fetch = make.external("llvm.prefetch.p0", [_ADDRESS, I32, I32, I32], _NOTHING)
    for line in range(0, num_bytes, LINE):
        ahead = make.pointer(place, distance + line, I8)
        make.builder.call(fetch, [ahead, I32(0), I32(cache_number), I32(1)])


def _levels(make: Vectors, record: TileRecord, place: Any) -> list[Any]:
    """Levels of sixteen outputs and four inputs each, to both sides of zero where they lie there."""
    builder = make.builder
    if record.bits == 8:
        flip = ir.Constant(_BYTES, [-128] * 64)
        return [builder.xor(make.load(place, LINE * group, _BYTES), flip) for group in range(NUM_GROUPS)]
    pairs = [make.load(place, LINE * pair, many(I16, 32)) for pair in range(NUM_GROUPS // 2)]
    low, by_four = (ir.Constant(many(I16, 32), [number] * 32) for number in (0x0F0F, 4))
    halves = [builder.and_(pair, low) for pair in pairs]
    halves += [builder.and_(builder.lshr(pair, by_four), low) for pair in pairs]
    nibbles = [builder.bitcast(half, _BYTES) for half in halves]
    if not record.highs_at:
        return nibbles
    below_zero, found = ir.Constant(_BYTES, [-16] * 64), []
    for group, nibble in enumerate(nibbles):
        bits_of_group = make.load(place, record.highs_at + 8 * group, I64)
        is_high = builder.bitcast(bits_of_group, many(I1, 64))
        found.append(builder.select(is_high, nibble, builder.or_(nibble, below_zero)))
    return found


def write_sums(
    make: Vectors,
    bits: int,
    num_rows: int,
    weights: Any,
    levels: Any,
    rows: Any,
    sums: Any,
    totals: Any,
    num_blocks: Any,
) -> None:
    """Add `(level - zero) * input`, scaled, of some blocks of a tile to `totals` [num_rows, 16] float32.

    First come a weight's bits and how many rows, one of `SIZES`. All other arguments but `num_blocks` are
    addresses; `sums` has room for `NUM_SUMS` blocks.
    """
    loop = _Loop(make, RECORDS[bits], num_rows, (weights, levels, rows, sums), num_blocks)
    builder, kind = make.builder, many(F32)
    found = [
        cgutils.alloca_once_value(builder, make.load(totals, LINE * row, kind)) for row in range(num_rows)
    ]
    loop.multiply(I64(0), 0)
    with cgutils.for_range_slice(builder, I64(0), num_blocks, I64(2), I64) as (index, _):
        for at in range(2):
            loop.multiply_next(builder.add(index, I64(at)), at)
            block = builder.add(index, I64(at))
            with builder.if_then(builder.icmp_signed("<", block, num_blocks), likely=True):
                loop.add(block, found)
    for row, total in enumerate(found):
        make.store(builder.load(total), totals, LINE * row)


class _Loop:
    """The steps of `write_sums`; blocks after the last one repeat the last."""

    def __init__(
        self, make: Vectors, record: TileRecord, num_rows: int, places: tuple[Any, ...], num_blocks: Any
    ) -> None:
        self._make, self._record, self._num_rows = make, record, num_rows
        self._weights, self._levels, self._rows, self._sums = places
        self._last = make.builder.sub(num_blocks, I64(1))
        move = [I8, _ADDRESS, I64]
        self._load = make.external("llvm.x86.tileloadd64", move, _NOTHING)
        self._store = make.external("llvm.x86.tilestored64", move, _NOTHING)
        self._clear = make.external("llvm.x86.tilezero", [I8], _NOTHING)
        name = "llvm.x86.tdpbssd" if record.zero_level else "llvm.x86.tdpbsud"
        self._dot = make.external(name, [I8] * 3, _NOTHING)

    def multiply_next(self, block: Any, at: int) -> None:
        """Multiply the block after this one, and write this one's sums."""
        following = self._make.builder.add(block, I64(1))
        if self._num_rows == SIZES[0]:
            self.multiply(following, 1 - at)
            self._write(block, at)
        else:  # which has one register for sums
            self._write(block, at)
            self.multiply(following, 1 - at)

    def multiply(self, block: Any, at: int) -> None:
        """A block's sums in the unit."""
        make, call = self._make, self._make.builder.call
        is_inside = make.builder.icmp_signed("<", block, self._last)
        block = make.builder.select(is_inside, block, self._last)
        sums, inputs, levels = (I8(x) for x in (*self._registers(at), _LEVELS[at]))
        place = make.step(self._levels, block, LEVEL_BYTES)
        call(self._load, [levels, make.pointer(place, 0, I8), I64(LINE)])
        place = make.step(self._rows, block, ROW_BYTES * self._num_rows)
        call(self._load, [inputs, make.pointer(place, 0, I8), I64(BLOCK)])
        call(self._clear, [sums])
        call(self._dot, [sums, inputs, levels])

    def add(self, block: Any, totals: list[Any]) -> None:
        """Scale a block's sums and add them up."""
        make, builder, record, size = self._make, self._make.builder, self._record, self._num_rows
        weights = make.step(self._weights, block, record.num_bytes)
        _fetch(make, weights, _FAR * record.num_bytes, record.num_bytes, 2)
        beside = make.step(self._rows, block, ROW_BYTES * size)
        sums = make.step(self._sums, builder.and_(block, I64(NUM_SUMS - 1)), SUM_BYTES)
        scales, floors = (
            builder.fpext(make.load(weights, at, many(F16)), many(F32))
            for at in (record.scales_at, record.floors_at or record.scales_at)
        )
        for row, total in enumerate(totals):
            scale_at, share_at = ((BLOCK + number) * size + 4 * row for number in (0, 12))
            lines = [
                f"vcvtdq2ps {LINE * row}($6), $1",
                f"vmulps {scale_at}($5){{1to16}}, $3, $2",
                "vfmadd231ps $2, $1, $0",
            ]
            if record.floors_at:
                lines.append(f"vfmadd231ps {share_at}($5){{1to16}}, $4, $0")
            # Written out, for LLVM moves sums between registers and has too few of them then.
            kind = ir.FunctionType(
                ir.LiteralStructType([many(F32)] * 3), [many(F32)] * 2 + [I64] * 2 + [many(F32)]
            )
            step = ir.InlineAsm(kind, "\n\t".join(lines), "=&v,=&v,=&v,v,v,r,r,0,~{memory}", side_effect=True)
            found = builder.call(step, [scales, floors, beside, sums, builder.load(total)])
            builder.store(builder.extract_value(found, 0), total)

    def _registers(self, at: int) -> tuple[int, int]:
        return _SUMS[self._num_rows][at], _INPUTS[self._num_rows][at]

    def _write(self, block: Any, at: int) -> None:
        builder = self._make.builder
        place = self._make.step(self._sums, builder.and_(block, I64(NUM_SUMS - 1)), SUM_BYTES)
        builder.call(self._store, [I8(self._registers(at)[0]), self._make.pointer(place, 0, I8), I64(LINE)])
