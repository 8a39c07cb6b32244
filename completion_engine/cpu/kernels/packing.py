"""How weights lie in memory: in blocks of 32 inputs with a scale each, and 4, 5 or 8 bits a level.

Plain numbers are rounded to 8 bits; `block_packing` takes over the levels of weights that come rounded. A
tile is sixteen outputs side by side, and the unit that a thread multiplies.
"""

from __future__ import annotations

from collections.abc import Callable
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
from completion_engine.cpu.kernels.vectors import sum_of_products
from completion_engine.target_model.threads import num_threads_here

BLOCK = 32  # inputs that share a scale
TILE_OUTPUTS = 16  # outputs side by side
NUM_GROUPS = BLOCK // 4  # groups of four inputs, which one instruction multiplies
ZERO_LEVELS = (16, 128)  # levels of zero in a block
ROW_BYTES = BLOCK + 4 * 4  # bytes of a block of a rounded row, see `rounded.RoundedRows`
ONE_BITS = 127 << 23  # bits of the float32 one

_F32, _I32, _U8 = np.float32, np.int32, np.uint8
_SMALLEST, _SMALLEST_HALF = _F32(1e-30), np.float16(2**-24)


@dataclass(frozen=True, slots=True)
class TileRecord:
    """How a block of a tile lies: levels, then fp16 numbers for each output. Places are in bytes.

    A weight is `(level - zero_level) * scale`, or `level * scale + floor` where there are floors. `zero` is
    the number beside a row's levels that takes the zero level off (see `rounded.RoundedRows`), 0 for none.
    """

    bits: int
    num_bytes: int
    scales_at: int
    zero_level: int = 0
    zero: int = 0
    highs_at: int = 0  # the bits above the fourth
    floors_at: int = 0


RECORDS = {
    4: TileRecord(4, 320, scales_at=256, floors_at=288),
    5: TileRecord(5, 352, scales_at=320, zero_level=ZERO_LEVELS[0], zero=1, highs_at=256),
    8: TileRecord(8, 544, scales_at=512, zero_level=ZERO_LEVELS[1], zero=2),
}


class BlockRow(NamedTuple):
    """Where a block of a rounded row lies, as LLVM's addresses; see `rounded.RoundedRows`.

    `zero` is that of what its levels add up to times minus the zero level; None where that is zero.
    """

    levels: Any
    zero: Any


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """A weight [num_outputs, num_inputs]: `records` [num_tiles, num_blocks, record's bytes] uint8.

    Scales and floors are multiples of `units` [num_tiles * TILE_OUTPUTS] float32, powers of two, so that they
    stay within fp16.
    """

    record: TileRecord
    records: Array
    units: Floats
    shape: tuple[int, int]

    @property
    def num_bytes(self) -> int:
        """Memory."""
        return self.records.nbytes + self.units.nbytes


def pack(weight: Array) -> PackedWeight:
    """`weight` [num_outputs, num_inputs], float32 or bf16, rounded to 8 bits."""
    num_outputs, num_inputs = weight.shape
    num_blocks = -(-num_inputs // BLOCK)
    units: Floats = np.ones(num_outputs, np.float32)
    find_units(weight, units)
    levels = np.empty((num_outputs, num_blocks * BLOCK), np.uint8)
    scales: Floats = np.empty((num_outputs, num_blocks), np.float32)
    in_parts(num_outputs, lambda first, end: round_rows(weight, units, levels, scales, first, end))
    return assemble(RECORDS[8], levels, scales, scales, units, num_inputs)


def assemble(
    record: TileRecord,
    levels: Array,
    scales: Floats,
    floors: Floats,
    units: Floats,
    num_inputs: int,
) -> PackedWeight:
    """A weight of levels [num_outputs, num_blocks * BLOCK], with scales and floors [num_outputs, num_blocks].

    Floors are ignored if the record has none.
    """
    num_outputs, num_blocks = floors.shape
    num_tiles = -(-num_outputs // TILE_OUTPUTS)
    records = np.zeros((num_tiles, num_blocks, record.num_bytes), np.uint8)
    in_parts(num_tiles, lambda first, end: put_levels(levels, record.bits, records, first, end))
    halves = _by_tile(scales).astype(np.float16)
    # No scale is zero, because zero has no exponent that products could add to.
    _put_halves(records, np.where(halves == 0, _SMALLEST_HALF, halves), record.scales_at)
    if record.floors_at:
        _put_halves(records, _by_tile(floors).astype(np.float16), record.floors_at)
    all_units: Floats = np.ones(num_tiles * TILE_OUTPUTS, np.float32)
    all_units[:num_outputs] = units
    return PackedWeight(record, records, all_units, (num_outputs, num_inputs))


def _by_tile(numbers: Floats) -> Floats:
    """Numbers [num_outputs, num_blocks] as [num_tiles, num_blocks, TILE_OUTPUTS], which zeros fill up."""
    padded = np.zeros((-len(numbers) % TILE_OUTPUTS, numbers.shape[1]), np.float32)
    whole = np.concatenate([numbers, padded])
    return np.ascontiguousarray(whole.reshape(-1, TILE_OUTPUTS, numbers.shape[1]).swapaxes(1, 2))


def in_parts(number: int, work: Callable[[int, int], object]) -> None:
    """Run `work` on as many ranges of a number of outputs or tiles as this thread has threads."""
    num_parts = num_threads_here()
    bounds = np.linspace(0, number, num_parts + 1).astype(int).tolist()
    with ThreadPoolExecutor(num_parts) as threads:
        list(threads.map(lambda part: work(*part), pairwise(bounds)))


def unpack(weight: PackedWeight, outputs: Array) -> Floats:
    """Return the weights of some outputs [num_rows] as numbers, [num_rows, num_inputs]."""
    record = weight.record
    found: Floats = np.empty((len(outputs), weight.records.shape[1] * BLOCK), np.float32)
    read_levels(weight.records, outputs, record.bits, found)
    blocks = found.reshape(len(outputs), -1, BLOCK)
    blocks -= record.zero_level
    blocks *= _halves_of(weight.records, record.scales_at, outputs)
    if record.floors_at:
        blocks += _halves_of(weight.records, record.floors_at, outputs)
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
def put_levels(levels: Array, bits: int, records: Array, first: int, end: int) -> None:
    """Write levels [num_outputs, num_blocks * BLOCK] into some tiles of `records`."""
    num_outputs = levels.shape[0]
    of_block = np.zeros((TILE_OUTPUTS, BLOCK), np.uint8)
    for tile in range(first, end):
        num_here = min(TILE_OUTPUTS, num_outputs - tile * TILE_OUTPUTS)
        of_block[num_here:] = 0
        for block in range(records.shape[1]):
            for offset in range(num_here):
                for at in range(BLOCK):
                    of_block[offset, at] = levels[tile * TILE_OUTPUTS + offset, block * BLOCK + at]
            _put_levels(of_block, bits, records[tile, block])


@kernel
def round_rows(weight: Array, units: Floats, levels: Array, scales: Floats, first: int, end: int) -> None:
    """The nearest levels of 8 bits of some rows of a weight, and a scale for each block, in units of its row.

    The largest number of a block, found as a rank in vectors, sets the steps; the scale fits their levels.
    """
    numbers, steps = np.empty(BLOCK, _F32), np.empty(BLOCK, _F32)
    for row in range(first, end):
        inverse_unit = _F32(1) / units[row]
        for block in range(scales.shape[1]):
            begin = block * BLOCK
            for at in range(min(BLOCK, weight.shape[1] - begin)):
                numbers[at] = widened(weight[row, begin + at]) * inverse_unit
            for at in range(weight.shape[1] - begin, BLOCK):
                numbers[at] = _F32(0)
            low = high = rank_of(numbers[0])
            for at in range(BLOCK):
                rank = rank_of(numbers[at])
                low, high = _I32(min(low, rank)), _I32(max(high, rank))
            top = max(-number_of(low), number_of(high))
            inverse = _F32(1) / (top / _F32(127)) if top != 0 else _F32(0)
            for at in range(BLOCK):
                steps[at] = min(max(np.rint(numbers[at] * inverse), _F32(-128)), _F32(127))
                levels[row, begin + at] = _U8(_I32(steps[at]) + 128)
            squares = max(sum_of_products(steps, steps), _SMALLEST)
            scales[row, block] = sum_of_products(steps, numbers) / squares


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
