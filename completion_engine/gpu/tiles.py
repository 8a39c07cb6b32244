"""How a product is cut into programs: blocks of outputs, and parts of the inputs where those are too few.

Pure. A choice depends on the weight's shape and on the machine, never on the number of rows: the parts decide
in which order a row's sum runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from completion_engine.gpu.weights import Weight

_PROGRAMS_PER_PROCESSOR = 2  # enough loads under way to keep the memory busy; to be tuned on a GPU
_MAX_PARTS = 8  # each is read back by whoever adds them


@dataclass(frozen=True, slots=True)
class Tiles:
    """One product's cut: `part_inputs` is a whole number of `input_block`s."""

    column_block: int
    input_block: int
    part_inputs: int
    num_warps: int = 4
    num_stages: int = 4

    def num_parts(self, num_inputs: int) -> int:
        """Parts of the sum over the inputs."""
        return -(-num_inputs // self.part_inputs)


def tiles_for(weight: Weight, num_processors: int, *, is_whole: bool = False) -> Tiles:
    """A cut that fills the machine with programs; `is_whole` keeps the inputs in one part."""
    smallest = min(128, max(16, 1 << (weight.num_inputs - 1).bit_length()))
    input_block = weight.group if weight.bits == 4 else smallest
    wanted = _PROGRAMS_PER_PROCESSOR * num_processors
    column_block = 64 if weight.num_outputs >= 64 * wanted else 32
    num_blocks = -(-weight.num_inputs // input_block)
    num_columns = -(-weight.num_outputs // column_block)
    parts = 1 if is_whole else max(1, min(_MAX_PARTS, num_blocks, round(wanted / num_columns)))
    return Tiles(column_block, input_block, -(-num_blocks // parts) * input_block)
