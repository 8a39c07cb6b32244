"""How a product is cut into programs: blocks of outputs, and parts of the inputs where those are too few.

Pure. A choice depends on the weight's shape and on the machine, never on the number of rows: the parts decide
in which order a row's sum runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from completion_engine.gpu.blocks import STEP
from completion_engine.gpu.weights import Weight, joined

_PROGRAMS_PER_PROCESSOR = 2  # meant to keep enough loads under way; to be measured on a GPU
_MAX_PARTS = 8  # the reader adds each of them
_INPUT_BLOCK = 128
_COLUMN_BLOCKS = (128, 64, 32)
# bytes of weights that a program loads at once, with 4 steps under way; to be measured too
_STEP_BYTES = 8192
_WIDE_COLUMNS = 64  # outputs of a program with many rows; more would not leave room for the rows


@dataclass(frozen=True, slots=True)
class Tiles:
    """One product's cut: `part_inputs` is a whole number of `input_block`s."""

    column_block: int
    input_block: int
    part_inputs: int
    num_warps: int = 4
    num_stages: int = 4

    @property
    def wide(self) -> Tiles:
        """The cut for many rows, whose sums run in the same order.

        A program then computes four blocks of rows, and reads a tile of weights once for all of them.
        """
        return replace(self, column_block=_WIDE_COLUMNS, num_warps=8, num_stages=3)

    def num_parts(self, num_inputs: int) -> int:
        """Parts of the sum over the inputs."""
        return -(-num_inputs // self.part_inputs)


def tiles_for(weight: Weight, num_processors: int, *, is_whole: bool = False, num_beside: int = 0) -> Tiles:
    """A cut that fills the machine with programs; `is_whole` keeps the inputs in one part.

    The wider a block of outputs, the fewer instructions a weight takes; narrow ones are for small products.
    `num_beside` outputs of other weights are computed at the same time.
    """
    smallest = min(_INPUT_BLOCK, max(16, 1 << (weight.num_inputs - 1).bit_length()))
    input_block = STEP if weight.form.block else smallest
    num_blocks = -(-weight.num_inputs // input_block)
    most_parts = 1 if is_whole else min(_MAX_PARTS, num_blocks)
    wanted, num_outputs = _PROGRAMS_PER_PROCESSOR * num_processors, weight.num_outputs + num_beside

    def fills(columns: int) -> bool:
        return -(-num_outputs // columns) * most_parts >= wanted

    widest = _STEP_BYTES * 8 // (weight.form.bits * _INPUT_BLOCK)
    fitting = (columns for columns in _COLUMN_BLOCKS if columns <= widest and fills(columns))
    column_block = next(fitting, _COLUMN_BLOCKS[-1])
    parts = max(1, min(most_parts, round(wanted / -(-num_outputs // column_block))))
    # A block of 32 inputs for 32 outputs is 512 bytes or more, 16 for each thread of two warps.
    num_warps = 2 if weight.form.block and column_block == _COLUMN_BLOCKS[-1] else 4
    return Tiles(column_block, input_block, -(-num_blocks // parts) * input_block, num_warps)


@dataclass(frozen=True, slots=True)
class TiledWeight:
    """A weight, and how its product is cut."""

    weight: Weight
    tiles: Tiles

    @classmethod
    def of(cls, weight: Weight, num_processors: int, *, is_whole: bool = False) -> TiledWeight:
        """The weight, cut for a machine."""
        return cls(weight, tiles_for(weight, num_processors, is_whole=is_whole))

    @classmethod
    def together(cls, weights: Sequence[Weight], num_processors: int) -> tuple[TiledWeight, ...]:
        """Weights of the same inputs, in their order, in as few products as their forms allow.

        All are cut into the same parts.
        """
        found = joined(weights)
        num_outputs = sum(weight.num_outputs for weight in found)
        cuts = [
            tiles_for(weight, num_processors, num_beside=num_outputs - weight.num_outputs) for weight in found
        ]
        largest = max(zip(found, cuts, strict=True), key=lambda pair: pair[0].num_outputs)[1]
        parts = (replace(cut, part_inputs=largest.part_inputs) for cut in cuts)
        return tuple(cls(weight, cut) for weight, cut in zip(found, parts, strict=True))

    @property
    def num_parts(self) -> int:
        """Parts of the sum over the inputs."""
        return self.tiles.num_parts(self.weight.num_inputs)
