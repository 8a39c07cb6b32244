"""Products of bytes, summed up by fours, in the instructions that this machine has for them.

Weights come as levels from zero up, inputs to both sides of zero. All ways give the same whole numbers. Only
what writes LLVM's language needs to know which one is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

from llvmlite import ir
from numba import config
from numba.core.codegen import get_host_cpu_features

from completion_engine.cpu.packing import BLOCK, STRIP
from completion_engine.cpu.vectors import I8, I16, I32, Vectors, many

_NUM_BYTES = 4 * STRIP  # of sixteen outputs and four inputs each
_LARGEST = 127  # of what stands beside a sign in a byte
_FLOATS = frozenset({"avx2", "fma", "f16c"})  # what the sums in floats are made of


class Dot(Protocol):
    """One way to multiply; it can be taken where the machine has all of `features`."""

    features: frozenset[str]

    def add_up(
        self, make: Vectors, bits: int, levels: Sequence[Any], inputs: Sequence[Any], zero: Any
    ) -> Any:
        """The sums of `(level - zero_level) * input` of sixteen outputs, int32.

        levels, of so many bits, and inputs are groups of four inputs each, [STRIP * 4] bytes. `zero` is what
        the inputs add up to times minus the zero level, in every output; None where that level is 0.
        """


class Vnni:
    """`vpdpbusd`, which multiplies and sums up at once, on vectors of so many bits."""

    def __init__(self, num_bits: int, *features: str) -> None:
        self.features = _FLOATS | set(features)
        self._num_bits = num_bits

    def add_up(
        self,
        make: Vectors,
        bits: int,  # noqa: ARG002 - sums of any levels have room
        levels: Sequence[Any],
        inputs: Sequence[Any],
        zero: Any,
    ) -> Any:
        """See `Dot`."""
        lanes = self._num_bits // 32
        multiply = make.external(
            f"llvm.x86.avx512.vpdpbusd.{self._num_bits}", [many(I32, lanes)] * 3, many(I32, lanes)
        )
        sums = []
        for first in range(0, STRIP, lanes):
            found = make.part(_begun(zero), first, lanes)
            for weights, numbers in zip(levels, inputs, strict=True):
                parts = [make.part(whole, first, lanes) for whole in (weights, numbers)]
                found = make.builder.call(multiply, [found, *parts])
            sums.append(found)
        return make.joined(sums)


class Avx2:
    """`vpmaddubsw`, which sums up pairs in 16 bits, as many as these hold.

    Levels that leave no room for a pair are taken to both sides of zero, and their signs go to the inputs.
    """

    features = _FLOATS

    def add_up(
        self, make: Vectors, bits: int, levels: Sequence[Any], inputs: Sequence[Any], zero: Any
    ) -> Any:
        """See `Dot`."""
        room = 2**15 // (2 * _LARGEST * (2**bits - 1))
        start = _begun(zero if room else None)
        sums = []
        for first in range(0, STRIP, STRIP // 2):
            found = make.part(start, first, STRIP // 2)
            parts = [[make.part(whole, first, STRIP // 2) for whole in groups] for groups in (levels, inputs)]
            pairs = [self._pairs(make, *group, is_signed=not room) for group in zip(*parts, strict=True)]
            for at in range(0, len(pairs), max(room, 1)):
                found = make.builder.add(found, self._in_fours(make, pairs[at : at + max(room, 1)]))
            sums.append(found)
        return make.joined(sums)

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
        add_pairs = make.external("llvm.x86.avx2.pmadd.wd", [total.type] * 2, many(I32, STRIP // 2))
        return make.builder.call(add_pairs, [total, ir.Constant(total.type, [1] * (BLOCK // 2))])


# The quickest first.
WAYS: tuple[Dot, ...] = (
    Vnni(512, "avx512f", "avx512bw", "avx512vnni"),
    Vnni(256, "avxvnni"),
    Avx2(),
)


@cache
def ways() -> list[int]:
    """Which of `WAYS` this machine has, the quickest first; none where it multiplies no bytes fast."""
    features = {name[1:] for name in str(_features()).split(",") if name.startswith("+")}
    return [number for number, way in enumerate(WAYS) if way.features <= features]


def _features() -> object:
    return config.CPU_FEATURES or get_host_cpu_features()  # type: ignore[attr-defined]  # set by name


def _begun(zero: Any) -> Any:
    return ir.Constant(many(I32), None) if zero is None else zero
