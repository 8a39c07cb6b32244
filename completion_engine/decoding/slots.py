"""The caches of a few places, reused by longest common prefix.

Owns what the target is known to write after each cached prompt. Knows no text and no model.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from completion_engine.decoding.along import path_behind
from completion_engine.decoding.chances import Chance
from completion_engine.decoding.repository_memory import RepositoryMemory
from completion_engine.drafting.draft import DraftToken
from completion_engine.target_model.kv_cache import CacheShape, KVCache

_MIN_TAKEN = 32  # tokens; fewer are computed in less time than their keys and values are looked up
Setting = tuple[float, int, Hashable]  # temperature, seed, and whose memory is mixed in
_NO_SETTING: Setting = (0.0, 0, None)


@dataclass(slots=True)
class Slot:
    """A cache and what the target is known to write after it.

    `path[num_forced:]` was written by the target under `setting` with `memory` mixed in, its first tokens
    bound to spell `healed`; so a prompt that ends anywhere in that part is already answered.
    `origins` says where each written token came from, `chances` how likely it was.
    """

    cache: KVCache
    document: str = ""
    path: list[int] = field(default_factory=list)
    num_forced: int = 0
    healed: bytes = b""
    setting: Setting = _NO_SETTING
    memory: RepositoryMemory | None = None
    origins: list[DraftToken | None] = field(default_factory=list)
    chances: list[Chance] = field(default_factory=list)
    last_used: int = 0


class SlotPool:
    """A few slots, one for each place as long as they suffice, the least recently used one taken over.

    Places are told apart by their prompts: two that share most of one of them are one place.
    """

    def __init__(self, shape: CacheShape, num_slots: int) -> None:
        self._shape = shape
        self._num_slots = num_slots
        self._clock = 0
        self._slots: list[Slot] = []

    def acquire(self, document: str, prompt: Sequence[int]) -> Slot:
        """The slot that serves `prompt` with the least new work."""
        self._clock += 1
        slot = self._choose(prompt)
        slot.document, slot.last_used = document, self._clock
        return slot

    def num_missing(self, prompt: Sequence[int]) -> int:
        """Tokens of `prompt` that no slot has cached; the last one is never cached and does not count."""
        num_shared = max((slot.cache.num_shared(prompt) for slot in self._slots), default=0)
        return max(0, len(prompt) - 1 - num_shared)

    def known_after(self, prompt: Sequence[int]) -> list[int]:
        """What some slot's last completion shows to follow a prompt; nothing where none does."""
        return path_behind((slot.path for slot in self._slots), prompt)

    def take_over(self, other: SlotPool, document: str, prompt: Sequence[int]) -> None:
        """Hold a copy of what a slot of `other`, filled by the same target, has cached of `prompt`."""
        best = other._closest(prompt)
        if best is not None:
            slot = self.acquire(document, prompt)
            slot.cache.take_over(best.cache, best.cache.num_shared(prompt))
            slot.path = []

    def _choose(self, prompt: Sequence[int]) -> Slot:
        """The slot that holds most of `prompt` or little else, or another that takes over what that holds."""
        best = self._closest(prompt)
        num_shared = best.cache.num_shared(prompt) if best else 0
        if best is not None and 2 * num_shared > min(len(prompt), best.cache.num_cached):
            return best
        slot = self._free()
        if best is not None and best is not slot and num_shared >= _MIN_TAKEN:
            slot.cache.take_over(best.cache, num_shared)
            slot.path = []
        return slot

    def _closest(self, prompt: Sequence[int]) -> Slot | None:
        """The slot that has most of `prompt` cached; None where there is no slot."""
        return max(self._slots, key=lambda slot: slot.cache.num_shared(prompt), default=None)

    def _free(self) -> Slot:
        """One that holds nothing, or a new one, or the least recently used where there are enough."""
        if empty := [slot for slot in self._slots if not slot.cache.num_cached]:
            return empty[0]
        if len(self._slots) < self._num_slots:
            self._slots.append(Slot(KVCache(self._shape)))
            return self._slots[-1]
        return min(self._slots, key=lambda slot: slot.last_used)

    def forget(self, document: str) -> None:
        """Release the slots of a closed document, and what they hold of its repository."""
        for slot in self._slots:
            if slot.document == document:
                slot.document, slot.last_used = "", 0
                slot.path, slot.origins, slot.chances = [], [], []
                slot.setting, slot.memory = _NO_SETTING, None

    @property
    def num_bytes(self) -> int:
        """Memory of all slots when they are full."""
        return len(self._slots) * self._shape.num_bytes
