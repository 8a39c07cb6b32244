"""Products of bytes on x86: AVX2's, VNNI's, and which processors have a matrix unit. See `dot.Dot`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir

from completion_engine.cpu.kernels.packing import BLOCK, NUM_GROUPS, TILE_OUTPUTS, BlockRow, TileRecord
from completion_engine.cpu.kernels.row_quads import MaddQuads, QuadDot, VnniQuads
from completion_engine.cpu.kernels.vectors import I1, I8, I16, I32, I64, Vectors, many

_LARGEST = 127  # largest value beside a sign in a byte
_FLOATS = frozenset({"avx2", "fma", "f16c"})  # instructions for the sums in floats


class _X86:
    """A tile's outputs all at once; `lanes` of them lie in a register. `quads` multiplies four rows and more.

    A register is a group of four inputs of each output.
    """

    num_outputs = TILE_OUTPUTS
    max_rows = 16
    adds_exponents = True  # the float multipliers also multiply bytes, and are busy
    quads: QuadDot | None = None
    lanes: int

    def levels(self, make: Vectors, record: TileRecord, place: Any, first: int) -> list[Any]:  # noqa: ARG002 - all
        """See `dot.Dot`."""
        builder = make.builder
        if record.bits == 8:
            bytes_of = [make.load(place, 64 * group, many(I8, 64)) for group in range(NUM_GROUPS)]
            return [builder.bitcast(found, many(I32)) for found in bytes_of]
        pairs = [make.load(place, 64 * pair, many(I16, 32)) for pair in range(NUM_GROUPS // 2)]
        low = ir.Constant(many(I16, 32), [0x0F0F] * 32)
        nibbles = [builder.and_(pair, low) for pair in pairs]
        nibbles += [builder.and_(make.moved(pair, -4), low) for pair in pairs]
        if record.highs_at:
            nibbles = [_with_high(make, record, place, group, found) for group, found in enumerate(nibbles)]
        return [builder.bitcast(found, many(I32)) for found in nibbles]

    def add_up(
        self, make: Vectors, record: TileRecord, levels: list[Any], rows: Sequence[BlockRow]
    ) -> Iterator[Any]:
        """See `dot.Dot`."""
        for row in rows:
            inputs = [make.repeated(row.levels, 4 * group, I32) for group in range(NUM_GROUPS)]
            zero = make.repeated(row.zero, 0, I32) if row.zero is not None else make.all_of(I32, 0)
            sums = []
            for first in range(0, TILE_OUTPUTS, self.lanes):
                weights, numbers = (
                    [make.part(whole, first, self.lanes) for whole in groups] for groups in (levels, inputs)
                )
                begin = make.part(zero, first, self.lanes)
                sums.append(self.add_lanes(make, record.bits, weights, numbers, begin))
            yield make.joined(sums)

    def add_lanes(
        self, make: Vectors, bits: int, levels: Sequence[Any], inputs: Sequence[Any], zero: Any
    ) -> Any:
        """The sums of a register's outputs for levels of this number of bits, and of `zero`."""
        raise NotImplementedError


class Vnni(_X86):
    """`vpdpbusd`, which multiplies and sums up at once, on vectors of this number of bits."""

    def __init__(self, num_bits: int, *features: str) -> None:
        self.name = "AVX-512 VNNI" if num_bits == 512 else "AVX-VNNI"
        self.features = _FLOATS | set(features)
        self.lanes = num_bits // 32
        self.quads = VnniQuads() if num_bits == 256 else None
        self._name = f"llvm.x86.avx512.vpdpbusd.{num_bits}"

    def add_lanes(
        self,
        make: Vectors,
        bits: int,  # noqa: ARG002 - sums of any levels have room
        levels: Sequence[Any],
        inputs: Sequence[Any],
        zero: Any,
    ) -> Any:
        """See `_X86`."""
        multiply = make.external(self._name, [zero.type] * 3, zero.type)
        found = zero
        for weights, numbers in zip(levels, inputs, strict=True):
            found = make.builder.call(multiply, [found, weights, numbers])
        return found


class MatrixUnit(Vnni):
    """A processor with AMX, which multiplies groups of rows by `matrix_unit` and all others by VNNI."""

    def __init__(self) -> None:
        super().__init__(512, "avx512f", "avx512bw", "avx512vnni", "amx-tile", "amx-int8")
        self.name = "AMX and AVX-512 VNNI"


class Avx2(_X86):
    """`vpmaddubsw`, which sums up pairs in 16 bits, as many as these hold.

    Levels that leave no room for a pair are taken to both sides of zero, and their signs go to the inputs.
    """

    name = "AVX2"
    features = _FLOATS
    lanes = TILE_OUTPUTS // 2
    quads: QuadDot | None = MaddQuads()

    def add_lanes(
        self, make: Vectors, bits: int, levels: Sequence[Any], inputs: Sequence[Any], zero: Any
    ) -> Any:
        """See `_X86`."""
        room = 2**15 // (2 * _LARGEST * (2**bits - 1))
        found = zero if room else ir.Constant(zero.type, None)
        pairs = [self._pairs(make, *group, is_signed=not room) for group in zip(levels, inputs, strict=True)]
        for at in range(0, len(pairs), max(room, 1)):
            found = make.builder.add(found, self._in_fours(make, pairs[at : at + max(room, 1)]))
        return found

    def _pairs(self, make: Vectors, levels: Any, inputs: Any, *, is_signed: bool) -> Any:
        half = many(I8, BLOCK)
        levels, inputs = (make.builder.bitcast(found, half) for found in (levels, inputs))
        if is_signed:
            to_both_sides = make.external("llvm.x86.avx2.psign.b", [half] * 2, half)
            levels = make.builder.xor(levels, ir.Constant(half, [-128] * BLOCK))
            inputs = make.builder.call(to_both_sides, [inputs, levels])
            levels = make.builder.call(to_both_sides, [levels, levels])
        multiply = make.external("llvm.x86.avx2.pmadd.ub.sw", [half] * 2, many(I16, BLOCK // 2))
        return make.builder.call(multiply, [levels, inputs])

    def _in_fours(self, make: Vectors, pairs: Sequence[Any]) -> Any:
        total = pairs[0]
        for pair in pairs[1:]:
            total = make.builder.add(total, pair)
        add_pairs = make.external("llvm.x86.avx2.pmadd.wd", [total.type] * 2, many(I32, TILE_OUTPUTS // 2))
        return make.builder.call(add_pairs, [total, ir.Constant(total.type, [1] * (BLOCK // 2))])


def _with_high(make: Vectors, record: TileRecord, place: Any, group: int, nibbles: Any) -> Any:
    builder = make.builder
    is_high = builder.bitcast(make.load(place, record.highs_at + 8 * group, I64), many(I1, 64))
    found = builder.bitcast(nibbles, many(I8, 64))
    return builder.select(is_high, builder.or_(found, ir.Constant(many(I8, 64), [16] * 64)), found)
