"""Products of bytes, summed up by fours or eights, in the instructions that this machine has for them.

Weights come as levels from zero up, inputs to both sides of zero. All instruction sets give the same whole
numbers. Only what writes LLVM's language needs to know which one is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Protocol

from llvmlite import ir

from completion_engine.cpu.kernels import language, matrix_unit
from completion_engine.cpu.kernels.packing import NUM_GROUPS, BlockRow, TileRecord
from completion_engine.cpu.kernels.row_quads import QuadDot
from completion_engine.cpu.kernels.vectors import I8, I32, I64, Vectors, many
from completion_engine.cpu.kernels.x86_dot import Avx2, MatrixUnit, Vnni

_BYTES, _FOURS, _HALVES = many(I8, 16), many(I32, 4), many(I64, 2)


class Sdot:
    """`sdot`: four outputs and four inputs of one row at once."""

    name = "sdot"
    features = frozenset({language.DOT})
    num_outputs = 4
    max_rows = 4
    adds_exponents = False  # a product takes its number out of a lane, a sum does not
    quads: QuadDot | None = None

    def levels(self, make: Vectors, record: TileRecord, place: Any, first: int) -> list[Any]:
        """See `dot.Dot`: for each group of inputs sixteen signed bytes."""
        builder = make.builder
        if record.bits == 8:
            held = [make.load(place, 64 * group + 4 * first, _BYTES) for group in range(NUM_GROUPS)]
            return [builder.xor(found, ir.Constant(_BYTES, [-128] * 16)) for found in held]
        held = [make.load(place, 64 * pair + 4 * first, _BYTES) for pair in range(NUM_GROUPS // 2)]
        if record.highs_at:
            return _five_bits(make, record, place, first, held)
        low = ir.Constant(_BYTES, [15] * 16)
        return [builder.and_(found, low) for found in held] + [make.moved(found, -4) for found in held]

    def add_up(
        self,
        make: Vectors,
        record: TileRecord,  # noqa: ARG002 - a protocol
        levels: list[Any],
        rows: Sequence[BlockRow],
    ) -> Iterator[Any]:
        """See `dot.Dot`."""
        multiply = make.external("llvm.aarch64.neon.sdot.v4i32.v16i8", [_FOURS, _BYTES, _BYTES], _FOURS)
        for row in rows:
            held = [make.load(row.levels, offset, _FOURS) for offset in (0, 16)]
            found = ir.Constant(_FOURS, None)
            for group in range(NUM_GROUPS):
                numbers = _woven(make, [held[group // 4]] * 2, _FOURS, [group % 4] * 4)
                found = make.builder.call(multiply, [found, levels[group], numbers])
            yield found


class Smmla(Sdot):
    """`smmla`: two outputs and eight inputs of two rows at once; a single row is multiplied by `sdot`."""

    name = "smmla"
    features = frozenset({language.DOT, language.MATRIX})
    max_rows = 8

    def add_up(
        self, make: Vectors, record: TileRecord, levels: list[Any], rows: Sequence[BlockRow]
    ) -> Iterator[Any]:
        """See `dot.Dot`."""
        if len(rows) == 1:
            yield from super().add_up(make, record, levels, rows)
            return
        multiply = make.external("llvm.aarch64.neon.smmla.v4i32.v16i8", [_FOURS, _BYTES, _BYTES], _FOURS)
        weights = [
            [_woven(make, levels[group : group + 2], _FOURS, lanes) for lanes in ([0, 4, 1, 5], [2, 6, 3, 7])]
            for group in range(0, NUM_GROUPS, 2)
        ]
        for pair in zip(rows[::2], rows[1::2], strict=True):
            inputs = []
            for offset in (0, 16):
                held = [make.load(row.levels, offset, _BYTES) for row in pair]
                inputs += [_woven(make, held, _HALVES, lanes) for lanes in ([0, 2], [1, 3])]
            sums = [ir.Constant(_FOURS, None)] * 2
            for halves, numbers in zip(weights, inputs, strict=True):
                sums = [
                    make.builder.call(multiply, [total, half, numbers])
                    for total, half in zip(sums, halves, strict=True)
                ]
            for lanes in ([0, 2, 4, 6], [1, 3, 5, 7]):
                yield _woven(make, sums, _FOURS, lanes, _FOURS)


def _woven(make: Vectors, two: Sequence[Any], kind: Any, lanes: Sequence[int], result: Any = _BYTES) -> Any:
    """Some lanes of two registers, counted through both as vectors of a kind."""
    left, right = (make.builder.bitcast(found, kind) for found in two)
    chosen = ir.Constant(many(I32, len(lanes)), list(lanes))
    return make.builder.bitcast(make.builder.shuffle_vector(left, right, chosen), result)


def _five_bits(make: Vectors, record: TileRecord, place: Any, first: int, held: Sequence[Any]) -> list[Any]:
    """Levels minus sixteen: levels without a fifth bit get ones above their four.

    The fifth bits of four outputs are two bytes. Each byte goes to eight lanes.
    """
    builder = make.builder
    look_up = make.external("llvm.aarch64.neon.tbl1.v16i8", [_BYTES] * 2, _BYTES)
    insert = make.external("llvm.aarch64.neon.vsli.v16i8", [_BYTES, _BYTES, I32], _BYTES)
    one_each = ir.Constant(_BYTES, [(1 << at % 8) - (256 if at % 8 == 7 else 0) for at in range(16)])
    ones = ir.Constant(_BYTES, [-1] * 16)
    lows = [builder.xor(make.load(place, record.highs_at + 16 * at, _BYTES), ones) for at in range(4)]
    found = []
    for group, nibbles in enumerate([*held, *(make.moved(x, -4) for x in held)]):
        start = 8 * (group % 2) + first // 2
        lanes = ir.Constant(_BYTES, [start] * 8 + [start + 1] * 8)
        spread = builder.call(look_up, [lows[group // 2], lanes])
        is_low = builder.icmp_unsigned("!=", builder.and_(spread, one_each), ir.Constant(_BYTES, None))
        found.append(builder.call(insert, [nibbles, builder.sext(is_low, _BYTES), I32(4)]))
    return found


class Dot(Protocol):
    """How one instruction set multiplies, on machines that have all of `features`. `name` is for people.

    Registers hold the sums of `num_outputs` of a tile and `max_rows` rows. Powers of two are multiplied with
    by adding to exponents where `adds_exponents`. Where there are `quads`, they multiply four rows and more.
    """

    name: str
    features: frozenset[str]
    num_outputs: int
    max_rows: int
    adds_exponents: bool
    quads: QuadDot | None

    def levels(self, make: Vectors, record: TileRecord, place: Any, first: int) -> list[Any]:
        """The levels of `num_outputs` outputs from `first` on, in the block's record at `place`, as `add_up`
        takes them.
        """

    def add_up(
        self, make: Vectors, record: TileRecord, levels: list[Any], rows: Sequence[BlockRow]
    ) -> Iterator[Any]:
        """Yield the sums of `(level - zero_level) * input` [num_outputs] int32, row by row."""


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
    features = language.features()
    return [
        number
        for number, found in enumerate(INSTRUCTION_SETS)
        if found.features <= features and (not isinstance(found, MatrixUnit) or matrix_unit.is_allowed())
    ]
