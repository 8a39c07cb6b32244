"""Decoding steps that run wholly on the device: draft, verify and accept without the host."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from completion_engine.drafting.drafts import Draft, DraftToken
from completion_engine.probability import TokenProbability
from completion_engine.request import CompletionStats
from completion_engine.target_model.kv_cache import KVCache


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
