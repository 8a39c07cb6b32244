"""Compiles every kernel for GPUs that need not be there, and prints one JSON line about each.

Products of a file's blocks take two thirds of the time: without `--all`, each form of blocks is compiled for
each GPU at one width, and at each width for one GPU.

Run as a program: kernels that were defined for the interpreter cannot be compiled in the same process.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from completion_engine.gpu.blocks import form_of_kind
from completion_engine.gpu.kernels import attention, product, rows
from completion_engine.gpu.launch import (
    ATTEND_OPTIONS,
    EXACT,
    HEAD_OPTIONS,
    ProductCut,
)
from completion_engine.gpu.weights import BYTES, PLAIN, Tiles

HEADS = {"num_kv": 2, "num_groups": 6, "head_size": 128, "capacity": 8192}
TILE = {"tile_rows": 8, "tile_groups": 8, "key_block": 64, "chunk": 256}
CUT = {"num_outputs": 1536, "num_inputs": 8960, "input_block": 128}
# Forms of weights: those of plain numbers, and types of the catalogue's files.
FORMS = {"16": PLAIN, "8": BYTES} | {kind: form_of_kind(kind) for kind in ("Q4_K", "Q5_0", "Q6_K", "Q8_0")}
COLUMN_BLOCKS = {16: 32, 8: 64, 6: 64, 5: 64, 4: 128}  # the widest that are used
TILES = Tiles(column_block=32, input_block=128, part_inputs=1280)
QUERY_HEADS = {"num_heads": 12, "num_kv": 2, "head_size": 128, "capacity": 8192}
FLOATS = {
    "sums", "tops", "totals", "parts", "logits", "shares", "survivals", "weights", "chances", "row_chances",
    "values",
}  # fmt: skip
WHOLE = {
    "pass_inputs", "sources", "tokens", "ids", "found", "chosen", "text", "best", "parents", "places",
    "start", "row_of", "row_places", "picked", "matched", "after", "record",
}  # fmt: skip
NUMBERS = {
    "layer": "i32", "num_rows": "i32", "num_tokens": "i32", "depth": "i32", "scale": "fp32", "eps": "fp32",
    "temperature": "fp32",
}  # fmt: skip
LEVELS = {16: "*bf16", 8: "*i8"}


_NEVER_GATED = (FORMS["Q6_K"], FORMS["Q8_0"])  # in the catalogue's files
WIDTHS = (16, 32, 128)
Job = tuple[str, Any, dict[str, Any], dict[str, Any]]  # name, kernel, constants, options


def jobs(turn: int | None = None) -> list[Job]:
    """Every variant, compiled as it is launched; for one GPU of three, whose `turn` it is, blocks at one
    width.
    """
    found: list[Job] = [
        (f"attend tree={is_tree}", attention.attend, HEADS | TILE | {"is_tree": is_tree}, ATTEND_OPTIONS)
        for is_tree in (True, False)
    ]
    for number, (name, form) in enumerate(FORMS.items()):
        for num_rows in WIDTHS:
            if form.block and turn is not None and WIDTHS[(number + turn) % len(WIDTHS)] != num_rows:
                continue
            cut = ProductCut.of(num_rows, replace(TILES, column_block=COLUMN_BLOCKS[form.bits]))
            constants = CUT | {
                "bits": form.bits, "block": form.block, "has_codes": form.has_codes,
                "has_floors": form.has_floors, "row_block": cut.row_block, "packs": True,
                "column_block": cut.tiles.column_block, "is_wide": cut.is_wide,
            }  # fmt: skip
            parts = constants | {"part_inputs": 1280, "row_size": 1536}
            found.append((f"product {name} {num_rows}", product.product, parts, cut.options))
            if form not in _NEVER_GATED:
                found.append((f"gated {name} {num_rows}", product.gated_product, constants, cut.options))
    hidden = {"hidden_size": 1536, "block": 2048}
    joined = {"num_heads": 12, "head_size": 128, "chunk": 256}
    placed = QUERY_HEADS | {"num_parts": 4, "has_bias": True}
    return [
        *found,
        ("join", attention.join_chunks, joined, HEAD_OPTIONS),
        ("embed", rows.embed, hidden, EXACT),
        ("add", rows.add_and_norm, hidden | {"num_parts": 4}, EXACT),
        ("heads", rows.place_heads, placed | {"has_norms": True}, HEAD_OPTIONS),
        ("heads without norms", rows.place_heads, placed | {"has_norms": False}, HEAD_OPTIONS),
        ("hidden", rows.store_hidden, hidden, EXACT),
    ]


def signature(kernel: Any, constants: dict[str, Any]) -> dict[str, str]:
    """The types of a kernel's arguments."""
    types: dict[str, str] = {}
    for name in kernel.arg_names:
        if name in constants:
            types[name] = "constexpr"
        elif name in WHOLE:
            types[name] = "*i64"
        elif name in {"weight", "gate", "up"}:
            types[name] = "*u8" if constants["block"] else LEVELS[constants["bits"]]
        elif name in {"scales", "gate_scales", "up_scales"}:
            types[name] = "*i32" if constants["block"] else "*fp32"
        elif name in FLOATS:
            types[name] = "*fp32"
        else:
            types[name] = NUMBERS.get(name, "*bf16")
    return types


def told_of(compiled: Any) -> dict[str, Any]:
    """What the machine code is like: shared memory, bytes spilled to the stack, narrow loads in loops."""
    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    with NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        usage, code = (
            subprocess.run(
                [str(tools / name), *flags, file.name], capture_output=True, text=True, check=True
            ).stdout
            for name, flags in (("cuobjdump", ["-res-usage"]), ("nvdisasm", ["-c", "-ndf"]))
        )
    numbers = dict(re.findall(r"(REG|STACK|LOCAL):(\d+)", usage))
    return {
        "shared_bytes": compiled.metadata.shared,
        "num_registers": int(numbers["REG"]),
        "stack_bytes": int(numbers["STACK"]) + int(numbers["LOCAL"]),
        "num_narrow_loads": len(re.findall(r"LDG\.E\.[US](?:8|16)", code)),
        "num_short_copies": len(re.findall(r"LDGSTS\.E(?![\w.]*\.128)", code)),
        "num_loop_instructions": loop_length(code),
        "num_instructions": len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s", code, re.MULTILINE)),
        "instructions": sorted(
            set(re.findall(r"wgmma|tcgen05\.mma|mma\.sync|cp\.async\.c", compiled.asm["ptx"]))
        ),
    }


def loop_length(code: str) -> int:
    """Instructions of the shortest loop that multiplies matrices, 0 without one."""
    labels: dict[str, int] = {}
    found: list[str] = []
    lengths = []
    for line in code.splitlines():
        if label := re.match(r"(\.L_x_\d+):", line):
            labels[label[1]] = len(found)
        elif instruction := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*)", line):
            found.append(instruction[1])
            back = re.search(r"BRA.*(\.L_x_\d+)", found[-1])
            if back and back[1] in labels:
                loop = found[labels[back[1]] :]
                lengths += [len(loop)] if any("HMMA" in part for part in loop) else []
    return min(lengths, default=0)


def compile_for(
    capability: int, kernel: Any, constants: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Compile a kernel for a GPU that need not be there."""
    types = signature(kernel, constants)
    at = {arg: place for place, arg in enumerate(kernel.arg_names)}
    aligned = {(at[arg],): [["tt.divisibility", 16]] for arg, kind in types.items() if kind[0] == "*"}
    source = ASTSource(kernel, types, {(at[arg],): value for arg, value in constants.items()}, aligned)
    return told_of(triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options))


def main() -> None:
    """One line for each kernel and capability."""
    _, *capabilities = (argument for argument in sys.argv if argument != "--all")
    for turn, capability in enumerate(map(int, capabilities)):
        for name, kernel, constants, options in jobs(None if "--all" in sys.argv else turn):
            facts = {
                "name": name,
                "capability": capability,
                **compile_for(capability, kernel, constants, options),
            }
            sys.stdout.write(json.dumps(facts) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
