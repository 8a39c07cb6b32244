"""Compiles every kernel for GPUs that need not be there, and prints one JSON line about each.

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

from completion_engine.gpu.kernels import attention, best, draft, product, rows, step
from completion_engine.gpu.launch import ATTEND_OPTIONS, EXACT, HEAD_OPTIONS, ProductCut
from completion_engine.gpu.launch_best import BEST_BLOCK, BEST_OPTIONS
from completion_engine.gpu.launch_draft import FIND_OPTIONS
from completion_engine.gpu.launch_step import BUILD_OPTIONS, LOOK_BLOCK
from completion_engine.gpu.tiles import Tiles

HEADS = {"num_kv": 2, "num_groups": 6, "head_size": 128, "capacity": 8192}
TILE = {"tile_rows": 8, "tile_groups": 8, "key_block": 64, "chunk": 256}
CUT = {"num_outputs": 1536, "num_inputs": 8960, "input_block": 128}
COLUMN_BLOCKS = {16: 32, 8: 64, 4: 128}  # the widest that are used
TILES = Tiles(column_block=32, input_block=128, part_inputs=1280)
QUERY_HEADS = {"num_heads": 12, "num_kv": 2, "head_size": 128, "capacity": 8192}
FLOATS = {
    "sums", "tops", "totals", "parts", "scales", "gate_scales", "up_scales", "logits", "shares", "survivals",
    "weights", "chances", "row_chances", "values",
}  # fmt: skip
WHOLE = {
    "pass_inputs", "sources", "tokens", "ids", "found", "chosen", "text", "best", "parents", "places",
    "start", "row_of", "row_places", "picked", "matched", "after", "record",
}  # fmt: skip
NUMBERS = {
    "layer": "i32", "num_rows": "i32", "num_tokens": "i32", "depth": "i32", "scale": "fp32", "eps": "fp32",
    "temperature": "fp32",
}  # fmt: skip
LEVELS = {16: "*bf16", 8: "*i8", 4: "*u8"}


Job = tuple[str, Any, dict[str, Any], dict[str, Any]]  # name, kernel, constants, options


def jobs() -> list[Job]:
    """Every variant, compiled as it is launched."""
    found: list[Job] = [
        (f"attend tree={is_tree}", attention.attend, HEADS | TILE | {"is_tree": is_tree}, ATTEND_OPTIONS)
        for is_tree in (True, False)
    ]
    for bits, column_block in COLUMN_BLOCKS.items():
        for num_rows in (16, 32, 128):
            cut = ProductCut.of(num_rows, replace(TILES, column_block=column_block))
            constants = CUT | {
                "bits": bits,
                "row_block": cut.row_block,
                "packs": bits == 4,
                "column_block": cut.tiles.column_block,
                "is_wide": cut.is_wide,
            }
            parts = constants | {"part_inputs": 1280}
            found.append((f"product {bits} {num_rows}", product.product, parts, cut.options))
            found.append((f"gated {bits} {num_rows}", product.gated_product, constants, cut.options))
    hidden = {"hidden_size": 1536, "block": 2048}
    joined = {"num_heads": 12, "head_size": 128, "chunk": 256}
    moved = {"num_kv": 2, "head_size": 128, "num_layers": 28, "capacity": 8192, "num_rows": 16, "block": 128}
    placed = QUERY_HEADS | {"num_parts": 4, "has_bias": True}
    turned = {"num_parts": 4, "num_heads": 12, "head_size": 128}
    chosen = {"num_beams": 3, "breadth": 4, "block": 16, "is_first": False}
    text = {"num_span_tokens": 1024, "size": 9216, "most": 32}
    tree = {"num_depths": 6, "num_beams": 3, "beam_block": 4, "breadth": 4, "block": 16}
    scored = text | tree | {"num_best": 9, "best_block": 16, "length": 15}
    built = {"num_candidates": 111, "candidate_block": 128, "num_depths": 6, "block": 16, "num_rows": 16}
    accepted = {"num_span_tokens": 1024, "num_rows": 16, "hidden_size": 1536, "hidden_block": 2048}
    ranked = {"vocab_size": 151936, "num_best": 8}
    merged = {"num_best": 8, "num_blocks": 75, "block": 128, "candidate_block": 1024}
    return [
        *found,
        ("step look up", step.look_up, text | {"block": LOOK_BLOCK}, EXACT),
        ("step score", step.score, scored, HEAD_OPTIONS),
        ("step build tree", step.build_tree, built, BUILD_OPTIONS),
        ("step accept", step.accept, accepted, HEAD_OPTIONS),
        ("rank blocks", best.best_of_blocks, ranked | {"block": BEST_BLOCK}, BEST_OPTIONS),
        ("rank rows", best.best_of_rows, merged, BEST_OPTIONS),
        ("join", attention.join_chunks, joined, HEAD_OPTIONS),
        ("embed", rows.embed, hidden, EXACT),
        ("add", rows.add_and_norm, hidden | {"num_parts": 4, "is_first": False}, EXACT),
        ("heads", rows.place_heads, placed | {"has_norms": True}, HEAD_OPTIONS),
        ("heads without norms", rows.place_heads, placed | {"has_norms": False}, HEAD_OPTIONS),
        ("move", rows.move_rows, moved | {"hidden_size": 1536}, EXACT),
        ("hidden", rows.store_hidden, hidden, EXACT),
        ("draft inputs", draft.join_inputs, hidden | {"is_first": False}, EXACT),
        ("draft queries", draft.turn_queries, turned, HEAD_OPTIONS),
        ("draft find", draft.find_best, {"num_tokens": 16384, "breadth": 4, "block": 16384}, FIND_OPTIONS),
        ("draft choose", draft.choose_beams, chosen, HEAD_OPTIONS),
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
            types[name] = LEVELS[constants["bits"]]
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
            for name, flags in (("cuobjdump", ["-res-usage"]), ("nvdisasm", ["-c"]))
        )
    numbers = dict(re.findall(r"(REG|STACK|LOCAL):(\d+)", usage))
    return {
        "shared_bytes": compiled.metadata.shared,
        "num_registers": int(numbers["REG"]),
        "stack_bytes": int(numbers["STACK"]) + int(numbers["LOCAL"]),
        "num_narrow_loads": len(re.findall(r"LDG\.E\.[US](?:8|16)|LDGSTS\.E(?![\w.]*\.128)", code)),
        "num_instructions": len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s", code, re.MULTILINE)),
        "instructions": sorted(
            set(re.findall(r"wgmma|tcgen05\.mma|mma\.sync|cp\.async\.c", compiled.asm["ptx"]))
        ),
    }


def main() -> None:
    """One line for each kernel and capability."""
    for capability in map(int, sys.argv[1:]):
        for name, kernel, constants, options in jobs():
            types = signature(kernel, constants)
            at = {arg: place for place, arg in enumerate(kernel.arg_names)}
            aligned = {(at[arg],): [["tt.divisibility", 16]] for arg, kind in types.items() if kind[0] == "*"}
            source = ASTSource(
                kernel, types, {(at[arg],): value for arg, value in constants.items()}, aligned
            )
            done = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
            told = {"name": name, "capability": capability, **told_of(done)}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
