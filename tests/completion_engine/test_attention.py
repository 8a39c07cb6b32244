"""Attention over a cache: what it computes, on the CPU and the way that GPUs without our kernels take."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from completion_engine.attention import SUM_BLOCK, attend, attend_on_device

NUM_HEADS, NUM_KV, HEAD_SIZE = 6, 2, 16


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def by_definition(q: Tensor, keys: Tensor, values: Tensor, num_seen: Tensor, scale: float) -> Tensor:
    heads = torch.empty_like(q)
    for row, seen in enumerate(num_seen.tolist()):
        for head in range(NUM_HEADS):
            memory = head // (NUM_HEADS // NUM_KV)
            shares = (scale * keys[memory, :seen] @ q[row, head]).softmax(0)
            heads[row, head] = shares @ values[memory, :seen]
    return heads


@pytest.mark.parametrize("num_keys", [128, SUM_BLOCK + 256])
@pytest.mark.parametrize("num_rows", [1, 8, 24])
def test_each_row_attends_to_what_it_sees_the_same_on_every_device(num_rows: int, num_keys: int) -> None:
    q = random(num_rows, NUM_HEADS, HEAD_SIZE, seed=0)
    keys, values = (random(NUM_KV, num_keys, HEAD_SIZE, seed=seed) for seed in (1, 2))
    num_seen = torch.arange(num_rows) + num_keys - 50
    near = keys[:, num_seen - 1].contiguous()
    exact = by_definition(q, keys, values, num_seen, 0.25)
    assert torch.allclose(attend(q, (keys, values), near, num_seen, 0.25), exact, atol=1e-5)
    assert torch.allclose(attend_on_device(q, keys, values, num_seen, 0.25), exact, atol=1e-5)


def test_one_near_key_serves_all_rows() -> None:
    q = random(3, NUM_HEADS, HEAD_SIZE, seed=0)
    keys, values = (random(NUM_KV, 128, HEAD_SIZE, seed=seed) for seed in (1, 2))
    num_seen = torch.full((3,), 100)
    found = attend(q, (keys, values), keys[:, 99:100].contiguous(), num_seen, 0.25)
    assert torch.allclose(found, by_definition(q, keys, values, num_seen, 0.25), atol=1e-5)
