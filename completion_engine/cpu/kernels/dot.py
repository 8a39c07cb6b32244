"""Products of bytes, summed up by fours or eights, in the instructions that this machine has for them.

Weights come as levels from zero up, inputs to both sides of zero. All instruction sets give the same whole
numbers. Only what writes LLVM's language needs to know which one is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Protocol

from completion_engine.cpu.kernels import matrix_unit, processor
from completion_engine.cpu.kernels.arm_dot import Sdot, Smmla
from completion_engine.cpu.kernels.packing import BlockRow, TileRecord
from completion_engine.cpu.kernels.row_quads import QuadDot
from completion_engine.cpu.kernels.vectors import Vectors
from completion_engine.cpu.kernels.x86_dot import Avx2, MatrixUnit, Vnni


class Dot(Protocol):
    """How one instruction set multiplies, on machines that have all of `features`. `name` is for people.

    Registers hold the sums of `num_outputs` of a tile and `max_rows` rows. Powers of two are multiplied with
    by adding to exponents where `adds_exponents`. Weights with a scale for each half of a block have fewer
    bytes and take more instructions; `prefers_halves` where that pays. Where there are `quads`, they multiply
    four rows and more.
    """

    name: str
    features: frozenset[str]
    num_outputs: int
    max_rows: int
    adds_exponents: bool
    prefers_halves: bool
    quads: QuadDot | None

    def levels(self, make: Vectors, record: TileRecord, place: Any, first: int) -> list[Any]:
        """The levels of `num_outputs` outputs from `first` on, in the block's record at `place`, as `add_up`
        takes them.
        """

    def add_up(
        self, make: Vectors, record: TileRecord, levels: list[Any], rows: Sequence[BlockRow]
    ) -> Iterator[Sequence[Any]]:
        """Yield the sums of `(level - zero_level) * input`, row by row.

        One for each part of the block that has a scale, [num_outputs] int32.
        """


# The quickest first.
INSTRUCTION_SETS: tuple[Dot, ...] = (
    MatrixUnit(),
    Vnni(512, "avx512f", "avx512bw", "avx512vnni"),
    Vnni(256, "avxvnni"),
    Avx2(),
    Smmla(),
    Sdot(),
)


@cache
def instruction_sets() -> list[int]:
    """Those of `INSTRUCTION_SETS` that this machine has, the quickest first; none if bytes are slow here."""
    features = processor.features()
    return [
        number
        for number, found in enumerate(INSTRUCTION_SETS)
        if found.features <= features and (not isinstance(found, MatrixUnit) or matrix_unit.is_allowed())
    ]
