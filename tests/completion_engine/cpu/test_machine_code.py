"""The inner loops of products are what they should be, also on processors that are not here."""

from __future__ import annotations

import pytest
from llvmlite import binding

from completion_engine.cpu.kernels.packing import RECORDS
from tests.completion_engine.cpu.machine_code import TARGETS, loop_of, write_both

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
    if (name, bits) == ("AVX2", 8):
        number *= 2  # by halves of levels
    assert loop.names[instruction] * loop.num_times == 8 * number


@pytest.mark.parametrize("bits", RECORDS)
@pytest.mark.parametrize("name", TARGETS)
def test_all_numbers_of_rows_fit_one_module(name: str, bits: int) -> None:
    """An instruction that LLVM knows by name has one type there."""
    binding.parse_assembly(str(write_both(TARGETS[name], bits))).verify()


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("name", ["AVX-512 VNNI", "smmla", "sdot"])
def test_one_row_is_multiplied_in_registers(name: str, bits: int) -> None:
    assert loop_of(TARGETS[name], bits, 1).num_spilled == 0


@pytest.mark.parametrize("bits", RECORDS)
@pytest.mark.parametrize("name", ["AVX-VNNI", "AVX2"])
def test_sixteen_registers_are_enough_for_four_rows(name: str, bits: int) -> None:
    """One thing at most lies on the stack, a constant or an address."""
    loop = loop_of(TARGETS[name], bits, 8)
    assert loop.num_spilled <= loop.num_times


@pytest.mark.parametrize("name", ["smmla", "sdot"])
def test_arm_takes_inputs_out_of_registers_by_lanes(name: str) -> None:
    """The factor of a group of inputs is a lane, without an instruction of its own."""
    loop = loop_of(TARGETS[name], 8, 1)
    assert sum(line.startswith("sdot") and line.endswith("]") for line in loop.lines) == 32
    assert not loop.names["dup"]
