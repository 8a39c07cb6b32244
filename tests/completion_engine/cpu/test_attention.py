"""Attention over a cache: its results on the CPU, and on GPUs without the engine's kernels."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from completion_engine.cpu.attention import attend, attend_on_device
from completion_engine.cpu.kernels.attention import can_attend
from completion_engine.target_model.kv_cache import CacheShape, KVCache

NUM_HEADS, NUM_KV = 6, 2
TYPES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])


def random(*shape: int, seed: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def memory(num_keys: int, head_size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Keys and values [NUM_KV, num_keys, head_size] of a cache as targets on a CPU have it."""
    shape = CacheShape(1, NUM_KV, head_size, 8, num_keys, dtype, torch.device("cpu"), keys_by_channel=True)
    cache = KVCache(shape)
    for seed, part in enumerate((cache.keys, cache.values)):
        part[0] = random(NUM_KV, num_keys, head_size, seed=seed, dtype=dtype)
    return cache.keys[0], cache.values[0]


def by_definition(q: Tensor, keys: Tensor, values: Tensor, num_seen: Tensor, scale: float) -> Tensor:
    heads = torch.empty(q.shape)
    for row, seen in enumerate(num_seen.tolist()):
        for head in range(NUM_HEADS):
            place = head // (NUM_HEADS // NUM_KV)
            shares = (scale * keys[place, :seen].float() @ q[row, head].float()).softmax(0)
            heads[row, head] = shares @ values[place, :seen].float()
    return heads


@TYPES
@pytest.mark.parametrize("head_size", [16, 48, 64, 128])
@pytest.mark.parametrize("num_keys", [33, 100, 1200])
@pytest.mark.parametrize("num_rows", [1, 8, 19])
def test_each_row_attends_to_what_it_sees_the_same_on_every_device(
    num_rows: int, num_keys: int, head_size: int, dtype: torch.dtype
) -> None:
    q = random(num_rows, NUM_HEADS, head_size, seed=2, dtype=dtype)
    keys, values = memory(num_keys, head_size, dtype)
    num_seen = torch.arange(num_rows) + num_keys - num_rows + 1
    exact = by_definition(q, keys, values, num_seen, 0.25)
    assert can_attend(q, keys, values)
    found = attend(q, (keys, values), num_seen, 0.25)
    assert found.dtype == dtype
    step = 2**-8 if dtype == torch.bfloat16 else 1e-5
    assert (found.float() - exact).abs().max() <= step * exact.abs().max()
    elsewhere = attend_on_device(q, keys, values, num_seen, 0.25)
    assert (elsewhere.float() - exact).abs().max() <= 4 * step * exact.abs().max()


@TYPES
def test_a_row_does_not_feel_rows_beside_it_nor_keys_it_does_not_see(dtype: torch.dtype) -> None:
    q = random(20, NUM_HEADS, 64, seed=2, dtype=dtype)
    keys, values = memory(300, 64, dtype)
    num_seen = torch.arange(20) + 270
    together = attend(q, (keys, values), num_seen, 0.125)
    for first, end in ((0, 1), (3, 11), (19, 20)):
        seen = num_seen[first:end]
        apart = attend(q[first:end], (keys[:, : seen[-1]], values[:, : seen[-1]]), seen, 0.125)
        assert torch.equal(apart, together[first:end])


def test_scores_of_any_size_are_borne() -> None:
    keys, values = memory(40, 16, torch.float32)
    q = random(4, NUM_HEADS, 16, seed=2, dtype=torch.float32)
    for factor in (1e-30, 1e30):
        found = attend(q * factor, (keys, values), torch.full((4,), 40), 0.25)
        exact = by_definition(q * factor, keys, values, torch.full((4,), 40), 0.25)
        assert torch.allclose(found, exact, atol=1e-5)


def test_what_our_kernel_cannot_read_goes_the_other_way() -> None:
    q = random(4, NUM_HEADS, 20, seed=2, dtype=torch.float32)
    keys, values = memory(40, 20, torch.float32)
    assert not can_attend(q, keys, values)
    num_seen = torch.arange(4) + 30
    exact = by_definition(q, keys, values, num_seen, 0.25)
    assert torch.allclose(attend(q, (keys, values), num_seen, 0.25), exact, atol=1e-5)
