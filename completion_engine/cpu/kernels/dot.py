"""Products of bytes, summed up by fours, in the instructions that this machine has for them.

Weights come as levels from zero up, inputs to both sides of zero. All instruction sets give the same whole
numbers. Only what writes LLVM's language needs to know which one is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

from llvmlite import ir
from numba import config
from numba.core.codegen import get_host_cpu_features

from completion_engine.cpu.kernels import matrix_unit
from completion_engine.cpu.kernels.packing import BLOCK, TILE_OUTPUTS
from completion_engine.cpu.kernels.vectors import I8, I16, I32, Vectors, many

_LARGEST = 127  # of what stands beside a sign in a byte
_FLOATS = frozenset({"avx2", "fma", "f16c"})  # what the sums in floats are made of


class Dot(Protocol):
    """How one instruction set multiplies, on machines that have all of `features`."""

    features: frozenset[str]
    lanes: int  # outputs at once

    def add_up(
        self, make: Vectors, bits: int, levels: Sequence[Any], inputs: Sequence[Any], zero: Any
    ) -> Any:
        """The sums of `(level - zero_level) * input` of so many outputs, int32.

        levels, of so many bits, and inputs are groups of four inputs each, [lanes * 4] bytes. `zero` is what
        the inputs add up to times minus the zero level, in every lane.
        """


def add_up(
    dot: Dot, make: Vectors, bits: int, levels: Sequence[Any], inputs: Sequence[Any], zero: Any
) -> Any:
    """`Dot.add_up` of all outputs of a tile."""
    sums = []
    for first in range(0, TILE_OUTPUTS, dot.lanes):
        weights, numbers = (
            [make.part(whole, first, dot.lanes) for whole in groups] for groups in (levels, inputs)
        )
        sums.append(dot.add_up(make, bits, weights, numbers, make.part(zero, first, dot.lanes)))
    return make.joined(sums)


class Vnni:
    """`vpdpbusd`, which multiplies and sums up at once, on vectors of so many bits."""

    def __init__(self, num_bits: int, *features: str) -> None:
        self.features = _FLOATS | set(features)
        self.lanes = num_bits // 32
        self._name = f"llvm.x86.avx512.vpdpbusd.{num_bits}"

    def add_up(
        self,
        make: Vectors,
        bits: int,  # noqa: ARG002 - sums of any levels have room
        levels: Sequence[Any],
        inputs: Sequence[Any],
        zero: Any,
    ) -> Any:
        """See `Dot`."""
        multiply = make.external(self._name, [zero.type] * 3, zero.type)
        found = zero
        for weights, numbers in zip(levels, inputs, strict=True):
            found = make.builder.call(multiply, [found, weights, numbers])
        return found


class MatrixUnit(Vnni):
    """A processor with AMX, which multiplies groups of rows by `matrix_unit` and all others by VNNI."""

    def __init__(self) -> None:
        super().__init__(512, "avx512f", "avx512bw", "avx512vnni", "amx-tile", "amx-int8")


class Avx2:
    """`vpmaddubsw`, which sums up pairs in 16 bits, as many as these hold.

    Levels that leave no room for a pair are taken to both sides of zero, and their signs go to the inputs.
    """

    features = _FLOATS
    lanes = TILE_OUTPUTS // 2

    def add_up(
        self, make: Vectors, bits: int, levels: Sequence[Any], inputs: Sequence[Any], zero: Any
    ) -> Any:
        """See `Dot`."""
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


# The quickest first.
INSTRUCTION_SETS: tuple[Dot, ...] = (
    MatrixUnit(),
    Vnni(512, "avx512f", "avx512bw", "avx512vnni"),
    Vnni(256, "avxvnni"),
    Avx2(),
)


@cache
def instruction_sets() -> list[int]:
    """Those of `INSTRUCTION_SETS` that this machine has, the quickest first; none if bytes are slow here."""
    told = config.CPU_FEATURES or get_host_cpu_features()  # type: ignore[attr-defined]  # set by name
    features = {name[1:] for name in str(told).split(",") if name.startswith("+")}
    return [
        number
        for number, found in enumerate(INSTRUCTION_SETS)
        if found.features <= features and (not isinstance(found, MatrixUnit) or matrix_unit.is_allowed())
    ]
