"""The inner loops of products are what they should be, also on processors that are not here."""

from __future__ import annotations

import pytest

from completion_engine.cpu.kernels.packing import RECORDS
from tests.completion_engine.cpu.machine_code import TARGETS, loop_of

MULTIPLIES = {
    "AVX-512 VNNI": ("vpdpbusd", 8),
    "AVX-VNNI": ("vpdpbusd", 16),
    "AVX2": ("vpmaddubsw", 16),
    "smmla": ("smmla", 16),
    "sdot": ("sdot", 32),
}


@pytest.mark.parametrize("bits", RECORDS)
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_multiplies_twice(name: str, bits: int) -> None:
    loop = loop_of(TARGETS[name], bits, 8)
    instruction, number = MULTIPLIES[name]
    assert loop.names[instruction] * loop.num_times == 8 * number


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("name", ["AVX-512 VNNI", "smmla", "sdot"])
def test_one_row_is_multiplied_in_registers(name: str, bits: int) -> None:
    assert loop_of(TARGETS[name], bits, 1).num_spilled == 0


@pytest.mark.parametrize("name", ["smmla", "sdot"])
def test_arm_takes_inputs_out_of_registers_by_lanes(name: str) -> None:
    """What a group of inputs is multiplied with is a lane, and no instruction of its own."""
    loop = loop_of(TARGETS[name], 8, 1)
    assert sum(line.startswith("sdot") and line.endswith("]") for line in loop.lines) == 32
    assert not loop.names["dup"]
