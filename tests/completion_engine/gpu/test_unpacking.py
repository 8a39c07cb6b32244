"""The machine's instructions that unpack 4-bit levels, run one by one: what they make of every byte.

A GPU runs them and Triton's interpreter cannot: the few that occur are worked out here as they are defined.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

Words = npt.NDArray[np.uint32]

if importlib.util.find_spec("triton") is None:
    pytest.skip("triton is not installed: the GPU kernels are NOT tested here", allow_module_level=True)

from completion_engine.gpu.kernels.product import UNPACK  # noqa: E402 - needs triton


def prmt(a: Words, b: Words, selector: Words) -> Words:
    """Each byte of the result is the one of b:a that a digit of the selector names."""
    eight = [part >> np.uint32(8 * at) & np.uint32(255) for part in (a, b) for at in range(4)]
    digits = [int(selector[0]) >> 4 * at & 15 for at in range(4)]
    return sum((eight[digit] << np.uint32(8 * at) for at, digit in enumerate(digits)), np.zeros_like(a))


def halves(words: Words) -> list[npt.NDArray[np.float64]]:
    """The two bf16 of each word, the low one first."""
    bits = (words << np.uint32(16), words & np.uint32(0xFFFF0000))
    return [half.astype(np.uint32).view(np.float32).astype(np.float64) for half in bits]


def fma(a: Words, b: Words, c: Words) -> Words:
    """Fused multiply-add of pairs of bf16; the results must need no rounding."""
    found = [x * y + z for x, y, z in zip(halves(a), halves(b), halves(c), strict=True)]
    low, high = (half.astype(np.float32).view(np.uint32) for half in found)
    assert not ((low | high) & np.uint32(0xFFFF)).any(), "a result is no bf16"
    return low >> np.uint32(16) | high


INSTRUCTIONS: dict[str, Callable[..., Words]] = {
    "mov.b32": lambda a: a,
    "and.b32": lambda a, b: a & b,
    "shr.b32": lambda a, b: a >> b,
    "prmt.b32": prmt,
    "fma.rn.bf16x2": fma,
}


def run(program: str, words: Words) -> list[Words]:
    """The results of `program` in $0 to $3, with `words` in $4."""
    registers = {"$4": words}
    for line in program.strip("{}\n ").split(";"):
        name, _, arguments = line.strip().partition(" ")
        if not name or name == ".reg":
            continue
        target, *sources = re.split(r",\s*", arguments)
        values = [registers[at] if at in registers else np.full_like(words, int(at, 0)) for at in sources]
        registers[target] = INSTRUCTIONS[name](*values)
    return [registers[f"${at}"] for at in range(4)]


def test_every_byte_gives_its_two_levels_at_every_place() -> None:
    levels = np.arange(256, dtype=np.uint32)
    places = [np.roll(levels, 64 * at) for at in range(4)]
    packed = sum((place << np.uint32(8 * at) for at, place in enumerate(places)), np.zeros_like(levels))
    found = [half for words in run(UNPACK.value, packed) for half in halves(words)]
    for at, place in enumerate(places):
        assert np.array_equal(found[at], (place & 15).astype(float) - 8)
        assert np.array_equal(found[4 + at], (place >> 4).astype(float) - 8)
