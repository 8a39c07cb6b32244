"""Runs what `loops` compiled, on numbers that every machine draws alike, and prints digests of all bits.

`python run_loops.py FILE`. Knows numpy and llvmlite alone, which an emulated interpreter loads in seconds.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding

BLOCK, TILE_OUTPUTS, NUM_BLOCKS = 32, 16, 5
GROUPS = (1, 2, 4, 8, 16)

Array = Any
Call = Callable[..., None]


def loaded(file: Path) -> Call:
    """Return a function that calls a loop by its name, with arrays and numbers."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(file.read_bytes()))
    engine.finalize_object()

    def call(name: str, *arguments: Array | int) -> None:
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(arguments))
        addresses = [x.ctypes.data if isinstance(x, np.ndarray) else x for x in arguments]
        kind(engine.get_function_address(name))(*addresses)

    return call


def drawn(rng: np.random.Generator, *shape: int) -> Array:
    """Numbers between -4 and 4, exact in float32."""
    return (rng.integers(-(1 << 20), 1 << 20, shape) / (1 << 18)).astype(np.float32)


def stored(numbers: Array, size: int) -> Array:
    """The same numbers in this number of bytes each: float32, bf16 cut off, or whole numbers."""
    if size == 2:
        return (numbers.view(np.uint32) >> 16).astype(np.uint16)
    return numbers if size == 4 else (30 * numbers).astype(np.int8)


def records(rng: np.random.Generator, record: dict[str, int]) -> Array:
    """The blocks of a tile: any levels, and scales and floors in fp16."""
    found = rng.integers(0, 256, (NUM_BLOCKS, record["num_bytes"])).astype(np.uint8)
    for at in filter(None, (*record["scales_at"], record["floors_at"])):
        halves = drawn(rng, NUM_BLOCKS, TILE_OUTPUTS).astype(np.float16)
        found[:, at : at + 2 * TILE_OUTPUTS] = halves.view(np.uint8)
    return found


def rounded_rows(rng: np.random.Generator, num_rows: int) -> tuple[Array, Array]:
    """The blocks of a group of rounded rows, as products read them, and the sums by lanes."""
    blocks, lanes = [], []
    for _ in range(NUM_BLOCKS):
        levels = rng.integers(-127, 128, (num_rows, BLOCK)).astype(np.int8)
        scales = np.ldexp(np.float32(1), rng.integers(-20, 20, num_rows)).astype(np.float32)
        totals = levels.sum(1, dtype=np.int32)
        shares = scales * totals.astype(np.float32)
        halves = (-32 * half.sum(1, dtype=np.int32) for half in np.split(levels, 2, axis=1))
        parts = levels, scales, -16 * totals, -128 * totals, shares, *halves
        blocks.append(b"".join(part.tobytes() for part in parts))
        lanes.append(lane_sums(levels))
    rows, sums = (np.frombuffer(b"".join(found), np.uint8).copy() for found in (blocks, lanes))
    return rows, sums


def lane_sums(levels: Array) -> bytes:
    """Starting sums of AVX2's products: for each row two numbers of 16 bits, of a block and of its halves."""
    halves = levels.astype(np.int32).reshape(len(levels), 2, 4, 2, 2).sum((2, 4))
    parts = -16 * halves.sum(1), -32 * halves[:, 0], -32 * halves[:, 1]
    return b"".join(part.astype(np.int16).tobytes() for part in parts)


def products(call: Call, facts: dict[str, Any]) -> Iterator[tuple[str, Array]]:
    """Each by all instruction sets, which must agree."""
    for record in facts["records"]:
        rng = np.random.default_rng(record["bits"])
        tile, units, bias = records(rng, record), drawn(rng, TILE_OUTPUTS), drawn(rng, TILE_OUTPUTS)
        for num_rows in GROUPS:
            (rows, lanes), found = rounded_rows(rng, num_rows), []
            for name in facts["names"]:
                outputs = np.zeros((num_rows, TILE_OUTPUTS), np.float32)
                loop = f"product {record['bits']} {num_rows} {name}"
                call(loop, tile, rows, lanes, units, bias, outputs, TILE_OUTPUTS, NUM_BLOCKS)
                found.append(outputs)
            assert all(np.array_equal(x.view(np.int32), found[0].view(np.int32)) for x in found)
            yield f"product of {record['bits']} bits, {num_rows} rows", found[0]


def attention(call: Call, facts: dict[str, Any]) -> Iterator[tuple[str, Array]]:
    """Scores and sums of eight queries, for stored numbers of 2 and 4 bytes."""
    num_queries = facts["num_queries"]
    rng = np.random.default_rng(0)
    for size in (2, 4):
        for num_channels in (16, 48, 128):
            queries, keys = drawn(rng, num_channels, 8), stored(drawn(rng, num_channels, 32), size)
            queries = np.pad(queries, ((0, 0), (0, num_queries - 8)))
            scores = np.zeros((num_queries, 32), np.float32)
            call(f"score {size}", queries, keys, 32 * size, num_channels, scores, 4 * 32, 8)
            yield f"scores of {size} bytes, {num_channels} channels", scores[:8]
        for num_vectors in (1, 2):
            width = 16 * num_vectors
            shares, values = drawn(rng, 8, 100), stored(drawn(rng, 100, width), size)
            shares = np.pad(shares, ((0, num_queries - 8), (0, 0)))
            summed = np.zeros((num_queries, width), np.float32)
            steps = values, width * size, 100, summed, 4 * width, 8
            call(f"sum_up {size} {num_vectors}", shares, 400, *steps)
            yield f"values of {size} bytes, {width} channels", summed[:8]


def rounding(call: Call) -> Iterator[tuple[str, Array]]:
    """Blocks of any size, of zeros, and of numbers that are almost none."""
    x = (
        drawn(np.random.default_rng(0), 60, BLOCK)
        * np.float32(2.0) ** np.arange(-30, 30, dtype=np.float32)[:, None]
    )
    x[3], x[4] = 0, x[4] * np.float32(1e-35)
    levels, beside = np.zeros((60, BLOCK), np.int8), np.zeros((60, 6), np.int32)
    lanes = np.zeros((60, 3), np.int32)
    for row, numbers in enumerate(x):
        call("round", numbers, levels[row], beside[row], lanes[row], 4)
        assert lanes[row].tobytes() == lane_sums(levels[row : row + 1])
    yield "rounded levels", levels
    yield "what stands beside them", beside


def sums(call: Call) -> Iterator[tuple[str, Array]]:
    """Products summed up, of any number of numbers."""
    rng = np.random.default_rng(0)
    for number in (0, 1, 31, 32, 33, 100, 896):
        left, right = drawn(rng, number + 1), drawn(rng, number + 1)
        for size in (4, 2, 1):
            found = np.zeros(1, np.float32)
            call(f"sum {size}", left, stored(right, size), number, found)
            yield f"sum of {number}, {size} bytes", found


def main() -> None:
    file = Path(sys.argv[1])
    call, facts = loaded(file), json.loads(file.with_name(f"{file.name}.json").read_text(encoding="ascii"))
    for part in (products(call, facts), attention(call, facts), rounding(call), sums(call)):
        for name, found in part:
            print(name, hashlib.sha256(found.tobytes()).hexdigest()[:16])  # noqa: T201 - a command speaks


if __name__ == "__main__":
    main()
