"""Decoding steps that run wholly on the device, without the host, and their check against plain passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from completion_engine.drafting.drafts import Draft, DraftToken
from completion_engine.probability import TokenProbability
from completion_engine.request import CompletionStats
from completion_engine.target_model.exactness import first_largest
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

_NUM_RANDOM = 12
_NUM_WRITTEN = 24


@dataclass(frozen=True, slots=True)
class DeviceStep:
    """The result of one step: the accepted draft tokens, then `next_token`, the target's own.

    `probabilities` are those of all these tokens.
    """

    accepted: tuple[DraftToken, ...]
    next_token: int
    num_drafted: int
    probabilities: tuple[TokenProbability, ...]

    @property
    def written(self) -> list[int]:
        """The tokens that the step wrote, in order."""
        return [*(guess.token for guess in self.accepted), self.next_token]


class DeviceDecoder(Protocol):
    """Greedy decoding on the device, one run at a time; a run continues one cache. Used on one thread."""

    max_depth: int

    def can_step(self, cache: KVCache) -> bool:
        """Return whether a step can follow: `cache` is not empty and has room for the rows of a pass."""
        ...

    def is_at(self, run: int, cache: KVCache) -> bool:
        """Return whether run number `run` is still the current one and continues where `cache` ends."""
        ...

    def begin(self, cache: KVCache, path: Sequence[int]) -> int:
        """Start a run after `path` and return its number; this ends the previous run.

        `cache` holds all tokens of `path` but the last, and at least one.
        """
        ...

    def step(self) -> DeviceStep:
        """Run one more pass of the target.

        The keys and values of the accepted tokens are stored in the cache, one after the other. The caller
        declares them valid with `KVCache.keep`.
        """
        ...

    def hint(self, path: Sequence[int], drafts: Sequence[Draft]) -> None:
        """Send drafts of other drafters after `path` to the device; later steps use them while they match."""
        ...


class DeviceSteps:
    """The steps of one completion on the device."""

    def __init__(self, decoder: DeviceDecoder, cache: KVCache) -> None:
        self._decoder, self._cache = decoder, cache
        self._run = 0

    def can_step(self, num_uncached: int) -> bool:
        """Return whether a step can run: only the last token is uncached (`num_uncached` is 1), with room."""
        return num_uncached == 1 and self._decoder.can_step(self._cache)

    def step(
        self, path: Sequence[int], drafts: Callable[[int], Sequence[Draft]], stats: CompletionStats
    ) -> DeviceStep:
        """Run one step after `path`, and declare its tokens cached.

        `drafts` is called with the maximum depth and returns drafts of other drafters. The device may already
        run the step whose result is returned here, so these drafts serve the steps after it.
        """
        decoder = self._decoder
        begin = time.perf_counter()
        if not decoder.is_at(self._run, self._cache):
            self._run = decoder.begin(self._cache, path)
        decoder.hint(path, drafts(decoder.max_depth))
        hinted = time.perf_counter()
        done = decoder.step()
        self._cache.keep([path[-1], *done.written[:-1]])
        stats.ms["draft"] += (hinted - begin) * 1e3
        stats.ms["verify"] += (time.perf_counter() - hinted) * 1e3
        stats.num_forwards += 1
        stats.num_drafted += done.num_drafted
        return done


def steps_agree(
    device_decoder: DeviceDecoder,
    target: LanguageModel,
    num_tokens: int,
    num_written: int = _NUM_WRITTEN,
    seed: int = 4,
) -> bool:
    """Whether text and cache come out the same, bit for bit, after random tokens that are repeated.

    They are repeated to give drafts that can be accepted. `num_tokens` is the size of the vocabulary.
    """
    generator = torch.Generator().manual_seed(seed)
    said = torch.randint(0, num_tokens, (_NUM_RANDOM,), generator=generator).tolist()
    prompt = [*said, *said]
    stepped, plain = KVCache(target.cache_shape), KVCache(target.cache_shape)
    path, wanted = _by_steps(device_decoder, target, stepped, prompt, num_written), [*prompt]
    _prefill(target, plain, prompt)
    while len(wanted) < len(path):
        logits = target.forward(wanted[-1:], plain, 1)
        plain.keep(wanted[-1:])
        wanted.append(int(first_largest(logits[0, :num_tokens])))
    end = plain.num_cached
    pairs = ((stepped.keys, plain.keys), (stepped.values, plain.values))
    is_same = all(torch.equal(left[:, :, :end], right[:, :, :end]) for left, right in pairs)
    return path == wanted and is_same and torch.equal(stepped.hidden[:end], plain.hidden[:end])


def _prefill(target: LanguageModel, cache: KVCache, prompt: list[int]) -> None:
    target.forward(prompt[:-1], cache, 0)
    cache.keep(prompt[:-1])


def _by_steps(
    device_decoder: DeviceDecoder, target: LanguageModel, cache: KVCache, prompt: list[int], num_written: int
) -> list[int]:
    """The prompt and at least `num_written` tokens after it."""
    _prefill(target, cache, prompt)
    path = [*prompt]
    device_decoder.begin(cache, path)
    while len(path) < len(prompt) + num_written:
        written = device_decoder.step().written
        cache.keep([path[-1], *written[:-1]])
        path += written
    return path
