"""The static KV cache: preallocated keys and values, which tokens they belong to, and their reuse.

Rewinding is setting a length. Knows nothing of models beyond the shape of what they store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from completion_engine.drafting.draft import DraftToken


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Geometry of one slot. `capacity` counts positions."""

    num_layers: int
    num_kv_heads: int
    head_size: int
    capacity: int
    dtype: torch.dtype
    device: torch.device

    @property
    def num_bytes(self) -> int:
        """Memory of one slot."""
        values = self.num_layers * self.num_kv_heads * self.head_size * self.capacity
        return 2 * values * self.dtype.itemsize


class KVCache:
    """Keys and values of one document's prompt and what was written after it.

    `keys` and `values` are [num_layers, num_kv_heads, capacity, head_size]. `tokens[:num_cached]` are the
    tokens whose keys and values are valid: `0 <= num_cached == len(tokens) <= capacity`.
    """

    def __init__(self, shape: CacheShape) -> None:
        size = (shape.num_layers, shape.num_kv_heads, shape.capacity, shape.head_size)
        self.shape = shape
        self.keys = torch.zeros(size, dtype=shape.dtype, device=shape.device)
        self.values = torch.zeros(size, dtype=shape.dtype, device=shape.device)
        self.tokens: list[int] = []

    @property
    def num_cached(self) -> int:
        """Positions that hold valid keys and values."""
        return len(self.tokens)

    @property
    def capacity(self) -> int:
        """Positions there is room for."""
        return self.shape.capacity

    def keep(self, tokens: Sequence[int]) -> None:
        """Declare the next `len(tokens)` positions valid: a pass has just written them."""
        if self.num_cached + len(tokens) > self.capacity:
            raise ValueError(f"{len(tokens)} tokens do not fit behind {self.num_cached} of {self.capacity}")
        self.tokens.extend(tokens)

    def rewind(self, num_cached: int) -> None:
        """Forget everything from position `num_cached` on."""
        if not 0 <= num_cached <= self.num_cached:
            raise ValueError(f"cannot rewind from {self.num_cached} to {num_cached}")
        del self.tokens[num_cached:]

    def num_shared(self, tokens: Sequence[int]) -> int:
        """Length of the longest common prefix of `tokens` and what is cached."""
        return num_common(self.tokens, tokens)

    def check_integrity(self) -> None:
        """Assert the invariant."""
        assert 0 <= self.num_cached <= self.capacity  # noqa: S101 - an invariant, not input


def num_common(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the longest common prefix of two token sequences."""
    limit = min(len(left), len(right))
    if list(left[:limit]) == list(right[:limit]):
        return limit
    return next(i for i in range(limit) if left[i] != right[i])


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
