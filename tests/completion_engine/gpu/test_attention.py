"""Attention over tables: right against float64, and the same bits in a chain, alone and in any branch."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from completion_engine.gpu.passes import PassInputs, PassShape
from completion_engine.target_model.decoder import Layout, lay_out
from completion_engine.target_model.kv_cache import CacheShape, KVCache

NUM_HEADS, NUM_KV, HEAD_SIZE, CAPACITY, SCALE = 6, 2, 16, 576, 0.25
TREE = [-1, 0, 1, 2, 1, 4, 0, 6, 7]
STARTS = (0, 60, 250, 511)  # around the borders of blocks of keys and of chunks


def filled_cache(device: torch.device, dtype: torch.dtype) -> KVCache:
    """A cache full of noise, also after the cached positions."""
    cache = KVCache(CacheShape(1, NUM_KV, HEAD_SIZE, 8, CAPACITY, dtype, device))
    generator = torch.Generator().manual_seed(0)
    for part in (cache.keys, cache.values):
        part.copy_(torch.randn(part.shape, generator=generator))
    return cache


def attended(queries: Tensor, layout: Layout, cache: KVCache) -> Tensor:
    """The kernels' answer [num_rows, num_heads, head_size] for rows whose keys are cached already."""
    from completion_engine.gpu import launch

    num_rows = len(layout.depths)
    inputs = PassInputs.empty(PassShape(16, len(layout.branches) > 1, wants_logits=False), queries.device)
    inputs.fill([0] * num_rows, layout, cache)
    heads = launch.DeviceHeads(NUM_HEADS, NUM_KV, HEAD_SIZE, CAPACITY)
    by_chunk = (heads.num_chunks, 16, NUM_HEADS)
    poison = {"fill_value": float("nan"), "device": queries.device}
    partial = launch.Partial(
        torch.full((*by_chunk, HEAD_SIZE), **poison),
        torch.full(by_chunk, **poison),
        torch.full(by_chunk, **poison),
    )
    padded = torch.zeros(16, NUM_HEADS, HEAD_SIZE, dtype=queries.dtype, device=queries.device)
    padded[:num_rows] = queries
    result = torch.full_like(padded, float("nan"))
    launch.run_attention(inputs, padded, heads, 0, SCALE, partial, result)
    return result[:num_rows]


def reference(queries: Tensor, paths: Sequence[Sequence[int]], cache: KVCache) -> Tensor:
    """The same in float64: each row over the cached keys and those of its own path."""
    start, answers = cache.num_cached, []
    for row, path in enumerate(paths):
        places = [*range(start), *(start + at for at in path)]
        keys = cache.keys[0, :, places].double().repeat_interleave(NUM_HEADS // NUM_KV, 0)
        values = cache.values[0, :, places].double().repeat_interleave(NUM_HEADS // NUM_KV, 0)
        scores = (keys @ queries[row].double()[..., None])[..., 0] * SCALE
        answers.append((scores.softmax(-1)[:, None] @ values)[:, 0])
    return torch.stack(answers)


def paths_of(layout: Layout) -> list[tuple[int, ...]]:
    """The rows on the way to each row, itself included."""
    return [
        branch.path[: layout.depths[row] + 1]
        for branch in layout.branches
        for row in range(branch.first, branch.end)
    ]


def queries_for(num_rows: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(num_rows)
    return torch.randn(num_rows, NUM_HEADS, HEAD_SIZE, generator=generator).to(device, dtype)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("parents", [list(range(-1, 10)), TREE], ids=["chain", "tree"])
def test_rows_attend_to_what_stands_before_them(
    start: int, parents: list[int], device: torch.device, dtype: torch.dtype, tolerance: float
) -> None:
    layout, cache = lay_out(parents), filled_cache(device, dtype)
    cache.keep([0] * start)
    queries = queries_for(len(parents), device, dtype)
    found = attended(queries, layout, cache).double()
    wanted = reference(queries, paths_of(layout), cache)
    assert (found - wanted).norm() < tolerance * wanted.norm()


@pytest.mark.parametrize("start", STARTS[1:3])
def test_a_path_has_the_same_bits_in_a_tree_in_a_chain_and_alone(
    start: int, device: torch.device, dtype: torch.dtype
) -> None:
    layout, cache = lay_out(TREE), filled_cache(device, dtype)
    cache.keep([0] * start)
    queries = queries_for(len(TREE), device, dtype)
    in_tree = attended(queries, layout, cache)
    for path in (branch.path for branch in layout.branches):
        straight = filled_cache(device, dtype)
        for held in (straight.keys, straight.values):
            held[:, :, start : start + len(path)] = held[:, :, [start + row for row in path]]
        straight.keep([0] * start)
        rows = list(path)
        in_chain = attended(queries[rows], lay_out(range(-1, len(path) - 1)), straight)
        assert torch.equal(in_tree[rows], in_chain)
        straight.keep([0] * (len(path) - 1))
        alone = attended(queries[rows[-1:]], lay_out([-1]), straight)
        assert torch.equal(alone, in_chain[-1:])


def test_a_row_does_not_depend_on_what_lies_behind_it(device: torch.device, dtype: torch.dtype) -> None:
    layout, cache = lay_out(range(-1, 5)), filled_cache(device, dtype)
    cache.keep([0] * 300)
    queries = queries_for(6, device, dtype)
    before = attended(queries, layout, cache)
    cache.keys[:, :, 303:] += 1.0
    cache.values[:, :, 303:] -= 1.0
    after = attended(queries, layout, cache)
    assert torch.equal(before[:3], after[:3])
    assert not torch.equal(before[3:], after[3:])
