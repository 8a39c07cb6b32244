"""Packs weights that their file has quantised already: with the file's own levels and scales.

Only scales with more digits than float16 holds are rounded. Weights that share a product are packed as one,
in the fewest bits that hold the levels of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from completion_engine.cpu.kernels.language import Floats
from completion_engine.cpu.kernels.packing import (
    BLOCK,
    RECORDS,
    PackedWeight,
    TileRecord,
    assemble,
    find_units,
    round_rows,
)
from completion_engine.target_model.gguf_blocks import QuantisedWeight

_MAX_ROWS = 4096  # held as floats at once
_LOWEST = {bits: -record.zero_level for bits, record in RECORDS.items()} | {4: -8}


class _Levels(NamedTuple):
    """Levels [num_outputs, num_inputs]; scales and floors [num_outputs, num_blocks] in units of an output."""

    levels: NDArray[np.uint8]
    scales: Floats
    floors: Floats


def pack_blocks(weights: Sequence[QuantisedWeight]) -> PackedWeight:
    """Weights that read the same inputs as one weight, in the fewest bits that hold all of them.

    A weight that not even 8 bits hold is rounded to 8 bits.
    """
    held = (bits for bits in RECORDS if all(_fits(weight, bits) for weight in weights))
    record = RECORDS[next(held, 8)]
    units = [_units_of(weight) for weight in weights]
    parts = [_levels_for(weight, record, unit) for weight, unit in zip(weights, units, strict=True)]
    levels = np.concatenate([part.levels for part in parts])
    scales = np.concatenate([part.scales for part in parts])
    floors = np.concatenate([part.floors for part in parts])
    return assemble(record, levels, scales, floors, np.concatenate(units), levels.shape[1])


def _fits(weight: QuantisedWeight, bits: int) -> bool:
    """Whether a record of this number of bits holds the weight's levels as they are."""
    record = RECORDS[bits]
    has_floors = weight.floors is None or bool(record.floors_at)
    lowest = 0 if weight.floors is not None else _LOWEST[bits]
    has_levels = weight.lowest >= lowest and weight.highest < lowest + 2**bits
    return weight.block_size >= BLOCK and has_floors and has_levels


def _levels_for(weight: QuantisedWeight, record: TileRecord, units: Floats) -> _Levels:
    if not _fits(weight, record.bits):
        return _rounded(weight, units)
    scales = weight.scales / units[:, None]
    lowest = _LOWEST[record.bits] if weight.floors is None else 0
    levels = weight.levels.view(np.uint8) - np.uint8(lowest % 256)  # modulo 256
    # A record holds no scale of 0 (see `packing.assemble`), so the levels of these weights are 0.
    levels.reshape(*scales.shape, weight.block_size)[scales == 0] = record.zero_level
    if weight.floors is not None:
        return _Levels(levels, scales, weight.floors / units[:, None])
    return _Levels(levels, scales, lowest * scales)


def _rounded(weight: QuantisedWeight, units: Floats) -> _Levels:
    """The weight in 8 bits with one scale for each block, rounded from its numbers."""
    num_outputs, num_inputs = weight.levels.shape
    levels = np.empty((num_outputs, num_inputs), np.uint8)
    scales: Floats = np.empty((num_outputs, num_inputs // BLOCK), np.float32)
    for first in range(0, len(levels), _MAX_ROWS):
        end = min(first + _MAX_ROWS, len(levels))
        some = weight.values(first, end), units[first:end], levels[first:end], scales[first:end]
        round_rows(*some, 0, end - first)
    return _Levels(levels, scales, np.zeros_like(scales))


def _units_of(weight: QuantisedWeight) -> Floats:
    """A power of two for each output, near the scale of its largest number.

    It keeps scales and floors within float16 where the numbers are far smaller than these.
    """
    units: Floats = np.ones(len(weight.levels), np.float32)
    for first in range(0, len(units), _MAX_ROWS):
        end = min(first + _MAX_ROWS, len(units))
        floors = weight.scales if weight.floors is None else weight.floors
        others = (numbers[first:end] / np.float32(256) for numbers in (weight.scales, floors))
        find_units(np.concatenate([weight.values(first, end), *others], axis=1), units[first:end])
    return units
