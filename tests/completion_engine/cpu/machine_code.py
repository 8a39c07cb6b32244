"""The machine code of a product's inner loop on processors that need not be here, and what is counted in it.

`python -m tests.completion_engine.cpu.machine_code` prints, for each instruction set, how many instructions
multiply 32 inputs by 16 outputs, and what passes take on a few ARM processors by reckoning from that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from llvmlite import binding, ir

from completion_engine.cpu.kernels.dot import INSTRUCTION_SETS
from completion_engine.cpu.kernels.packing import RECORDS, TILE_OUTPUTS
from completion_engine.cpu.kernels.row_quads import QUAD
from completion_engine.cpu.kernels.unpacked_tile import write_products
from completion_engine.cpu.kernels.vectors import I64, Vectors
from completion_engine.cpu.kernels.weight_tile import write_tile

_X86, _ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
_LABEL = re.compile(r"^([.\w]+):")
_JUMP = re.compile(r"^(?:b\.\w+|j\w+|cbnz)\b.*?(\.L\w+)$")
_SPEAKS_OF_MEMORY = re.compile(r"^(?:ld|st)|\(%")
_STACK = re.compile(r"\[sp|%rsp|%rbp")
_VECTOR = re.compile(r"\bv\d+\.|%[xyz]mm")
_FETCHES = ("prfm", "prefetch")


class Target(NamedTuple):
    """A processor to compile for: LLVM's names, and which of `INSTRUCTION_SETS` it is for."""

    number: int
    triple: str
    name: str
    features: str = ""


TARGETS = {
    "AVX-512 VNNI": Target(1, _X86, "cascadelake"),
    "AVX-VNNI": Target(2, _X86, "alderlake"),
    "AVX2": Target(3, _X86, "haswell"),
    "smmla": Target(4, _ARM, "generic", "+dotprod,+i8mm"),
    "sdot": Target(5, _ARM, "generic", "+dotprod"),
}


@dataclass(frozen=True)
class Loop:
    """The instructions that multiply a block of a tile by `num_rows` rows, out of a group of `group_size`."""

    lines: tuple[str, ...]
    num_rows: int
    group_size: int

    @cached_property
    def names(self) -> Counter[str]:
        return Counter(line.removeprefix("{vex} ").split()[0] for line in self.lines)

    @property
    def num_times(self) -> int:
        """Number of iterations for all rows of the group."""
        return self.group_size // self.num_rows

    @property
    def num_all(self) -> int:
        return self.num_times * len(self.lines)

    @property
    def num_vector(self) -> int:
        """Those that compute on vectors."""
        return self.num_times * sum(
            bool(_VECTOR.search(line)) and not line.startswith(("ld", "st", *_FETCHES)) for line in self.lines
        )

    @property
    def num_memory(self) -> int:
        """Those that read or write memory, without those that only fetch ahead."""
        is_memory = (_SPEAKS_OF_MEMORY.search(line) and not line.startswith(_FETCHES) for line in self.lines)
        return self.num_times * sum(map(bool, is_memory))

    @property
    def num_spilled(self) -> int:
        """Those of them that read or write the stack."""
        return self.num_times * sum(bool(_STACK.search(line)) for line in self.lines)


def write_both(target: Target, bits: int) -> ir.Module:
    """A module with the parts of a product's kernel: one for one row, one for a group of eight."""
    module = ir.Module()
    module.triple = target.triple
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 8), "tile")
    builder = ir.IRBuilder(function.append_basic_block())
    for num_rows in (1, 8):
        write_tile(Vectors(builder), target.number, bits, num_rows, *function.args)
    builder.ret_void()
    return module


def loop_of(target: Target, bits: int, group_size: int) -> Loop:
    """The inner loop for groups of this number of rows, compiled as kernels are.

    If levels are unpacked for all rows first, it is the loop that multiplies four rows with them.
    """
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    module = ir.Module()
    module.triple = target.triple
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 8), "tile")
    builder = ir.IRBuilder(function.append_basic_block())
    multiplies_quads = INSTRUCTION_SETS[target.number].quads is not None and group_size % QUAD == 0
    if multiplies_quads:
        write_products(Vectors(builder), target.number, bits, group_size, *function.args[:6])
    else:
        write_tile(Vectors(builder), target.number, bits, group_size, *function.args)
    builder.ret_void()
    parsed = binding.parse_assembly(str(module))
    machine = binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.name, features=target.features, opt=3
    )
    parsed.data_layout = str(machine.target_data)
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(parsed, passes)
    loops = sorted(_loops(machine.emit_assembly(parsed)), key=len)
    if multiplies_quads:
        return Loop(loops[-2] if group_size > QUAD else loops[-1], QUAD, group_size)
    return Loop(loops[-1], min(group_size, INSTRUCTION_SETS[target.number].max_rows), group_size)


def _loops(text: str) -> Iterator[tuple[str, ...]]:
    """The instructions of each loop, from its label to the jump back there."""
    lines = [line.split("//")[0].strip().replace("\t", " ") for line in text.splitlines()]
    places = {found[1]: at for at, line in enumerate(lines) if (found := _LABEL.match(line))}
    for end, line in enumerate(lines):
        jump = _JUMP.match(line)
        if jump and (start := places.get(jump[1], end)) < end:
            yield tuple(x for x in lines[start : end + 1] if x and not x.startswith((".", "#", "/")))


class Processor(NamedTuple):
    """What bounds a pass: cores that compute it, their clock, and what they do in a cycle; GB/s of memory."""

    target: str
    num_cores: int
    ghz: float
    vector_pipes: int
    memory_pipes: int
    width: int
    bandwidth: float


# Pipes and widths: LLVM's scheduling models (AArch64SchedNeoverseN1.td, V1.td, V2.td), which follow Arm's
# software optimization guides, and Dougall Johnson's measurements of Apple's M1. Clocks and Apple's memory:
# what makers say. The memory bandwidth of four cores of a server is assumed.
PROCESSORS = {
    "Apple M1, 4 fast cores": Processor("sdot", 4, 3.2, 4, 3, 8, 68),
    "Apple M2, 4 fast cores": Processor("smmla", 4, 3.5, 4, 3, 8, 100),
    "Neoverse N1, 4 cores": Processor("sdot", 4, 2.5, 2, 2, 8, 50),
    "Neoverse V1, 4 cores": Processor("smmla", 4, 2.6, 4, 3, 8, 75),
    "Neoverse V2, 4 cores": Processor("smmla", 4, 2.8, 4, 3, 6, 100),
}
# Weights of Qwen2.5-Coder 0.5B, taken to be in 5 bits in its layers and in 8 in its head.
_WEIGHTS = {5: 24 * (896 * (896 + 2 * 128) + 896 * 896 + 3 * 896 * 4864), 8: 151_936 * 896}


def reckoned_ms(processor: Processor, loops: dict[int, Loop]) -> tuple[float, float]:
    """Milliseconds of the products of a pass of 0.5B: by memory, and by instructions at their best."""
    num_bytes = cycles = 0.0
    for bits, num_weights in _WEIGHTS.items():
        num_blocks, loop = num_weights / (32 * TILE_OUTPUTS), loops[bits]
        num_bytes += num_blocks * RECORDS[bits].num_bytes
        cycles += num_blocks * max(
            loop.num_vector / processor.vector_pipes,
            loop.num_memory / processor.memory_pipes,
            loop.num_all / processor.width,
        )
    return num_bytes / processor.bandwidth / 1e6, cycles / (processor.num_cores * processor.ghz) / 1e6


def report() -> Iterator[str]:
    """The lines of both tables."""
    found = {
        (name, bits, size): loop_of(target, bits, size)
        for name, target in TARGETS.items()
        for bits in RECORDS
        for size in (1, 8)
    }
    yield "Instructions for 32 inputs and 16 outputs: all (on vectors, memory, of that the stack)"
    for (name, bits, size), loop in found.items():
        told = f"{loop.num_all} ({loop.num_vector}, {loop.num_memory}, {loop.num_spilled})"
        yield f"{name:>13}, {bits} bits, {size} rows: {told}"
    yield "Reckoned ms of a pass's products, 0.5B: memory alone, instructions alone; the longer one counts"
    for name, processor in PROCESSORS.items():
        for size in (1, 8):
            loops = {bits: found[processor.target, bits, size] for bits in RECORDS}
            memory, computing = reckoned_ms(processor, loops)
            yield f"{name}, {processor.target}, {size} rows: {memory:.1f}, {computing:.1f}"


if __name__ == "__main__":
    for line in report():
        print(line)  # noqa: T201 - a command speaks
