"""Whether the kernels give right results on this very device, before a target trusts them."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from triton.errors import TritonError

from completion_engine.gpu import launch
from completion_engine.gpu.passes import ROW_BLOCK, PassInputs, PassShape
from completion_engine.gpu.tiles import tiles_for
from completion_engine.gpu.weights import Bits, hold
from completion_engine.target_model.branch_caches import lay_out
from completion_engine.target_model.kv_cache import CacheShape, KVCache

_MOST_ERROR = 0.02  # relative, as a norm: bf16 explains less
_NUM_HEADS, _NUM_KV_HEADS, _CAPACITY = 4, 2, 512
_START, _PARENTS = 300, [-1, 0, 0, 2, 2, 4]


def fault_of_kernels(device: torch.device, dtype: torch.dtype, bits: Bits, head_size: int) -> str:
    """What is wrong with them for a target of such heads; empty where nothing is.

    Some seconds the first time, for they are compiled.
    """
    try:
        error = max(_product_error(device, dtype, bits), _attention_error(device, dtype, head_size))
    except (TritonError, RuntimeError) as fault:
        return f"they cannot be run ({str(fault).splitlines()[0] if str(fault) else type(fault).__name__})"
    return "" if error < _MOST_ERROR else f"their results are off by {error:.1%}"


def _product_error(device: torch.device, dtype: torch.dtype, bits: Bits) -> float:
    weight = hold(_drawn((96, 256), device, dtype), bits)
    x = _drawn((ROW_BLOCK, 256), device, dtype)
    tiles = tiles_for(weight, launch.num_processors(device))
    parts = torch.full((tiles.num_parts(256), ROW_BLOCK, 96), float("nan"), device=device)
    launch.run_product(weight, tiles, x, parts)
    return _distance(parts.sum(0), x.float() @ weight.dense(torch.float32).T)


def _attention_error(device: torch.device, dtype: torch.dtype, head_size: int) -> float:
    """Rows of a tree behind some hundred positions, against plain attention under a mask."""
    heads = launch.DeviceHeads(_NUM_HEADS, _NUM_KV_HEADS, head_size, _CAPACITY)
    num_rows = len(_PARENTS)
    cache = KVCache(CacheShape(1, heads.num_kv_heads, heads.head_size, 8, heads.capacity, dtype, device))
    cache.keys.copy_(_drawn(cache.keys.shape, device, dtype))
    cache.values.copy_(_drawn(cache.values.shape, device, dtype))
    cache.keep([0] * _START)
    layout = lay_out(_PARENTS)
    inputs = PassInputs.empty(PassShape(8, is_tree=True, wants_logits=False), device)
    inputs.fill([0] * num_rows, layout, cache)
    queries = _drawn((8, heads.num_heads, heads.head_size), device, dtype)
    partial = launch.Partial.empty(heads, 8, device)
    found = torch.full_like(queries, float("nan"))
    launch.run_attention(inputs, queries, heads, 0, heads.head_size**-0.5, partial, found)
    seen = torch.zeros(num_rows, heads.capacity, dtype=torch.bool, device=device)
    seen[:, :_START] = True
    for branch in layout.branches:
        for row in range(branch.first, branch.end):
            seen[row, [_START + above for above in branch.path[: layout.depths[row] + 1]]] = True
    wanted = torch.nn.functional.scaled_dot_product_attention(
        queries[:num_rows].transpose(0, 1).float()[None],
        cache.keys[0].float().repeat_interleave(heads.num_heads // heads.num_kv_heads, 0)[None],
        cache.values[0].float().repeat_interleave(heads.num_heads // heads.num_kv_heads, 0)[None],
        seen,
    )
    return _distance(found[:num_rows], wanted[0].transpose(0, 1))


def _drawn(size: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(len(size))
    return torch.randn(size, generator=generator).to(device, dtype)


def _distance(found: Tensor, wanted: Tensor) -> float:
    """Relative, as a norm; infinity where something was not written."""
    distance = float((found.float() - wanted).norm() / wanted.norm())
    return float("inf") if math.isnan(distance) else distance
