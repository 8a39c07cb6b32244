"""A few documents' caches, reused by longest common prefix.

Owns what the target is known to write after each cached prompt. Knows no text and no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from completion_engine.drafting.draft import DraftToken
from completion_engine.target_model.kv_cache import CacheShape, KVCache


@dataclass(slots=True)
class Slot:
    """A cache and what the target is known to write after it.

    `path[num_forced:]` was written by the target under `setting` (temperature, seed), its first tokens
    bound to spell `healed`; so a prompt that ends anywhere in that part is already answered.
    `origins` says where each written token came from.
    """

    cache: KVCache
    document: str = ""
    path: list[int] = field(default_factory=list)
    num_forced: int = 0
    healed: bytes = b""
    setting: tuple[float, int] = (0.0, 0)
    origins: list[DraftToken | None] = field(default_factory=list)
    last_used: int = 0


class SlotPool:
    """A few slots, one per document as long as they suffice, the least recently used one taken over."""

    def __init__(self, shape: CacheShape, num_slots: int) -> None:
        self._shape = shape
        self._num_slots = num_slots
        self._clock = 0
        self._slots: list[Slot] = []

    def acquire(self, document: str, prompt: Sequence[int]) -> Slot:
        """The slot that serves `prompt` with the least new work."""
        self._clock += 1
        slot = self._choose(document, prompt)
        slot.document, slot.last_used = document, self._clock
        return slot

    def _choose(self, document: str, prompt: Sequence[int]) -> Slot:
        own = [slot for slot in self._slots if slot.document == document]
        best = max(self._slots, key=lambda s: s.cache.num_shared(prompt), default=None)
        if best is not None and 2 * best.cache.num_shared(prompt) > len(prompt):
            return best
        if own:
            return min(own, key=lambda s: s.last_used)
        if len(self._slots) < self._num_slots:
            self._slots.append(Slot(KVCache(self._shape)))
            return self._slots[-1]
        return min(self._slots, key=lambda s: s.last_used)

    def forget(self, document: str) -> None:
        """Release the slots of a closed document."""
        for slot in self._slots:
            if slot.document == document:
                slot.document, slot.last_used = "", 0

    @property
    def num_bytes(self) -> int:
        """Memory held by all slots."""
        return len(self._slots) * self._shape.num_bytes
