"""Each kernel against plain torch on this GPU, at the shapes of a target; see `gpu_first`.

Inputs differ by row, head and position, and from the weights, so that swapped rows show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

from completion_engine.gpu import launch
from completion_engine.gpu.decoder import DeviceLayer, GraphedDecoder, PassBuffers
from completion_engine.gpu.passes import PassShape
from completion_engine.gpu.reference import grouped_attention, norm
from completion_engine.gpu.weights import TiledWeight
from completion_engine.target_model.decoder import Layout, lay_out
from completion_engine.target_model.kv_cache import CacheShape, KVCache
from completion_engine.target_model.llama_family import rotate

MAX_ERROR = 0.02  # relative, as a norm; bf16 explains less than half of it
_WIDTHS = (16, 64, 128)  # rows of a product: blocks of two sizes, and several blocks at once
_START = 1000  # position of the rows that attend: they cross the end of a chunk of keys
_TREE = (-1, 0, 0, 2, 2, 4, 1, 6, 3)
_OUTPUTS_AT_ONCE = 16384  # outputs of a dense copy


@torch.inference_mode()
def kernel_errors(decoder: GraphedDecoder, exact: torch.dtype = torch.float64) -> Iterator[tuple[str, float]]:
    """Yield each kernel's name and relative error beside torch in the type `exact`; infinity for NaN."""
    layer = decoder.layers[-1]
    for width in _WIDTHS:
        yield from _products(decoder, layer, width, exact)
    cache = _random_cache(decoder)
    for layout in (lay_out(_TREE), lay_out(range(-1, _rows_of_chain(cache) - 1))):
        kind = "a tree" if len(layout.branches) > 1 else "a chain"
        for name, error in _rows(decoder, layout, cache, exact):
            yield f"{name} of {kind}", error


def _products(
    decoder: GraphedDecoder, layer: DeviceLayer, width: int, exact: torch.dtype
) -> Iterator[tuple[str, float]]:
    qkv = [("qkv", product) for product in layer.qkv]
    named = [*qkv, ("out", layer.out), ("down", layer.down), ("head", decoder.head)]
    for seed, (name, product) in enumerate(named):
        weight = product.weight
        x = _drawn(decoder, seed, width, weight.num_inputs)
        parts = torch.full(
            (product.num_parts, width, weight.num_outputs), float("nan"), device=x.device, dtype=torch.float32
        )
        launch.run_product(weight, product.tiles, x, parts)
        yield f"product {name} of {width} rows", _distance(parts.sum(0), _dense_product(x, product, exact))
    x = _drawn(decoder, 11, width, layer.gate.weight.num_inputs)
    found = torch.full((width, layer.gate.weight.num_outputs), float("nan"), device=x.device, dtype=x.dtype)
    launch.run_gated_product(layer.gate.weight, layer.up.weight, layer.gate.tiles, x, found)
    opened, raised = (_dense_product(x, part, exact) for part in (layer.gate, layer.up))
    yield f"gated_product of {width} rows", _distance(found, functional.silu(opened) * raised)


def _dense_product(x: Tensor, product: TiledWeight, exact: torch.dtype) -> Tensor:
    weight, found = product.weight, []
    for first in range(0, weight.num_outputs, _OUTPUTS_AT_ONCE):
        outputs = torch.arange(first, min(first + _OUTPUTS_AT_ONCE, weight.num_outputs), device=x.device)
        found.append(x.to(exact) @ weight.rows(outputs).dense(torch.float32).to(exact).T)
    return torch.cat(found, 1)


def _rows(
    decoder: GraphedDecoder, layout: Layout, cache: KVCache, exact: torch.dtype
) -> Iterator[tuple[str, float]]:
    """The kernels between the products, on one layer of a pass."""
    num_rows, layer = len(layout.depths), decoder.layers[-1]
    width = 16 if num_rows <= 16 else 64
    at = decoder.buffers(PassShape(width, len(layout.branches) > 1, wants_logits=True))
    tokens = torch.randint(0, decoder.vocab_size, (num_rows,), generator=_generator(21)).tolist()
    at.inputs.fill(tokens, layout, cache)
    for buffer in (at.x, at.normed, at.queries, at.attended):
        buffer.fill_(float("nan"))
    launch.run_embed(
        at.inputs, cast(Tensor, decoder.embedding), layer.input_norm, decoder.eps, at.x, at.normed
    )
    x = decoder.embedding[torch.tensor(tokens, device=at.x.device)].to(exact)
    yield "embed", _distance(at.x[:num_rows], x)
    yield "norm", _distance(at.normed[:num_rows], norm(x, layer.input_norm, decoder.eps))
    yield from _heads(decoder, layout, cache, at, exact)
    parts = _drawn(decoder, 23, layer.out.num_parts, width, decoder.hidden_size).float()
    at.x[num_rows:] = 0
    x = at.x.to(exact) + parts.to(exact).sum(0)
    launch.run_add_and_norm(parts, layer.mlp_norm, decoder.eps, at.x, at.normed)
    yield "add_and_norm", _distance(at.normed[:num_rows], norm(x, layer.mlp_norm, decoder.eps)[:num_rows])
    launch.run_store_hidden(at.inputs, at.normed)
    stored = cache.hidden[cache.num_cached : cache.num_cached + num_rows]
    yield "store_hidden", _distance(stored, at.normed[:num_rows].to(exact))


def _heads(
    decoder: GraphedDecoder, layout: Layout, cache: KVCache, at: PassBuffers, exact: torch.dtype
) -> Iterator[tuple[str, float]]:
    """Queries, keys and values of the rows, and their attention to all that they see."""
    layer, heads, index = decoder.layers[-1], decoder.heads, decoder.num_layers - 1
    num_rows, start, width = len(layout.depths), cache.num_cached, len(at.queries)
    columns = (heads.num_heads + 2 * heads.num_kv_heads) * heads.head_size
    parts = _drawn(decoder, 22, layer.qkv[0].num_parts, width, columns).float()
    launch.run_place_heads(at.inputs, parts, layer.heads, heads, index, decoder.eps, at.queries)
    qkv = parts.to(exact).sum(0)[:num_rows]
    qkv = qkv if layer.heads.bias is None else qkv + layer.heads.bias.to(exact)
    split_at = heads.num_heads, heads.num_heads + heads.num_kv_heads
    q, k, v = torch.tensor_split(qkv.view(num_rows, -1, heads.head_size), split_at, 1)
    if layer.heads.q_norm is not None and layer.heads.k_norm is not None:
        q, k = norm(q, layer.heads.q_norm, decoder.eps), norm(k, layer.heads.k_norm, decoder.eps)
    positions = torch.tensor(layout.depths, device=q.device) + start
    cos, sin = (table[positions].to(exact) for table in (layer.heads.cos, layer.heads.sin))
    keys, values = (part[index, :, start : start + num_rows].to(exact) for part in (cache.keys, cache.values))
    yield "place_heads (queries)", _distance(at.queries[:num_rows], rotate(q, cos, sin))
    yield "place_heads (keys)", _distance(keys.transpose(0, 1), rotate(k, cos, sin))
    yield "place_heads (values)", _distance(values.transpose(0, 1), v)
    launch.run_attention(at.inputs, at.queries, heads, index, decoder.scale, at.partial, at.attended)
    end = start + num_rows
    wanted = grouped_attention(
        at.queries[:num_rows].to(exact),
        cache.keys[index, :, :end].to(exact),
        cache.values[index, :, :end].to(exact),
        _seen(layout, start, q.device),
        decoder.scale,
    )
    yield "attention", _distance(at.attended[:num_rows], wanted)


def _seen(layout: Layout, start: int, device: torch.device) -> Tensor:
    """Which places of the cache each row sees, [num_rows, start + num_rows]."""
    num_rows = len(layout.depths)
    seen = torch.zeros(num_rows, start + num_rows, dtype=torch.bool, device=device)
    seen[:, :start] = True
    for branch in layout.branches:
        for row in range(branch.first, branch.end):
            seen[row, [start + above for above in branch.path[: layout.depths[row] + 1]]] = True
    return seen


def _random_cache(decoder: GraphedDecoder) -> KVCache:
    """A cache with other keys, values and hidden states at each place that the test reads."""
    sizes = (decoder.num_layers, decoder.num_kv_heads, decoder.head_size, decoder.hidden_size)
    device, dtype = decoder.embedding.device, decoder.embedding.dtype
    cache = KVCache(CacheShape(*sizes, decoder.heads.capacity, dtype, device))
    start = min(_START, decoder.heads.capacity - max(_WIDTHS) - 2)
    end = start + max(_WIDTHS)
    for seed, part in ((31, cache.keys), (32, cache.values)):
        part[:, :, start:end] = _drawn(decoder, seed, *part[:, :, start:end].shape)
        part[-1] = _drawn(decoder, seed + 10, *part[-1].shape)
    cache.hidden[start:end] = _drawn(decoder, 33, *cache.hidden[start:end].shape)
    cache.keep([0] * start)
    return cache


def _rows_of_chain(cache: KVCache) -> int:
    return min(50, cache.capacity - cache.num_cached)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _drawn(decoder: GraphedDecoder, seed: int, *size: int) -> Tensor:
    drawn = torch.randn(size, generator=_generator(seed))
    return drawn.to(decoder.embedding.device, decoder.embedding.dtype)


def _distance(found: Tensor, wanted: Tensor) -> float:
    """The largest relative error of a row, as a norm; infinity where something was not written."""
    found, wanted = found.to(wanted.dtype).flatten(1), wanted.flatten(1)
    errors = (found - wanted).norm(dim=1) / wanted.norm(dim=1).clamp_min(1e-12)
    error = float(errors.max())
    return float("inf") if math.isnan(error) else error
