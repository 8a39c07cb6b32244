"""A tile times rows, four at a time, on processors with sixteen registers of 256 bits.

A block's levels are unpacked to memory once, for all rows that are multiplied with them. Eight registers then
hold the sums of four rows while two registers of levels at a time pass by, so that none moves to the stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from llvmlite import ir

from completion_engine.cpu.kernels.packing import (
    BLOCK,
    NUM_GROUPS,
    ONE_BITS,
    ROW_BYTES,
    TILE_OUTPUTS,
    TileRecord,
)
from completion_engine.cpu.kernels.rows import LANE_BYTES
from completion_engine.cpu.kernels.vectors import F16, F32, I8, I16, I32, I64, Vectors, many

QUAD = 4
_LANES = 8  # outputs of a register
_HALVES = (0, 1)  # a tile has two halves of outputs
_BYTES, _WORDS, _SUMS, _FLOATS = many(I8, BLOCK), many(I16, 16), many(I32, _LANES), many(F32, _LANES)
_REGISTER = 32  # bytes


class QuadDot(Protocol):
    """How an instruction set multiplies two registers of levels by four rows.

    The registers hold levels of both halves of the outputs, or if it `splits` their number of bits, of one
    half after the other, its lower and its upper four bits.
    """

    splits: int

    def begin(self, make: Vectors, record: TileRecord, row: RowOfQuad) -> Any:
        """What a row's sums begin with; None for nothing."""

    def multiply(self, make: Vectors, total: Any, levels: Any, inputs: Any) -> Any:
        """`total` plus the products of a register; all have 256 bits."""

    def finish(self, make: Vectors, record: TileRecord, sums: Sequence[Any], row: RowOfQuad) -> list[Any]:
        """The sums of each half that the registers hold, [8] int32."""


class RowOfQuad:
    """The place of a block of one rounded row; see `rounded.RoundedRows`."""

    def __init__(self, make: Vectors, group_size: int, places: tuple[Any, Any, Any], row: int) -> None:
        """`places` are addresses of the quad's levels, of what lies beside them, and of its lane sums."""
        self._make, self._size, self._row = make, group_size, row
        self._levels, self._beside, self._lanes = places

    def inputs(self, group: int) -> Any:
        """A group of four inputs, for each output."""
        found = self._make.repeated(self._levels, BLOCK * self._row + 4 * group, I32, _LANES)
        return self._make.builder.bitcast(found, _BYTES)

    def beside(self, number: int, kind: Any) -> Any:
        """One of the numbers beside the levels."""
        return self._make.repeated(self._beside, 4 * (number * self._size + self._row), kind, _LANES)

    def lanes(self) -> Any:
        """Sums of the levels in each lane of 16 bits, times minus the zero level of 5 bits."""
        found = self._make.repeated(self._lanes, 4 * self._row, I32, _LANES)
        return self._make.builder.bitcast(found, _WORDS)


class MaddQuads:
    """AVX2's `vpmaddubsw`, whose sums of pairs have 16 bits.

    Eight of them fit, of up to 5 bits with the zero level taken off: they begin with what takes it off, and
    may wrap around in between. Levels of 8 bits are multiplied as two of 4.
    """

    splits = 8

    def begin(self, make: Vectors, record: TileRecord, row: RowOfQuad) -> Any:  # noqa: ARG002 - a protocol
        """See `QuadDot`."""
        return row.lanes() if record.bits == 5 else None

    def multiply(self, make: Vectors, total: Any, levels: Any, inputs: Any) -> Any:
        """See `QuadDot`."""
        multiply = make.external("llvm.x86.avx2.pmadd.ub.sw", [_BYTES] * 2, _WORDS)
        found = make.builder.call(multiply, [levels, inputs])
        return found if total is None else make.builder.add(total, found)

    def finish(self, make: Vectors, record: TileRecord, sums: Sequence[Any], row: RowOfQuad) -> list[Any]:
        """See `QuadDot`."""
        add_pairs = make.external("llvm.x86.avx2.pmadd.wd", [_WORDS] * 2, _SUMS)

        def added(total: Any, factor: int) -> Any:
            return make.builder.call(add_pairs, [total, ir.Constant(_WORDS, [factor] * 16)])

        if record.bits != self.splits:
            return [added(total, 1) for total in sums]
        lower, upper = added(sums[0], 1), added(sums[1], 16)
        zero = row.beside(record.zero, I32)
        return [make.builder.add(make.builder.add(lower, upper), zero)]


class VnniQuads:
    """`vpdpbusd`, which sums up in 32 bits: levels of any size have room."""

    splits = 0

    def begin(self, make: Vectors, record: TileRecord, row: RowOfQuad) -> Any:  # noqa: ARG002 - a protocol
        """See `QuadDot`."""
        return row.beside(record.zero, I32) if record.zero else ir.Constant(_SUMS, None)

    def multiply(self, make: Vectors, total: Any, levels: Any, inputs: Any) -> Any:
        """See `QuadDot`."""
        multiply = make.external("llvm.x86.avx512.vpdpbusd.256", [_SUMS] * 3, _SUMS)
        numbers = [make.builder.bitcast(found, _SUMS) for found in (levels, inputs)]
        return make.builder.call(multiply, [total, *numbers])

    def finish(self, make: Vectors, record: TileRecord, sums: Sequence[Any], row: RowOfQuad) -> list[Any]:
        """See `QuadDot`."""
        del make, record, row
        return list(sums)


class QuadTile:
    """How one instruction set unpacks a form of record and multiplies rows with it."""

    def __init__(self, dot: QuadDot, record: TileRecord) -> None:
        self._dot, self._record = dot, record
        self._parts = [(half,) for half in _HALVES] if record.bits == dot.splits else [_HALVES]
        self._scales_at = 2 * _REGISTER * NUM_GROUPS * len(self._parts)
        self._floors_at = self._scales_at + 2 * _REGISTER
        self.num_bytes = self._floors_at + 2 * _REGISTER * bool(record.floors_at)

    def unpack(self, make: Vectors, record: Any, block: Any) -> None:
        """Write a block's levels, its scales as integers less that of one, and its floors, all at `block`."""
        levels = _Levels(make, self._record, record)
        at = 0
        for part in self._parts:
            for group in range(NUM_GROUPS):
                for found in levels.registers(group, part):
                    make.store(found, block, at)
                    at += _REGISTER
        one = ir.Constant(_SUMS, [ONE_BITS] * _LANES)
        for half in _HALVES:
            scales = make.builder.bitcast(_halves(make, record, self._record.scales_at, half), _SUMS)
            make.store(make.builder.sub(scales, one), block, self._scales_at + _REGISTER * half)
        for half in _HALVES if self._record.floors_at else ():
            floors = _halves(make, record, self._record.floors_at, half)
            make.store(floors, block, self._floors_at + _REGISTER * half)

    def add_block(
        self, make: Vectors, block: Any, group_size: int, places: tuple[Any, Any, Any], totals: Any
    ) -> None:
        """Add a block's products to the totals [4, 16] float32 of a quad; places as in `RowOfQuad`."""
        rows = [RowOfQuad(make, group_size, places, row) for row in range(QUAD)]
        at = 0
        for part in self._parts:
            begin = [self._dot.begin(make, self._record, row) for row in rows]
            sums = [first for first in begin for _ in range(2)]
            for group in range(NUM_GROUPS):
                pair = [make.load(block, at + _REGISTER * register, _BYTES) for register in range(2)]
                at += 2 * _REGISTER
                for number, row in enumerate(rows):
                    inputs = row.inputs(group)
                    for register, levels in enumerate(pair):
                        place = 2 * number + register
                        sums[place] = self._dot.multiply(make, sums[place], levels, inputs)
                sums = make.pinned(sums)
            for number, row in enumerate(rows):
                own = sums[2 * number : 2 * number + 2]
                wholes = self._dot.finish(make, self._record, own, row)
                self._add_part(make, block, part, wholes, row, make.step(totals, number, 2 * _REGISTER))

    def _add_part(
        self,
        make: Vectors,
        block: Any,
        part: Sequence[int],
        wholes: Sequence[Any],
        row: RowOfQuad,
        totals: Any,
    ) -> None:
        """Scales times a row's power of two by adding exponents, times sums, added to a row's totals."""
        builder, exponent = make.builder, row.beside(0, I32)
        for half, whole in zip(part, wholes, strict=True):
            scale = builder.add(exponent, make.load(block, self._scales_at + _REGISTER * half, _SUMS))
            total = make.load(totals, _REGISTER * half, _FLOATS)
            total = make.fused(builder.sitofp(whole, _FLOATS), builder.bitcast(scale, _FLOATS), total)
            if self._record.floors_at:
                floors = make.load(block, self._floors_at + _REGISTER * half, _FLOATS)
                total = make.fused(floors, row.beside(3, F32), total)
            make.store(total, totals, _REGISTER * half)


def add_quads(
    make: Vectors, tile: QuadTile, num_rows: int, block: Any, places: tuple[Any, Any], index: Any, totals: Any
) -> None:
    """Add an unpacked block's products to the totals of a group, whose rows and lanes are at `places`."""
    levels = make.step(places[0], index, ROW_BYTES * num_rows)
    lanes = make.step(places[1], index, LANE_BYTES * num_rows)
    beside = make.builder.add(levels, I64(BLOCK * num_rows))
    with make.each(num_rows // QUAD) as quad:
        own = (
            make.step(levels, quad, BLOCK * QUAD),
            make.step(beside, quad, 4 * QUAD),
            make.step(lanes, quad, 4 * QUAD),
        )
        tile.add_block(make, block, num_rows, own, make.step(totals, quad, 4 * TILE_OUTPUTS * QUAD))


class _Levels:
    """The levels of a block's record at an address, eight outputs and a group of inputs to a register."""

    def __init__(self, make: Vectors, record: TileRecord, place: Any) -> None:
        self._make, self._record, self._place = make, record, place

    def registers(self, group: int, halves: Sequence[int]) -> Iterator[Any]:
        """Those of some halves of the outputs; for one half its lower four bits, and its upper ones."""
        if halves == _HALVES:
            yield from (self._whole(group, half) for half in halves)
            return
        whole = self._whole(group, halves[0])
        yield self._make.builder.and_(whole, _all(_BYTES, 15))
        yield self._make.builder.and_(self._moved(whole, -4), _all(_BYTES, 15))

    def _whole(self, group: int, half: int) -> Any:
        make, builder, bits = self._make, self._make.builder, self._record.bits
        if bits == 8:
            return make.load(self._place, 64 * group + _REGISTER * half, _BYTES)
        pair = make.load(self._place, 64 * (group % 4) + _REGISTER * half, _BYTES)
        nibbles = builder.and_(self._moved(pair, -4) if group >= 4 else pair, _all(_BYTES, 15))
        if bits == 4:
            return nibbles
        return builder.or_(nibbles, self._fifths(group, half))

    def _fifths(self, group: int, half: int) -> Any:
        """Sixteen where a level's fifth bit is set; a byte has those of two outputs."""
        make, builder = self._make, self._make.builder
        bits = make.repeated(self._place, self._record.highs_at + 8 * group + 4 * half, I32, _LANES)
        own_byte = ir.Constant(many(I32, BLOCK), [at // 16 * 16 + at // 8 for at in range(BLOCK)])
        bytes_of = builder.bitcast(bits, _BYTES)
        own_bit = ir.Constant(_BYTES, [-128 if at % 8 == 7 else 1 << at % 8 for at in range(BLOCK)])
        is_set = builder.and_(builder.shuffle_vector(bytes_of, bytes_of, own_byte), own_bit)
        # Times the sign of what is set: zero, or sixteen.
        sixteen = ir.Constant(_BYTES, [-16 if at % 8 == 7 else 16 for at in range(BLOCK)])
        signed = make.external("llvm.x86.avx2.psign.b", [_BYTES] * 2, _BYTES)
        return builder.call(signed, [sixteen, is_set])

    def _moved(self, numbers: Any, num_bits: int) -> Any:
        """Bytes moved by bits, as words: bits from the neighbour byte must be masked."""
        if not num_bits:
            return numbers
        builder = self._make.builder
        return builder.bitcast(self._make.moved(builder.bitcast(numbers, _WORDS), num_bits), _BYTES)


def _all(kind: Any, number: int) -> Any:
    return ir.Constant(kind, [number] * kind.count)


def _halves(make: Vectors, record: Any, at: int, half: int) -> Any:
    """Numbers of eight outputs, stored in 16 bits."""
    return make.builder.fpext(make.load(record, at + 16 * half, many(F16, _LANES)), _FLOATS)
