"""Steps that the device takes by itself, in the middle of a completion. Knows no text rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from completion_engine.drafting.device_step import DeviceDecoder, DeviceStep
from completion_engine.drafting.draft import Draft
from completion_engine.stats import CompletionStats
from completion_engine.target_model.kv_cache import KVCache


class DeviceSteps:
    """One completion's steps on the device; none where there is no decoder for them."""

    def __init__(self, decoder: DeviceDecoder | None, cache: KVCache) -> None:
        self._decoder, self._cache = decoder, cache
        self._run = 0

    def can_step(self, num_known: int) -> bool:
        """Whether a step may follow what is cached and `num_known` tokens more."""
        return self._decoder is not None and num_known == 1 and self._decoder.can_step(self._cache)

    def step(
        self, path: Sequence[int], drafts: Callable[[int], Sequence[Draft]], stats: CompletionStats
    ) -> DeviceStep:
        """One step behind `path`, kept in the cache; `drafts` of a depth serve the steps behind it."""
        decoder = self._decoder
        if decoder is None:
            raise ValueError("there is no device that takes steps")
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
