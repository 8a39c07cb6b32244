"""The KV caches of a few cursors, reused by longest common prefix, each with its last completion."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from completion_engine.decoding.reuse import Continuation, PastCompletion, path_after
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.target_model.kv_cache import CacheShape, KVCache
from completion_engine.target_model.passes import ChunkRule

_MIN_COPIED = 32  # tokens; computing fewer takes no longer than copying their keys and values


@dataclass(slots=True)
class Slot:
    """A KV cache, and the last completion that the target wrote in it."""

    cache: KVCache
    document: str = ""
    past: PastCompletion = field(default_factory=PastCompletion)
    last_used: int = 0

    def continuation(
        self, prompt: Prompt, written: Written, setting: Hashable, chunks: ChunkRule, *, needs_scores: bool
    ) -> Continuation:
        """Return the tokens of the slot's past completion that follow `prompt`, so that no pass need write
        them.

        Empty if the past tokens were picked with another setting, or if their prompt was computed in other
        chunks: then the logits may differ in bits.
        """
        num_chunked = chunks.num_chunked(len(prompt.tokens))
        if self.past.setting != setting or num_chunked != chunks.num_chunked(self.past.num_forced):
            return Continuation()
        return self.past.continuation(prompt, written, needs_scores=needs_scores)


class SlotPool:
    """At most `num_slots` slots, one for each of the latest cursors; a new cursor evicts the least recently
    used.

    Two prompts count as the same cursor if they share more than half of the shorter one. With `max_missing`
    they do if at most this number of tokens of the later one are not cached.
    """

    def __init__(self, shape: CacheShape, num_slots: int, max_missing: int | None = None) -> None:
        self._shape = shape
        self._num_slots = num_slots
        self._max_missing = max_missing
        self._clock = 0
        self._slots: list[Slot] = []

    def acquire(self, document: str, prompt: Sequence[int]) -> Slot:
        """Return the slot for `prompt`, with as much of it cached as any slot holds; see `_choose`."""
        self._clock += 1
        slot = self._choose(prompt)
        slot.document, slot.last_used = document, self._clock
        return slot

    def num_missing(self, prompt: Sequence[int]) -> int:
        """Return how many tokens of `prompt` no slot has cached, without the last, which is never cached."""
        num_shared = max((slot.cache.num_shared(prompt) for slot in self._slots), default=0)
        return max(0, len(prompt) - 1 - num_shared)

    def written_after(self, prompt: Sequence[int]) -> list[int]:
        """Return the tokens after `prompt` in the past completion of any slot; empty if none matches."""
        return path_after((slot.past.path for slot in self._slots), prompt)

    def copy_from(self, other: SlotPool, document: str, prompt: Sequence[int]) -> None:
        """Copy the cached part of `prompt` from the best slot of `other`, which has the same target."""
        best = other._closest(prompt)
        if best is not None:
            slot = self.acquire(document, prompt)
            slot.cache.copy_from(best.cache, best.cache.num_shared(prompt))
            slot.past = PastCompletion()

    def forget(self, document: str) -> None:
        """Release the slots of a closed document, and drop their past completions."""
        for slot in self._slots:
            if slot.document == document:
                slot.document, slot.last_used, slot.past = "", 0, PastCompletion()

    def clear(self) -> None:
        """Release all slots and their caches."""
        self._slots.clear()

    @property
    def num_bytes(self) -> int:
        """Memory of all slots when they are full."""
        return len(self._slots) * self._shape.num_bytes

    def _choose(self, prompt: Sequence[int]) -> Slot:
        """Return the slot of the cursor of `prompt`, or a free one with the shared part copied into it.

        If the closest slot is of the same cursor, it is returned: the rest of its cache will be overwritten.
        """
        best = self._closest(prompt)
        num_shared = best.cache.num_shared(prompt) if best else 0
        if best is not None and self._is_same_cursor(len(prompt), best.cache.num_cached, num_shared):
            return best
        slot = self._free()
        if best is not None and best is not slot and num_shared >= _MIN_COPIED:
            slot.cache.copy_from(best.cache, num_shared)
            slot.past = PastCompletion()
        return slot

    def _is_same_cursor(self, num_tokens: int, num_cached: int, num_shared: int) -> bool:
        if self._max_missing is not None:
            return num_tokens - num_shared <= self._max_missing
        return 2 * num_shared > min(num_tokens, num_cached)

    def _closest(self, prompt: Sequence[int]) -> Slot | None:
        """Return the slot with the longest cached prefix of `prompt`; None without slots."""
        return max(self._slots, key=lambda slot: slot.cache.num_shared(prompt), default=None)

    def _free(self) -> Slot:
        """Return an empty slot, else a new one if there are fewer than `num_slots`, else the least recently
        used.
        """
        if empty := [slot for slot in self._slots if not slot.cache.num_cached]:
            return empty[0]
        if len(self._slots) < self._num_slots:
            self._slots.append(Slot(KVCache(self._shape)))
            return self._slots[-1]
        return min(self._slots, key=lambda slot: slot.last_used)
