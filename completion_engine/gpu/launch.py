"""Launching the kernels: grids, block sizes and buffers. Nothing else uses `kernels`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from completion_engine.gpu.kernels import attention, product, rows
from completion_engine.gpu.passes import ROW_BLOCK, PassInputs
from completion_engine.gpu.weights import Tiles, Weight

CHUNK = 256  # keys whose sum is made by one program; part of what fixes a row's bits
KEY_BLOCK = 64
TILE_ROWS = 8
_LOG2_E = math.log2(math.e)
EXACT: dict[str, Any] = {"enable_fp_fusion": False}  # else one variant may round once, another twice
ATTEND_OPTIONS = EXACT | {"num_warps": 8, "num_stages": 2}  # with 4 registers spill where there is no wgmma
HEAD_OPTIONS = EXACT | {"num_warps": 1}
_FEW_ROWS = 64  # rows of a pass up to which each program of a product computes one block of them
WIDE_BLOCKS = 4  # blocks that it computes beyond; the kernel names each


@dataclass(frozen=True, slots=True)
class DeviceHeads:
    """Geometry of attention."""

    num_heads: int
    num_kv_heads: int
    head_size: int
    capacity: int

    @property
    def num_chunks(self) -> int:
        """Chunks of keys in a full cache."""
        return -(-self.capacity // CHUNK)


@dataclass(frozen=True, slots=True)
class ProductCut:
    """How a product of some rows is cut into programs: blocks of rows, and `tiles`."""

    row_block: int
    is_wide: bool
    tiles: Tiles

    @classmethod
    def of(cls, num_rows: int, tiles: Tiles) -> ProductCut:
        """The cut for a number of rows; it changes no bit of a row."""
        is_wide = num_rows > _FEW_ROWS
        row_block = ROW_BLOCK if num_rows <= ROW_BLOCK else 2 * ROW_BLOCK
        return cls(row_block, is_wide, tiles.wide if is_wide else tiles)

    def grid(self, num_outputs: int, num_rows: int) -> tuple[int, int]:
        """Programs by outputs and by rows."""
        num_together = self.row_block * (WIDE_BLOCKS if self.is_wide else 1)
        return triton.cdiv(num_outputs, self.tiles.column_block), triton.cdiv(num_rows, num_together)

    @property
    def options(self) -> dict[str, Any]:
        """How the product is compiled."""
        return EXACT | {"num_warps": self.tiles.num_warps, "num_stages": self.tiles.num_stages}


def run_product(weight: Weight, tiles: Tiles, x: Tensor, parts: Tensor) -> None:
    """`x @ weight.T` into `parts` [num_parts, num_rows, num_outputs]; x lies in whole blocks of rows.

    `parts` may be some columns of parts of longer rows, which lie one after the other.
    """
    num_rows = parts.shape[1]
    cut = ProductCut.of(num_rows, tiles)
    product.product[(*cut.grid(weight.num_outputs, num_rows), parts.shape[0])](
        x, weight.levels, _scales(weight), parts, num_rows,
        weight.num_outputs, weight.num_inputs, *_form(weight), tiles.part_inputs, parts.stride(1),
        cut.row_block, cut.tiles.column_block, tiles.input_block, x.is_cuda, cut.is_wide,
        **cut.options,
    )  # fmt: skip


def run_gated_product(gate: Weight, up: Weight, tiles: Tiles, x: Tensor, result: Tensor) -> None:
    """`silu(x @ gate.T) * (x @ up.T)` into `result` [num_rows, num_outputs]."""
    num_rows = len(result)
    cut = ProductCut.of(num_rows, tiles)
    product.gated_product[cut.grid(gate.num_outputs, num_rows)](
        x, gate.levels, _scales(gate), up.levels, _scales(up), result, num_rows,
        gate.num_outputs, gate.num_inputs, *_form(gate),
        cut.row_block, cut.tiles.column_block, tiles.input_block, x.is_cuda, cut.is_wide,
        **cut.options,
    )  # fmt: skip


def run_embed(  # noqa: PLR0913 - every buffer by itself
    inputs: PassInputs, embedding: Tensor, norm: Tensor, eps: float, x: Tensor, y: Tensor
) -> None:
    """The tokens' embeddings into x [num_rows, hidden_size], their norm into y."""
    size = x.shape[1]
    rows.embed[(len(x),)](
        inputs.numbers, embedding, norm, x, y, eps, size, triton.next_power_of_2(size), **EXACT
    )


def run_add_and_norm(parts: Tensor, norm: Tensor, eps: float, x: Tensor, y: Tensor) -> None:
    """x += the sum of parts [num_parts, num_rows, hidden_size]; y = the norm of the new x."""
    num_parts, num_rows, size = parts.shape
    rows.add_and_norm[(num_rows,)](
        parts, norm, x, y, num_rows, eps, num_parts, size, triton.next_power_of_2(size), **EXACT
    )


@dataclass(frozen=True, slots=True)
class HeadWeights:
    """A layer's work on its heads besides the product, and the turns of all positions."""

    bias: Tensor | None
    q_norm: Tensor | None
    k_norm: Tensor | None
    cos: Tensor
    sin: Tensor


def run_place_heads(  # noqa: PLR0913 - as above
    inputs: PassInputs,
    parts: Tensor,
    weights: HeadWeights,
    heads: DeviceHeads,
    layer: int,
    eps: float,
    queries: Tensor,
) -> None:
    """Finish queries [num_rows, num_heads, head_size]; write keys and values into the cache."""
    num_parts, num_rows, _ = parts.shape
    grid = (num_rows, heads.num_heads + 2 * heads.num_kv_heads)
    absent = weights.cos  # never read where there is no such weight
    rows.place_heads[grid](
        inputs.numbers, parts,
        absent if weights.bias is None else weights.bias,
        absent if weights.q_norm is None else weights.q_norm,
        absent if weights.k_norm is None else weights.k_norm,
        weights.cos, weights.sin, queries, layer, eps,
        num_rows, num_parts, heads.num_heads, heads.num_kv_heads, heads.head_size, heads.capacity,
        weights.bias is not None, weights.q_norm is not None,
        **HEAD_OPTIONS,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Partial:
    """What attention leaves by chunk: see `kernels.attention.attend`."""

    sums: Tensor
    tops: Tensor
    totals: Tensor


def run_attention(  # noqa: PLR0913 - as above
    inputs: PassInputs,
    queries: Tensor,
    heads: DeviceHeads,
    layer: int,
    scale: float,
    partial: Partial,
    result: Tensor,
) -> None:
    """Attention of `queries` [num_rows, num_heads, head_size] into `result` of the same shape."""
    num_groups = heads.num_heads // heads.num_kv_heads
    tile_groups = triton.next_power_of_2(num_groups)
    tile_rows = max(TILE_ROWS, ROW_BLOCK // tile_groups)
    num_rows = inputs.num_rows
    num_tiles = num_rows if inputs.is_tree else triton.cdiv(num_rows, tile_rows)
    attention.attend[(heads.num_chunks, heads.num_kv_heads, num_tiles)](
        inputs.numbers, queries, partial.sums, partial.tops, partial.totals, layer, scale * _LOG2_E,
        num_rows, heads.num_kv_heads, num_groups, heads.head_size, heads.capacity,
        inputs.is_tree, tile_rows, tile_groups, KEY_BLOCK, CHUNK,
        **ATTEND_OPTIONS,
    )  # fmt: skip
    attention.join_chunks[(num_rows, heads.num_heads)](
        inputs.numbers, partial.sums, partial.tops, partial.totals, result,
        num_rows, heads.num_heads, heads.head_size, CHUNK,
        **HEAD_OPTIONS,
    )  # fmt: skip


def run_store_hidden(inputs: PassInputs, y: Tensor) -> None:
    """Keep y [num_rows, hidden_size] in the cache's hidden states."""
    size = y.shape[1]
    rows.store_hidden[(len(y),)](inputs.numbers, y, size, triton.next_power_of_2(size), **EXACT)


def _form(weight: Weight) -> tuple[int, int, bool, bool]:
    form = weight.form
    return form.bits, form.block, form.has_codes, form.has_floors


def _scales(weight: Weight) -> Tensor:
    return weight.levels if weight.scales is None else weight.scales


def num_processors(device: torch.device) -> int:
    """Multiprocessors of a GPU; 1 elsewhere."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
