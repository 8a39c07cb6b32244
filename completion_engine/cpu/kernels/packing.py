"""Weights in blocks of 32 inputs, each with a scale of its own, in as few bits as hold them.

Models mostly come rounded already: a block's weights lie on a grid of 16 or 32 points, or each half's on one
of 64. Where all blocks of a weight do, the grid's points are held in 4, 5 or 6 bits and nothing is lost; all
others are rounded to 8 bits.
A tile is sixteen outputs side by side, and the unit that a thread multiplies.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from completion_engine.cpu.kernels.language import (
    Array,
    Floats,
    inlined,
    kernel,
    magnitude,
    number_of,
    rank_of,
    widened,
)
from completion_engine.cpu.kernels.sums import sum_of, sum_of_products
from completion_engine.target_model.threads import num_threads_here

BLOCK = 32  # inputs that share a scale
TILE_OUTPUTS = 16  # outputs side by side
NUM_GROUPS = BLOCK // 4  # of four inputs, which one instruction multiplies
ZERO_LEVELS = (16, 128)  # levels that stand for zero in a block
HALF_ZERO_LEVEL = 32  # in a half of one
ROW_BYTES = BLOCK + 6 * 4  # of a block of a rounded row, see `rounded.RoundedRows`
ONE_BITS = 127 << 23  # of the float32 that is one

_F32, _I32, _U8 = np.float32, np.int32, np.uint8
_NEAR = _F32(2**-7)  # of a number: twice what rounding to bf16 moves it
_SMALLEST = _F32(1e-30)
_SMALLEST_HALF = np.float16(2**-24)
_HALF = BLOCK // 2


@dataclass(frozen=True, slots=True)
class TileRecord:
    """How a block of a tile lies: levels, then fp16 numbers for each output. Places are in bytes.

    A weight is `(level - zero_level) * scale`, or `level * scale + floor` where there are floors. A block has
    one scale, or one for each half; `zeros` are the numbers beside a row's levels that take the zero level
    off (see `rounded.RoundedRows`), one for each scale.
    """

    bits: int
    num_bytes: int
    scales_at: tuple[int, ...]
    zero_level: int = 0
    zeros: tuple[int, ...] = ()
    highs_at: int = 0  # the bits above the fourth
    floors_at: int = 0


RECORDS = {
    4: TileRecord(4, 320, scales_at=(256,), floors_at=288),
    5: TileRecord(5, 352, scales_at=(320,), zero_level=ZERO_LEVELS[0], zeros=(1,), highs_at=256),
    6: TileRecord(6, 448, scales_at=(384, 416), zero_level=HALF_ZERO_LEVEL, zeros=(4, 5), highs_at=256),
    8: TileRecord(8, 544, scales_at=(512,), zero_level=ZERO_LEVELS[1], zeros=(2,)),
}


class BlockRow(NamedTuple):
    """Where a block of a rounded row lies, as LLVM's addresses; see `rounded.RoundedRows`.

    `zeros` are those of what its levels add up to times minus the zero level, for each scale of a block; none
    where that is zero.
    """

    levels: Any
    zeros: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """A weight [num_outputs, num_inputs]: `records` [num_tiles, num_blocks, record's bytes] uint8.

    Scales and floors are times `units` [num_tiles * TILE_OUTPUTS] float32, powers of two, lest they leave
    fp16.
    """

    record: TileRecord
    records: Array
    units: Floats
    shape: tuple[int, int]

    @property
    def num_bytes(self) -> int:
        """Memory."""
        return self.records.nbytes + self.units.nbytes


def pack(weight: Array, allowed: Collection[int] = RECORDS) -> PackedWeight:
    """`weight` [num_outputs, num_inputs], float32 or bf16, in the fewest `allowed` bits that hold it.

    8 must be allowed.
    """
    num_outputs, num_inputs = weight.shape
    num_tiles, num_blocks = -(-num_outputs // TILE_OUTPUTS), -(-num_inputs // BLOCK)
    units: Floats = np.ones(num_tiles * TILE_OUTPUTS, np.float32)
    find_units(weight, units)
    scales, others = (np.zeros((num_tiles, num_blocks, TILE_OUTPUTS), np.float32) for _ in range(2))
    for record in (record for bits, record in RECORDS.items() if bits in allowed):
        records = np.zeros((num_tiles, num_blocks, record.num_bytes), np.uint8)
        if _pack_in_parts(weight, record.bits, units, (records, scales, others)):
            for at, numbers in zip(record.scales_at, (scales, others), strict=False):
                halves = numbers.astype(np.float16)
                # None is zero, as zero has no exponent that products could add to.
                _put_halves(records, np.where(halves == 0, _SMALLEST_HALF, halves), at)
            if record.floors_at:
                _put_halves(records, others.astype(np.float16), record.floors_at)
            return PackedWeight(record, records, units, (num_outputs, num_inputs))
    raise AssertionError("8 bits hold any weight")


def _pack_in_parts(weight: Array, bits: int, units: Floats, packed: tuple[Array, Floats, Floats]) -> bool:
    """`pack_levels` on as many threads as this one takes, once the first tile has shown that it may do."""
    if not pack_levels(weight, bits, units, *packed, 0, 1):
        return False
    num_parts = num_threads_here()
    places = np.linspace(1, len(packed[0]), num_parts + 1).astype(int).tolist()

    def pack_part(part: tuple[int, int]) -> bool:
        return pack_levels(weight, bits, units, *packed, *part)

    with ThreadPoolExecutor(num_parts) as threads:
        return all(threads.map(pack_part, pairwise(places)))


def unpack(weight: PackedWeight, outputs: Array) -> Floats:
    """What the weights of some outputs [num_rows] stand for, [num_rows, num_inputs]."""
    record = weight.record
    found: Floats = np.empty((len(outputs), weight.records.shape[1] * BLOCK), np.float32)
    read_levels(weight.records, outputs, record.bits, found)
    parts = found.reshape(len(outputs), -1, len(record.scales_at), BLOCK // len(record.scales_at))
    parts -= record.zero_level
    for part, at in enumerate(record.scales_at):
        parts[:, :, part] *= _halves_of(weight.records, at, outputs)
    if record.floors_at:
        parts[:, :, 0] += _halves_of(weight.records, record.floors_at, outputs)
    return found[:, : weight.shape[1]] * weight.units[outputs, None]


def _put_halves(records: Array, halves: Array, at: int) -> None:
    records[:, :, at : at + 2 * TILE_OUTPUTS] = halves.view(np.uint8)


def _halves_of(records: Array, at: int, outputs: Array) -> Array:
    """A number of each block for some outputs, [num_rows, num_blocks, 1]."""
    halves: Array = records[:, :, at : at + 2 * TILE_OUTPUTS].view(np.float16)
    return halves[outputs // TILE_OUTPUTS, :, outputs % TILE_OUTPUTS][..., None]


@kernel
def find_units(weight: Array, units: Floats) -> None:
    """A power of two near the scale that each output's largest weight would have."""
    for output in range(weight.shape[0]):
        top = _I32(0)
        for at in range(weight.shape[1]):
            bits = magnitude(widened(weight[output, at]))
            top = _I32(max(top, bits))
        power = max(_I32(_I32(top) >> _I32(23)) - _I32(4), _I32(1))
        units[output] = _I32(power << _I32(23)).view(np.float32)


@kernel
def pack_levels(
    weight: Array,
    bits: int,
    units: Floats,
    records: Array,
    scales: Floats,
    others: Floats,
    first: int,
    end: int,
) -> bool:
    """Fill some tiles with levels, scales and others beside them; whether so many bits hold the weight.

    Shapes as in `PackedWeight`; scales and others [num_tiles, num_blocks, TILE_OUTPUTS]. The others are
    floors with 4 bits, and with 6 the scales of second halves.
    """
    num_outputs, num_inputs = weight.shape
    numbers, steps, apart = np.empty(BLOCK, _F32), np.empty(BLOCK, _F32), np.empty(BLOCK, _F32)
    levels = np.zeros((TILE_OUTPUTS, BLOCK), np.uint8)
    for tile in range(first, end):
        for block in range(records.shape[1]):
            begin = block * BLOCK
            for offset in range(min(TILE_OUTPUTS, num_outputs - tile * TILE_OUTPUTS)):
                output = tile * TILE_OUTPUTS + offset
                inverse = _F32(1) / units[output]
                for at in range(min(BLOCK, num_inputs - begin)):
                    numbers[at] = widened(weight[output, begin + at]) * inverse
                for at in range(num_inputs - begin, BLOCK):
                    numbers[at] = _F32(0)
                if bits == 4:
                    fits, scale, other = _fit_floor(numbers, steps, apart, levels[offset])
                elif bits == 6:
                    fits, scale, other = _fit_halves(numbers, steps, levels[offset])
                else:
                    fits, scale, other = _fit_zero(numbers, steps, levels[offset], bits)
                if not fits:
                    return False
                scales[tile, block, offset], others[tile, block, offset] = scale, other
            for offset in range(num_outputs - tile * TILE_OUTPUTS, TILE_OUTPUTS):
                levels[offset] = 0
            _put_levels(levels, bits, records[tile, block])
    return True


@kernel
def read_levels(records: Array, outputs: Array, bits: int, levels: Floats) -> None:
    """The levels of some outputs, [num_rows, num_blocks * BLOCK]."""
    for row in range(outputs.shape[0]):
        tile, offset = outputs[row] // TILE_OUTPUTS, outputs[row] % TILE_OUTPUTS
        for block in range(records.shape[1]):
            record = records[tile, block]
            for at in range(BLOCK):
                group, place = at // 4, 4 * offset + at % 4
                if bits == 8:
                    level = _I32(record[64 * group + place])
                else:
                    level = _I32(record[64 * (group % 4) + place] >> (4 * (group // 4))) & 15
                    if bits == 5:
                        level += ((_I32(record[256 + 8 * group + place // 8]) >> (place % 8)) & 1) * 16
                    elif bits == 6:
                        highs = _I32(record[256 + 64 * (group // 4) + place])
                        level += ((highs >> (2 * (group % 4))) & 3) * 16
                levels[row, block * BLOCK + at] = level


@inlined
def _put_levels(levels: Any, bits: Any, record: Any) -> None:
    """The levels of a block [TILE_OUTPUTS, BLOCK] as they lie in its record."""
    for group in range(NUM_GROUPS if bits == 8 else NUM_GROUPS // 2):
        for offset in range(TILE_OUTPUTS):
            for at in range(4):
                level = levels[offset, 4 * group + at]
                if bits != 8:
                    level = _U8((level & 15) | (levels[offset, BLOCK // 2 + 4 * group + at] << 4))
                record[64 * group + 4 * offset + at] = level
    if bits == 5:
        for group in range(NUM_GROUPS):
            for pair in range(TILE_OUTPUTS // 2):
                high = _U8(0)
                for at in range(8):
                    level = levels[2 * pair + at // 4, 4 * group + at % 4]
                    high = _U8(high | ((level >> 4) << at))
                record[256 + 8 * group + pair] = high
    if bits == 6:
        for half in range(2):
            for place in range(4 * TILE_OUTPUTS):
                high = _U8(0)
                for group in range(NUM_GROUPS // 2):
                    level = levels[place // 4, 4 * (4 * half + group) + place % 4]
                    high = _U8(high | ((level >> 4) << (2 * group)))
                record[256 + 64 * half + place] = high


@inlined
def _ends(numbers: Any, size: Any) -> Any:
    """The lowest and the highest of some numbers, found as ranks, in vectors."""
    low = high = rank_of(numbers[0])
    for at in range(size):
        rank = rank_of(numbers[at])
        low, high = _I32(min(low, rank)), _I32(max(high, rank))
    return number_of(low), number_of(high)


@inlined
def _fit_zero(numbers: Any, steps: Any, levels: Any, bits: Any) -> Any:
    """Levels to both sides of zero: whether they give the numbers (8 bits always do), and the scale."""
    zero = 1 << (bits - 1)
    low, high = _ends(numbers, BLOCK)
    top = low if -low > high else high
    scale = abs(top) / _F32(127) if bits == 8 else -top / _F32(zero)
    inverse = _F32(1) / scale if top != 0 else _F32(0)
    for at in range(BLOCK):
        steps[at] = min(max(np.rint(numbers[at] * inverse), _F32(-zero)), _F32(zero - 1))
        levels[at] = _U8(_I32(steps[at]) + zero)
    scale = sum_of_products(steps, numbers) / max(sum_of_products(steps, steps), _SMALLEST)
    num_off = _I32(0)
    if bits != 8:
        for at in range(BLOCK):
            error = abs(scale * _F32(_I32(levels[at]) - zero) - numbers[at])
            num_off += _I32(error > _NEAR * abs(numbers[at]))
    return num_off == 0, scale, _F32(0)


@inlined
def _fit_halves(numbers: Any, steps: Any, levels: Any) -> Any:
    """Levels to both sides of zero in each half: whether 64 of them give the numbers, and both scales.

    The largest number need not be at a grid's end, as whoever rounded the numbers rounded scales as well.
    """
    fits, low_scale = _fit_half(numbers[:_HALF], steps[:_HALF], levels[:_HALF])
    high_scale = _F32(0)
    if fits:
        fits, high_scale = _fit_half(numbers[_HALF:], steps[_HALF:], levels[_HALF:])
    return fits, low_scale, high_scale


@inlined
def _fit_half(numbers: Any, steps: Any, levels: Any) -> Any:
    low, high = _ends(numbers, _HALF)
    top = low if -low > high else high
    scale, fits, num_steps = _F32(0), False, HALF_ZERO_LEVEL
    while num_steps >= HALF_ZERO_LEVEL // 2 and not fits:
        inverse = _F32(-num_steps) / top if top != 0 else _F32(0)
        for at in range(_HALF):
            lowest, highest = _F32(-HALF_ZERO_LEVEL), _F32(HALF_ZERO_LEVEL - 1)
            steps[at] = min(max(np.rint(numbers[at] * inverse), lowest), highest)
            levels[at] = _U8(_I32(steps[at]) + HALF_ZERO_LEVEL)
        scale = sum_of_products(steps, numbers) / max(sum_of_products(steps, steps), _SMALLEST)
        num_off = _I32(0)
        for at in range(_HALF):
            num_off += _I32(abs(scale * steps[at] - numbers[at]) > _NEAR * abs(numbers[at]))
        fits = num_off == 0
        num_steps -= 1
    return fits, scale


@inlined
def _fit_floor(numbers: Any, steps: Any, apart: Any, levels: Any) -> Any:
    """Levels from the lowest number up: whether 16 of them give the numbers, the scale and the lowest."""
    low, high = _ends(numbers, BLOCK)
    off = _NEAR * max(abs(low), abs(high))
    scale, floor, fits = _F32(0), low, False
    mean = sum_of(numbers) / _F32(BLOCK)
    for at in range(BLOCK):
        apart[at] = numbers[at] - mean
    num_steps = 15
    while num_steps > 0 and not fits:
        inverse = _F32(num_steps) / (high - low) if high > low else _F32(0)
        for at in range(BLOCK):
            steps[at] = np.rint((numbers[at] - low) * inverse)
            levels[at] = _U8(_I32(steps[at]))
        mean_level = sum_of(steps) / _F32(BLOCK)
        for at in range(BLOCK):
            steps[at] -= mean_level
        scale = sum_of_products(steps, apart) / max(sum_of_products(steps, steps), _SMALLEST)
        floor = mean - scale * mean_level
        num_off = _I32(0)
        for at in range(BLOCK):
            num_off += _I32(abs(scale * _F32(levels[at]) + floor - numbers[at]) > off)
        fits = num_off == 0
        num_steps -= 1
    return fits, scale, floor
