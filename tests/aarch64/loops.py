"""The loops that kernels spend their time in, as machine code for a processor that need not be here.

`python -m tests.aarch64.loops x86_64|aarch64 FILE` compiles products by each instruction set, attention,
rounding and sums into FILE: for ARM with all that it may have, for x86 with what this processor has.
FILE.json holds the layout of records. `run_loops` runs them.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from llvmlite import binding, ir

NAMES = {"x86_64": ("AVX-512 VNNI", "AVX-VNNI", "AVX2"), "aarch64": ("smmla", "sdot")}
GROUPS = (1, 2, 4, 8, 16)

Body = Callable[..., None]


def bodies(names: tuple[str, ...]) -> Iterator[tuple[str, int, Body]]:
    """A loop's name, its number of arguments, and what writes it."""
    from completion_engine.cpu.kernels import query_products, rows, sums, weight_tile
    from completion_engine.cpu.kernels.packing import RECORDS
    from tests.completion_engine.cpu.machine_code import TARGETS

    for name in names:
        for bits in RECORDS:
            for size in GROUPS:
                literals = TARGETS[name].number, bits, size
                yield (
                    f"product {bits} {size} {name}",
                    8,
                    lambda make, *a, of=literals: weight_tile.write_tile(make, *of, *a),
                )
    for size in (2, 4):
        yield f"score {size}", 7, lambda make, *a, of=size: query_products.write_scores(make, of, *a)
        for num_vectors in (1, 2):
            literals = size, num_vectors
            yield (
                f"sum_up {size} {num_vectors}",
                8,
                lambda make, *a, of=literals: query_products.write_sums(make, *of, *a),
            )
    yield "round", 5, rows.write_rounded
    for size in (4, 2, 1):
        yield f"sum {size}", 4, lambda make, *a, of=size: _sum(sums, make, of, *a)


def _sum(sums: Any, make: Any, size: int, left: Any, right: Any, number: Any, found: Any) -> None:
    rows = sums.Numbers(make, 4, left, number), sums.Numbers(make, size, right, number)
    make.store(sums.summed(make, *rows), found, 0)


def processor_of(machine: str) -> tuple[str, str]:
    """LLVM's name of the processor to compile for, and its further features."""
    if machine == "aarch64":
        return "generic", "+dotprod,+i8mm"
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def names_for(machine: str, features: str) -> tuple[str, ...]:
    """The instruction sets for products that such a processor has."""
    from completion_engine.cpu.kernels.dot import INSTRUCTION_SETS
    from tests.completion_engine.cpu.machine_code import TARGETS

    has = {name.removeprefix("+") for name in features.split(",")}
    return tuple(name for name in NAMES[machine] if INSTRUCTION_SETS[TARGETS[name].number].features <= has)


def compile_for(machine: str) -> tuple[tuple[str, ...], bytes]:
    """The instruction sets for products, and the object file of all loops."""
    from completion_engine.cpu.kernels.vectors import I64, Vectors

    processor, features = processor_of(machine)
    names = names_for(machine, features)
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    module = ir.Module()
    module.triple = f"{machine}-unknown-linux-gnu"
    for name, num_arguments, write in bodies(names):
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * num_arguments), name)
        builder = ir.IRBuilder(function.append_basic_block())
        write(Vectors(builder), *function.args)
        builder.ret_void()
    parsed = binding.parse_assembly(str(module))
    target = binding.Target.from_triple(module.triple).create_target_machine(
        cpu=processor, features=features, opt=3, reloc="pic", codemodel="large"
    )
    parsed.data_layout = str(target.target_data)
    passes = binding.create_pass_builder(target, binding.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(parsed, passes)
    return names, bytes(target.emit_object(parsed))


def main() -> None:
    machine, file = sys.argv[1], Path(sys.argv[2])
    platform.machine = lambda: machine  # before kernels are loaded: some are written for the machine
    names, code = compile_for(machine)
    if not names:
        sys.exit(f"This processor has none of {', '.join(NAMES[machine])}: nothing can be compared.")
    file.write_bytes(code)
    from completion_engine.cpu.kernels.packing import RECORDS
    from completion_engine.cpu.kernels.query_products import NUM_QUERIES

    facts = {
        "records": [asdict(record) for record in RECORDS.values()],
        "names": names,
        "num_queries": NUM_QUERIES,
    }
    file.with_name(f"{file.name}.json").write_text(json.dumps(facts), encoding="ascii")


if __name__ == "__main__":
    main()
