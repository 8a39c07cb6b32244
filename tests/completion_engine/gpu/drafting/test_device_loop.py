"""The loop on the device writes what the target writes alone, and drafts from the search and from text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch

from completion_engine.decoding.ending import Finish
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.reuse import Slot
from completion_engine.decoding.sampling import Sampler
from completion_engine.drafting.device_steps import DeviceStep, steps_agree
from completion_engine.drafting.distilled import NUM_BEAMS, DrafterFiles
from completion_engine.drafting.drafts import Draft, DraftToken
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.drafting.recycled import RecycledDrafter
from completion_engine.loading.drafters import device_decoder_of
from completion_engine.probability import RankedRow
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from tests.benchmarks.gpu import steps

PROMPT = [3, 14, 15, 9, 26, 5, 35, 8]
NUM_WRITTEN = 10
NUM_ALONE = 26


@pytest.fixture(scope="module")
def search(random_drafter: DrafterFiles, target: LanguageModel, decoder: Any) -> Any:
    """That of the random drafter."""
    from completion_engine.gpu.beam_search import BeamSearch, DeviceNetwork

    network = DeviceNetwork(random_drafter, target, decoder, NUM_BEAMS)
    return BeamSearch(network, random_drafter.temperatures)


@pytest.fixture(scope="module", params=["search", "text", "both"])
def loop(request: pytest.FixtureRequest, target: LanguageModel, decoder: Any, search: Any) -> Any:
    from completion_engine.gpu.device_loop import DeviceLoop

    return DeviceLoop(
        decoder,
        None if request.param == "text" else search,
        target.vocab_size,
        looks_up=request.param != "search",
    )


@pytest.fixture(scope="module")
def text_loop(target: LanguageModel, decoder: Any) -> Any:
    """One that drafts from text alone."""
    from completion_engine.gpu.device_loop import DeviceLoop

    return DeviceLoop(decoder, None, target.vocab_size)


DRAFTERS = {"ngram": NgramDrafter, "recycled": RecycledDrafter}
Write = Callable[..., tuple[Decoding, Finish]]
Writer = Callable[[LanguageModel], Write]
Prime = Callable[[Sequence[int]], KVCache]


@pytest.fixture(scope="module")
def primed(target: LanguageModel) -> Prime:
    """A cache that holds all of some tokens but the last."""

    def prime(tokens: Sequence[int]) -> KVCache:
        cache = KVCache(target.cache_shape)
        target.forward(tokens[:-1], cache, 0)
        cache.keep(tokens[:-1])
        return cache

    return prime


@pytest.fixture(scope="module")
def ranked() -> list[RankedRow]:
    """The likeliest tokens after the prompt and after each token of `alone`, once that is made."""
    return []


@pytest.fixture(scope="module")
def alone(target: LanguageModel, primed: Prime, ranked: list[RankedRow]) -> tuple[list[int], KVCache]:
    """The prompt and the target's own text after it; the cache holds all but the last."""
    cache, written = primed(PROMPT), list(PROMPT)
    for _ in range(NUM_ALONE):
        logits = target.forward(written[-1:], cache, 1)
        cache.keep(written[-1:])
        written.append(int(logits[0].argmax()))
        ranked += target.rank(logits, target.vocab_size)
    return written, cache


def write(loop: Any, cache: KVCache, path: list[int], num_tokens: int) -> list[DeviceStep]:
    """The steps of a run; `path` grows by what they write."""
    run, end, strides = loop.begin(cache, path), len(path) + num_tokens, []
    while len(path) < end:
        assert loop.is_at(run, cache)
        stride = loop.step()
        cache.keep([path[-1], *stride.written[:-1]])
        path += stride.written
        strides.append(stride)
    return strides


def assert_same(cache: KVCache, other: KVCache) -> None:
    end = min(cache.num_cached, other.num_cached)
    assert cache.tokens[:end] == other.tokens[:end]
    assert torch.equal(cache.keys[:, :, :end], other.keys[:, :, :end])
    assert torch.equal(cache.values[:, :, :end], other.values[:, :, :end])
    assert torch.equal(cache.hidden[:end], other.hidden[:end])


def test_it_writes_what_the_target_writes_alone(
    loop: Any, primed: Prime, alone: tuple[list[int], KVCache], ranked: list[RankedRow]
) -> None:
    """Probabilities are the same to the last bit, so that drafts do not move the end of an unsure text."""
    wanted, plain = alone
    cache, path = primed(PROMPT), list(PROMPT)
    found = [one for step in write(loop, cache, path, NUM_WRITTEN) for one in step.probabilities]
    assert path == wanted[: len(path)]
    assert_same(cache, plain)
    rows = list(zip(path[len(PROMPT) :], ranked, strict=False))
    assert found == [row.probability_of(token) for token, row in rows]
    assert len(found) == len(rows) >= NUM_WRITTEN


def test_what_was_written_before_is_drafted_again(
    text_loop: Any, target: LanguageModel, primed: Prime, alone: tuple[list[int], KVCache]
) -> None:
    """A prompt that holds the target's own text, and then the beginning of it once more."""
    span = alone[0][: len(PROMPT) + NUM_WRITTEN]
    path = [*span, *span[:12]]
    cache, plain = primed(path), primed(path)
    start = len(path)
    strides = write(text_loop, cache, path, 6)
    assert strides[0].num_drafted > 0
    written = [path[start - 1]]
    for _ in range(6):
        logits = target.forward(written[-1:], plain, 1)
        plain.keep(written[-1:])
        written.append(int(logits[0].argmax()))
    assert path[start : start + 6] == written[1:]
    assert_same(cache, plain)


def test_a_span_that_agrees_is_accepted_and_told_of(
    text_loop: Any, primed: Prime, alone: tuple[list[int], KVCache]
) -> None:
    wanted, plain = alone
    known = len(PROMPT) + 3
    chain = tuple(
        DraftToken(token, "ngram", "index", 3, 1.0, at - 1, document=7, offset=40 + at)
        for at, token in enumerate(wanted[known : known + 12])
    )
    cache, path = primed(PROMPT), list(PROMPT)
    text_loop.hint(wanted[:known], [chain])
    strides = write(text_loop, cache, path, NUM_WRITTEN)
    accepted = [guess for stride in strides for guess in stride.accepted]
    assert path == wanted[: len(path)]
    assert set(chain) & set(accepted)
    assert_same(cache, plain)
    assert len(strides) < len(path) - len(PROMPT)


@pytest.mark.parametrize("loop", ["both"], indirect=True)
def test_a_new_run_gives_up_the_one_before(
    loop: Any, primed: Prime, alone: tuple[list[int], KVCache]
) -> None:
    first, cache = primed(PROMPT), primed(PROMPT)
    run = loop.begin(first, PROMPT)
    loop.step()
    path = list(PROMPT)
    write(loop, cache, path, 8)
    assert not loop.is_at(run, first)
    assert path == alone[0][: len(path)]
    assert_same(cache, alone[1])


@pytest.mark.parametrize("num_more", [1, 3])
def test_decoding_leaves_steps_to_it(
    text_loop: Any, target: LanguageModel, writer: Writer, alone: tuple[list[int], KVCache], num_more: int
) -> None:
    """After a prompt whose last tokens are new, after a pass for those that are several."""
    write = writer(target)
    prompt, slot = alone[0][: len(PROMPT) + NUM_WRITTEN], Slot(KVCache(target.cache_shape))
    options = {"num_tokens": 6, "sampler": Sampler(target.vocab_size)}
    write(prompt[:-num_more], slot=slot, **options | {"num_tokens": 1})
    drafted, _ = write(prompt, [NgramDrafter()], slot=slot, device_decoder=text_loop, **options)
    plain, _ = write(prompt, **options)
    assert drafted.tokens[:6] == plain.tokens[:6]
    assert text_loop.is_at(drafted._device._run, slot.cache)
    assert drafted.stats.num_accepted == sum(source is not None for source in drafted.sources)


class Tripwire:
    """Never to be asked for a step."""

    max_depth = 1

    def can_step(self, cache: KVCache) -> bool:
        return True

    def is_at(self, run: int, cache: KVCache) -> bool:
        return False

    def begin(self, cache: KVCache, path: Sequence[int]) -> int:
        raise AssertionError("the host picks here")

    def step(self) -> DeviceStep:
        raise AssertionError("the host picks here")

    def hint(self, path: Sequence[int], drafts: Sequence[Draft]) -> None:
        pass


@pytest.mark.parametrize(("temperature", "healed"), [(0.7, b""), (0.0, b"++++")])
def test_what_it_cannot_pick_is_left_to_the_host(
    target: LanguageModel, writer: Writer, temperature: float, healed: bytes
) -> None:
    """Sampled tokens, and tokens that have to spell something."""
    write = writer(target)
    sampler = Sampler(target.vocab_size, temperature, seed=3)
    options = {"num_tokens": 2, "sampler": sampler, "healed": healed}
    drafted, _ = write(PROMPT, device_decoder=Tripwire(), **options)
    assert drafted.tokens == write(PROMPT, **options)[0].tokens


STRIDES = [
    (["ngram"], True),
    (["ngram", "recycled"], True),
    (["recycled"], False),
    ([], False),
]


@pytest.mark.parametrize(("names", "strides"), STRIDES)
def test_it_stands_in_for_drafters_that_it_can_do_without(
    target: LanguageModel, names: list[str], strides: bool
) -> None:
    drafters = {name: DRAFTERS[name]() for name in names}
    assert (device_decoder_of(drafters, target, target.vocab_size) is not None) == strides


def test_a_drafter_that_it_does_not_know_is_asked_on_the_host(
    target: LanguageModel, scripted: Callable[..., Any]
) -> None:
    drafters = {"ngram": NgramDrafter(), "neural": scripted(lambda _: [])}
    assert device_decoder_of(drafters, target, target.vocab_size) is None


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_step_that_writes_something_else_is_found_out(
    target: LanguageModel, decoder: Any, monkeypatch: pytest.MonkeyPatch, is_broken: bool
) -> None:
    """One that accepts whatever is drafted."""
    from completion_engine.gpu.device_loop import DeviceLoop

    loop = DeviceLoop(decoder, None, target.vocab_size)
    if is_broken:
        monkeypatch.setattr(loop, "_accept", partial(accept_all, loop))
    assert steps_agree(loop, target, target.vocab_size, num_written=4) != is_broken


def accept_all(loop: Any) -> None:
    """Accepts as if the target wrote the draft."""
    from completion_engine.gpu import launch, launch_step

    at = loop._buffers
    picked = torch.zeros_like(at.inputs.tokens)
    parents = at.inputs.ancestors.gather(1, (at.inputs.depths - 1).clamp_min(0)[:, None])[:, 0]
    picked[parents] = at.inputs.tokens
    launch_step.run_accept(at.inputs, picked, at.normed, loop._text, loop._after, loop._outcome)
    heads, num_layers = loop._decoder.heads, loop._decoder.num_layers
    launch.run_move_rows(at.inputs, loop._outcome.sources, heads, num_layers, at.normed)


def test_its_parts_are_measured(
    target: LanguageModel, decoder: Any, primed: Prime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that takes each part once: interpreted, many rounds would take minutes."""
    monkeypatch.setattr(steps, "time_ms", lambda work, _device: [work(), 1.0][1])
    monkeypatch.setattr(steps, "_NUM_STEPS", 1)
    cache = primed(PROMPT)
    found = steps.measure_steps(target, decoder, cache)
    assert list(found) == ["a step's search", "a step's tree", "a step's pass", "a step's accept", "a step"]
    assert all(ms > 0 for ms in found.values())
    assert cache.tokens == PROMPT[:-1]


@pytest.mark.parametrize("loop", ["both"], indirect=True)
def test_there_is_no_step_without_a_state_or_without_room(loop: Any, target: LanguageModel) -> None:
    cache = KVCache(target.cache_shape)
    assert not loop.can_step(cache)
    cache.keep([0] * (target.capacity - 32))
    assert loop.can_step(cache)
    cache.keep([0])
    assert not loop.can_step(cache)
