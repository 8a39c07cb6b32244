"""Captured work depends on its inputs alone: not on the order of programs, old memory or earlier runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from completion_engine.gpu.passes import PassShape
from completion_engine.target_model.decoder import lay_out
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from tests.completion_engine.gpu.captured import (
    captured,
    changed,
    programs_shuffled,
    snapshot,
    spoil,
    stores_delayed,
)
from tests.completion_engine.gpu.conftest import HAS_GPU

pytestmark = pytest.mark.skipif(HAS_GPU, reason="the interpreter's order and memory are under test")
PROMPT = [3, 14, 15, 9, 26, 5, 35, 8, 3, 14, 15, 9]
TREE = [-1, 0, 0, 2, 2, 4]


@pytest.fixture
def primed(target: LanguageModel) -> KVCache:
    """A cache that holds all of the prompt but its last token."""
    cache = KVCache(target.cache_shape)
    target.forward(PROMPT[:-1], cache, 0)
    cache.keep(PROMPT[:-1])
    return cache


@torch.inference_mode()
def run_passes(target: LanguageModel, primed: KVCache) -> list[torch.Tensor]:
    """Run a tree and a chain; return logits and the cache."""
    found = [target.forward(PROMPT[-1:] * len(TREE), primed, len(TREE), TREE).clone()]
    found.append(target.forward(PROMPT * 2, primed, 1).clone())
    end = primed.num_cached + 3
    return [*found, primed.keys[:, :, :end], primed.values[:, :, :end], primed.hidden[:end]]


def test_neither_order_nor_late_stores_nor_old_memory_change_a_bit(
    decoder: Any, target: LanguageModel, primed: KVCache
) -> None:
    wanted = [part.clone() for part in run_passes(target, primed)]
    spoil(*decoder._arena._flat.values())
    with programs_shuffled(seed=1) as launched, stores_delayed() as made:
        found = run_passes(target, primed)
    assert max(launched) > 16
    assert sum(made) > sum(launched) / 2
    for one, other in zip(found, wanted, strict=True):
        assert torch.isfinite(one).all()
        assert torch.equal(one, other)


@torch.inference_mode()
def test_captured_work_leaves_the_same_buffers_however_often_it_runs(decoder: Any, primed: KVCache) -> None:
    """And asks torch for nothing that waits, allocates or copies from the host."""
    buffers = decoder.buffers(PassShape(16, is_tree=True, wants_logits=True))
    buffers.inputs.fill(PROMPT[-1:] * len(TREE), lay_out(TREE), primed)
    states = []
    for _ in range(3):
        with captured(), torch.inference_mode():
            decoder.compute(buffers, wants_logits=True)
        states.append(snapshot(decoder, {"keys": primed.keys, "values": primed.values}))
    assert states[0].keys() == states[2].keys()
    assert not changed(states[0], states[1])
    assert not changed(states[1], states[2])


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x.sum().item(),
        lambda x: torch.zeros(3),
        lambda x: x + 1,
        lambda x: torch.tensor([1.0]),
        lambda x: x[x > 0],
    ],
    ids=["waits", "makes a buffer", "makes a result", "copies from the host", "asks for a size"],
)
def test_what_cannot_be_captured_is_refused(work: Any, device: torch.device) -> None:
    x = torch.ones(4)
    with pytest.raises(AssertionError, match="captured work"), captured():
        work(x)
