"""Which cut of a product reads its weights fastest: each candidate on each product of a geometry, measured.

The answer belongs into `completion_engine.gpu.weights`; nothing is chosen at run time. Needs triton.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import torch
from triton.runtime.errors import OutOfResources

from completion_engine.gpu.launch import num_processors, run_product
from completion_engine.gpu.memory import Geometry
from completion_engine.gpu.passes import ROW_BLOCK, Runner
from completion_engine.gpu.weights import Bits, Tiles, Weight, hold, tiles_for
from tests.benchmarks.gpu.ceilings import Ceilings
from tests.benchmarks.gpu.clock import time_ms

_ROTATED_BYTES = 1 << 28  # bytes of equal weights, read in turn, to avoid the GPU's cache
_MAX_COPIES = 64
_COLUMN_BLOCKS, _STAGES, _WARPS, _PARTS = (16, 32, 64, 128), (3, 4, 5), (4, 8), (1, 2, 4, 8)


def shapes_of(geometry: Geometry) -> dict[str, tuple[int, int]]:
    """Outputs and inputs of a layer's products and of the head."""
    attended = geometry.num_heads * geometry.head_size
    qkv = attended + 2 * geometry.num_kv_heads * geometry.head_size
    return {
        "qkv": (qkv, geometry.hidden_size),
        "out": (geometry.hidden_size, attended),
        "gate or up": (geometry.mlp_size, geometry.hidden_size),
        "down": (geometry.hidden_size, geometry.mlp_size),
        "head": (geometry.vocab_size, geometry.hidden_size),
    }


def candidates(weight: Weight, processors: int) -> Iterator[Tiles]:
    """The cut that is used now first, then all others worth a try."""
    now = tiles_for(weight, processors)
    yield now
    num_blocks = -(-weight.num_inputs // now.input_block)
    for columns in _COLUMN_BLOCKS:
        for parts in (parts for parts in _PARTS if parts <= num_blocks):
            part_inputs = -(-num_blocks // parts) * now.input_block
            for stages in _STAGES:
                for warps in _WARPS:
                    other = Tiles(columns, now.input_block, part_inputs, warps, stages)
                    if other != now:
                        yield other


def tune(
    geometry: Geometry, bits: Bits, device: torch.device, ceilings: Ceilings, limit: int = 0
) -> list[dict[str, Any]]:
    """For each product the present cut and the best one, with their shares of the bandwidth.

    `limit` looks at the first few candidates only. The head is measured in 16 bits.
    """
    found = []
    for name, (num_outputs, num_inputs) in shapes_of(geometry).items():
        plain = torch.randn(num_outputs, num_inputs, device=device).to(_dtype_on(device))
        weight = hold(plain, 16 if name == "head" else bits)
        tried = list(candidates(weight, num_processors(device)))[: limit or None]
        times = [_product_ms(weight, tiles) for tiles in tried]
        best = min(range(len(tried)), key=times.__getitem__)
        floor_ms = ceilings.floor_ms(weight.num_bytes)
        found.append(
            {
                "product": name,
                "shape": [num_outputs, num_inputs],
                "now": round(floor_ms / times[0], 3),
                "best": round(floor_ms / times[best], 3),
                "best_tiles": asdict(tried[best]),
            }
        )
    return found


def _dtype_on(device: torch.device) -> torch.dtype:
    # interpreted kernels do not support bf16
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def _product_ms(weight: Weight, tiles: Tiles) -> float:
    """Milliseconds of one product, equal weights taken in turn; infinity where the cut cannot be run."""
    device = weight.levels.device
    num_copies = min(_MAX_COPIES, 1 + _ROTATED_BYTES // weight.num_bytes) if device.type == "cuda" else 1
    copies = [replace(weight, levels=weight.levels.clone()) for _ in range(num_copies)]
    x = torch.randn(ROW_BLOCK, weight.num_inputs, device=device).to(_dtype_on(device))
    parts = torch.empty(tiles.num_parts(weight.num_inputs), ROW_BLOCK, weight.num_outputs, device=device)

    def work() -> None:
        for copy in copies:
            run_product(copy, tiles, x, parts)

    runner = Runner(device)  # captured, as a pass is: else launching would be measured
    try:
        return time_ms(lambda: runner.run("product", work), device, num_rounds=3, in_row=3) / num_copies
    except OutOfResources:
        return float("inf")
