"""Compiles every kernel for GPUs that need not be there, and prints one JSON line about each.

Run as a program: kernels that were defined for the interpreter cannot be compiled in the same process.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from completion_engine.gpu.kernels import attention, product, rows

HEADS = {"num_rows": 16, "num_kv": 2, "num_groups": 6, "head_size": 128, "capacity": 8192}
TILE = {"tile_rows": 8, "tile_groups": 8, "key_block": 64, "chunk": 256}
CUT = {"num_outputs": 1536, "num_inputs": 1536, "column_block": 32, "input_block": 128}
QUERY_HEADS = {"num_heads": 12, "num_kv": 2, "head_size": 128, "capacity": 8192}
FLOATS = {"sums", "tops", "totals", "parts", "scales", "gate_scales", "up_scales"}
NUMBERS = {"layer": "i32", "num_rows": "i32", "scale": "fp32", "eps": "fp32"}
LEVELS = {16: "*bf16", 8: "*i8", 4: "*u8"}


def jobs() -> list[tuple[str, Any, dict[str, Any]]]:
    """Name, kernel and constants of each variant."""
    found: list[tuple[str, Any, dict[str, Any]]] = [
        (f"attend tree={is_tree}", attention.attend, HEADS | TILE | {"is_tree": is_tree})
        for is_tree in (True, False)
    ]
    for bits in LEVELS:
        for row_block in (16, 32):
            cut = CUT | {"bits": bits, "row_block": row_block}
            found.append((f"product {bits} {row_block}", product.product, cut | {"part_inputs": 512}))
            found.append((f"gated {bits} {row_block}", product.gated_product, cut))
    hidden = {"hidden_size": 1536, "block": 2048}
    joined = {"num_rows": 16, "num_heads": 12, "head_size": 128, "chunk": 256}
    moved = {"num_kv": 2, "head_size": 128, "num_layers": 28, "capacity": 8192, "num_rows": 16, "block": 128}
    placed = QUERY_HEADS | {"num_rows": 16, "num_parts": 4, "has_bias": True}
    return [
        *found,
        ("join", attention.join_chunks, joined),
        ("embed", rows.embed, hidden),
        ("add", rows.add_and_norm, hidden | {"num_parts": 4}),
        ("heads", rows.place_heads, placed | {"has_norms": True}),
        ("heads without norms", rows.place_heads, placed | {"has_norms": False}),
        ("move", rows.move_rows, moved | {"hidden_size": 1536}),
        ("hidden", rows.store_hidden, hidden),
    ]


def signature(kernel: Any, constants: dict[str, Any]) -> dict[str, str]:
    """The types of a kernel's arguments."""
    types: dict[str, str] = {}
    for name in kernel.arg_names:
        if name in constants:
            types[name] = "constexpr"
        elif name in {"told", "sources"}:
            types[name] = "*i64"
        elif name in {"weight", "gate", "up"}:
            types[name] = LEVELS[constants["bits"]]
        elif name in FLOATS:
            types[name] = "*fp32"
        else:
            types[name] = NUMBERS.get(name, "*bf16")
    return types


def main() -> None:
    """One line for each kernel and capability."""
    for capability in map(int, sys.argv[1:]):
        for name, kernel, constants in jobs():
            types = signature(kernel, constants)
            at = {arg: place for place, arg in enumerate(kernel.arg_names)}
            aligned = {(at[arg],): [["tt.divisibility", 16]] for arg, kind in types.items() if kind[0] == "*"}
            source = ASTSource(
                kernel, types, {(at[arg],): value for arg, value in constants.items()}, aligned
            )
            options = {"enable_fp_fusion": False}
            done = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
            instructions = sorted(
                set(re.findall(r"wgmma|mma\.sync|cp\.async\.c|ld\.global\.v4", done.asm["ptx"]))
            )
            told = {"name": name, "capability": capability, "shared_bytes": done.metadata.shared}
            sys.stdout.write(json.dumps(told | {"instructions": instructions}) + "\n")


if __name__ == "__main__":
    main()
