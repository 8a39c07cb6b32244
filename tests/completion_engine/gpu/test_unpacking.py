"""The machine's instructions that unpack levels, run one by one: what they make of every byte.

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

from completion_engine.gpu.blocks import form_of_kind  # noqa: E402 - as below
from completion_engine.gpu.kernels.blocks import (  # noqa: E402 - needs triton
    UNPACK_4,
    UNPACK_5,
    UNPACK_6,
    UNPACK_8,
)


def prmt(a: Words, b: Words, selector: Words) -> Words:
    """Each byte of the result is the one of b:a that a digit of the selector names."""
    eight = [part >> np.uint32(8 * at) & np.uint32(255) for part in (a, b) for at in range(4)]
    digits = [int(selector[0]) >> 4 * at & 15 for at in range(4)]
    return sum((eight[digit] << np.uint32(8 * at) for at, digit in enumerate(digits)), np.zeros_like(a))


INSTRUCTIONS: dict[str, Callable[..., Words]] = {
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "shr.b32": lambda a, b: a >> b,
    "shl.b32": lambda a, b: a << b,
    "prmt.b32": prmt,
}


def run(program: str, num_results: int, *words: Words) -> list[npt.NDArray[np.float32]]:
    """The results of `program` in $0 and on, with `words` in the registers after them."""
    registers = {f"${num_results + at}": word for at, word in enumerate(words)}
    for line in program.strip("{}\n ").split(";"):
        name, _, arguments = line.strip().partition(" ")
        if not name or name == ".reg":
            continue
        target, *sources = re.split(r",\s*", arguments)
        values = [registers[at] if at in registers else np.full_like(words[0], int(at, 0)) for at in sources]
        registers[target] = INSTRUCTIONS[name](*values)
    return [registers[f"${at}"].view(np.float32) for at in range(num_results)]


def in_words(places: list[Words]) -> Words:
    """Four bytes of each place in one word, the first one lowest."""
    return sum((place << np.uint32(8 * at) for at, place in enumerate(places)), np.zeros_like(places[0]))


BYTES = np.arange(256, dtype=np.uint32)
PLACES = [np.roll(BYTES, 64 * at) for at in range(4)]


def test_every_byte_gives_its_two_levels_at_every_place() -> None:
    found = run(UNPACK_4.value, 8, in_words(PLACES))
    for at, place in enumerate(PLACES):
        assert np.array_equal(found[at], 128.0 + (place & 15))
        assert np.array_equal(found[4 + at], 128.0 + (place >> 4))


def test_every_byte_is_a_level_of_eight_bits() -> None:
    for found, place in zip(run(UNPACK_8.value, 4, in_words(PLACES)), PLACES, strict=True):
        assert np.array_equal(found, 32768.0 + place)


@pytest.mark.parametrize("bits", [5, 6])
def test_upper_bits_of_every_run_join_the_lower_ones(bits: int) -> None:
    """A byte has those of 8 or 4 runs; two runs are read at a time, from `shift` on."""
    width, program = bits - 4, (UNPACK_5 if bits == 5 else UNPACK_6).value
    mask = (1 << width) - 1
    for first in (0, 90, 255):
        lower = [np.full_like(BYTES, first + at & 255) for at in range(4)]
        for shift in range(0, 8, 2 * width):
            found = run(program, 8, in_words(lower), in_words(PLACES), np.full_like(BYTES, shift))
            for at, (low, upper) in enumerate(zip(lower, PLACES, strict=True)):
                more = upper >> np.uint32(shift)
                assert np.array_equal(found[at], 128.0 + (low & 15 | (more & mask) << 4))
                assert np.array_equal(found[4 + at], 128.0 + (low >> 4 | (more >> width & mask) << 4))


@pytest.mark.parametrize("kind", ["Q4_0", "Q5_0", "Q6_K", "Q8_0", "Q4_K", "Q5_K"])
def test_one_fused_operation_makes_the_number_exactly(kind: str) -> None:
    """A raised level times a scale, less the raise times the scale: float64 holds all of it."""
    form, generator = form_of_kind(kind), np.random.default_rng(0)
    unit = generator.normal(size=4096).astype(np.float16).astype(np.float64)
    code = generator.integers(-128, 128, 4096) if form.has_codes else 1
    scale, level = unit * code, generator.integers(0, 2**form.bits, 4096)
    raised = 32768 if form.bits == 8 else 128
    assert np.array_equal(scale.astype(np.float32), scale)
    shift = -(raised + form.zero) * scale
    assert np.array_equal(shift.astype(np.float32), shift)
    assert np.array_equal((raised + level) * scale + shift, (level - form.zero) * scale)
    assert np.array_equal(((level - form.zero) * scale).astype(np.float32), (level - form.zero) * scale)
