"""The loop on the device writes what the target writes alone, and drafts what the drafter drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from completion_engine.drafting.distilled import DrafterFiles
from completion_engine.gpu.passes import PassShape
from completion_engine.kv_cache import KVCache
from completion_engine.language_model import LanguageModel

PROMPT = [3, 14, 15, 9, 26, 5, 35, 8]
NUM_WRITTEN = 12


@pytest.fixture(scope="module")
def search(random_drafter: DrafterFiles, target: LanguageModel, decoder: Any) -> Any:
    """That of the random drafter, along one path."""
    from completion_engine.drafting.device_beams import BeamSearch
    from completion_engine.drafting.device_network import DeviceNetwork

    network = DeviceNetwork(random_drafter, target, decoder, num_beams=1)
    return BeamSearch(network, random_drafter.temperatures)


@pytest.fixture(scope="module")
def loop(target: LanguageModel, decoder: Any, search: Any) -> Any:
    from completion_engine.drafting.device_loop import Comb, DeviceLoop

    return DeviceLoop(decoder, search, target.vocab_size, Comb((2, 1, 1)))


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


def test_it_drafts_what_the_search_finds_behind_what_is_cached(
    loop: Any, search: Any, decoder: Any, primed: Callable[[], KVCache]
) -> None:
    cache = primed()
    loop.begin(cache, PROMPT[-1])
    loop.step()
    drafted = decoder.buffers(PassShape(8, is_tree=True, wants_logits=True)).packet.tokens.tolist()
    network = search.network
    network.states.copy_(cache.hidden[cache.num_cached - 1 :][:1])
    network.tell(cache, 0, PROMPT[-1])
    search.compute()
    found = search.read().tokens[:, 0].tolist()
    assert drafted[1:8] == [
        found[0][0], found[1][0], found[2][0], found[0][1], found[0][2], found[1][1], found[2][1]
    ]  # fmt: skip
