"""Steps that a device takes by itself, drafting included. Does not depend on text rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from completion_engine.drafting.drafts import Draft, DraftToken
from completion_engine.stats import CompletionStats
from completion_engine.target_model.kv_cache import KVCache


@dataclass(frozen=True, slots=True)
class DeviceStep:
    """What one step came to: the tokens of `accepted` are true, then the target writes `next_token`."""

    accepted: tuple[DraftToken, ...]
    next_token: int
    num_drafted: int

    @property
    def written(self) -> list[int]:
        """All that the step wrote."""
        return [*(guess.token for guess in self.accepted), self.next_token]


class DeviceDecoder(Protocol):
    """Greedy decoding of one cache after the other, step by step. All calls belong to one thread."""

    max_depth: int

    def can_step(self, cache: KVCache) -> bool:
        """Whether a step may follow what is cached: there is something, and there is room."""
        ...

    def is_at(self, run: int, cache: KVCache) -> bool:
        """Whether the run of that number goes on where `cache` ends."""
        ...

    def begin(self, cache: KVCache, path: Sequence[int]) -> int:
        """Start a run after `path`; `cache` holds all of its tokens but the last, and at least one.

        Returns the run's number. The previous run is given up.
        """
        ...

    def step(self) -> DeviceStep:
        """One pass of the target more. The accepted tokens are in the cache, in line; the caller keeps it."""
        ...

    def hint(self, path: Sequence[int], drafts: Sequence[Draft]) -> None:
        """Add the drafts of other sources after `path`, for later steps that still agree with them."""
        ...


class DeviceSteps:
    """The steps of one completion on the device."""

    def __init__(self, decoder: DeviceDecoder, cache: KVCache) -> None:
        self._decoder, self._cache = decoder, cache
        self._run = 0

    def can_step(self, num_uncached: int) -> bool:
        """Return whether a step may follow what is cached and `num_uncached` tokens more."""
        return num_uncached == 1 and self._decoder.can_step(self._cache)

    def step(
        self, path: Sequence[int], drafts: Callable[[int], Sequence[Draft]], stats: CompletionStats
    ) -> DeviceStep:
        """Take one step after `path`, and cache it; `drafts` of a depth serve the steps after it."""
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
