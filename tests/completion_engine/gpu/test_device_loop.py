"""The loop on the device writes what the target writes alone, and drafts what the drafter drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from completion_engine.drafting.distilled_network import DistilledNetwork, DrafterShape
from completion_engine.gpu.passes import PassShape
from completion_engine.kv_cache import KVCache
from completion_engine.language_model import LanguageModel

PROMPT = [3, 14, 15, 9, 26, 5, 35, 8]
NUM_WRITTEN = 12


@pytest.fixture(scope="module")
def drafting(target: LanguageModel) -> tuple[DistilledNetwork, Tensor]:
    """A random drafter that can guess every other token."""
    shape = target.cache_shape
    tokens = torch.arange(0, target.vocab_size, 2)
    drafter = DrafterShape(
        shape.num_layers, shape.num_kv_heads, shape.head_size, shape.hidden_size, target.vocab_size,
        memory_layer=0, num_heads=2, mlp_size=24, num_tokens=len(tokens),
    )  # fmt: skip
    generator = torch.Generator().manual_seed(3)
    weights = {name: torch.randn(size, generator=generator) * 0.3 for name, size in drafter.sizes.items()}
    return DistilledNetwork(weights, tokens, drafter, target), tokens.to(target.device)


@pytest.fixture(scope="module")
def loop(target: LanguageModel, decoder: Any, drafting: tuple[DistilledNetwork, Tensor]) -> Any:
    from completion_engine.drafting.device_loop import Comb, DeviceLoop

    return DeviceLoop(decoder, *drafting, target.vocab_size, Comb((2, 1, 1)))


@pytest.fixture
def primed(target: LanguageModel) -> Callable[[], KVCache]:
    """A cache that holds all of the prompt but its last token."""

    def prime() -> KVCache:
        cache = KVCache(target.cache_shape)
        target.forward(PROMPT[:-1], cache, 0)
        cache.keep(PROMPT[:-1])
        return cache

    return prime


def greedy(target: LanguageModel, cache: KVCache, last: int, num_tokens: int) -> list[int]:
    written = [last]
    for _ in range(num_tokens):
        logits = target.forward(written[-1:], cache, 1)
        cache.keep(written[-1:])
        written.append(int(logits[0].argmax()))
    return written[1:]


def test_it_writes_what_the_target_writes_alone(
    target: LanguageModel, loop: Any, primed: Callable[[], KVCache]
) -> None:
    ours, plain = primed(), primed()
    found = loop.write(ours, PROMPT[-1], NUM_WRITTEN)
    wanted = greedy(target, plain, PROMPT[-1], len(found))
    assert found == wanted
    end = min(ours.num_cached, plain.num_cached)
    assert ours.tokens[:end] == plain.tokens[:end]
    assert torch.equal(ours.keys[:, :, :end], plain.keys[:, :, :end])
    assert torch.equal(ours.hidden[:end], plain.hidden[:end])


def test_a_right_draft_is_accepted_and_moved_into_line(
    target: LanguageModel, loop: Any, primed: Callable[[], KVCache], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The truth is put beside the path at depth 0, so its row has to move."""
    plain = primed()
    truth = greedy(target, plain, PROMPT[-1], 4)
    wrong = [(token + 1) % target.vocab_size for token in truth]
    rows = [wrong[0], wrong[1], wrong[2], truth[0], (truth[0] + 2) % target.vocab_size, 0, 0]
    monkeypatch.setattr(loop, "_drafted", lambda *_: torch.tensor(rows, device=target.device))
    cache = primed()
    loop.begin(cache, PROMPT[-1])
    verdict = loop.step()
    assert (verdict.path, verdict.tokens, verdict.next_token) == ((0, 4), (PROMPT[-1], truth[0]), truth[1])
    cache.keep(verdict.tokens)
    end = cache.num_cached
    assert torch.equal(cache.keys[:, :, :end], plain.keys[:, :, :end])
    assert torch.equal(cache.values[:, :, :end], plain.values[:, :, :end])
    assert torch.equal(cache.hidden[:end], plain.hidden[:end])


def test_it_drafts_the_drafters_likeliest_path(
    loop: Any, decoder: Any, drafting: tuple[DistilledNetwork, Tensor], primed: Callable[[], KVCache]
) -> None:
    network, ids = drafting
    cache = primed()
    loop.begin(cache, PROMPT[-1])
    loop.step()
    drafted = decoder.buffers(PassShape(8, is_tree=True, wants_logits=True)).packet.tokens.tolist()
    states, token, wanted = cache.hidden[cache.num_cached - 1 :][:1], PROMPT[-1], []
    for depth in range(3):
        rows = torch.tensor([token], device=ids.device)
        states, logits = network.step(rows, states, cache, cache.num_cached + depth)
        token = int(ids[logits[0].argmax()])
        wanted.append(token)
    assert drafted[1:4] == wanted
