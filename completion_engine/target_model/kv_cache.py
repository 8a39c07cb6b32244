"""The static KV cache: preallocated keys and values, and which tokens they belong to.

Rewinding is setting a length. Depends on the shape of a model's keys and values only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from completion_engine.runtime import private_pages

KEY_ALIGNMENT = 32  # keys that lie by channel have room for whole vectors of every kernel


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Geometry of one slot. `capacity` counts positions."""

    num_layers: int
    num_kv_heads: int
    head_size: int
    hidden_size: int
    capacity: int
    dtype: torch.dtype
    device: torch.device
    keys_by_channel: bool = False

    @property
    def num_bytes(self) -> int:
        """Memory of one slot that is full."""
        per_position = 2 * self.num_layers * self.num_kv_heads * self.head_size + self.hidden_size
        return per_position * self.capacity * self.dtype.itemsize

    def new_cache(self) -> KVCache:
        """Return an empty cache of this shape."""
        return KVCache(self)


class KVCache:
    """Keys and values of one document's prompt and what was written after it.

    `keys` and `values` are [num_layers, num_kv_heads, capacity, head_size]; if the shape asks for it, keys
    lie in memory by channel, as the CPU's product that makes the scores reads them. `hidden` [capacity,
    hidden_size] is what the head reads, for drafters that build on it. `tokens[:num_cached]` are the tokens
    for which all three are valid: `0 <= num_cached == len(tokens) <= capacity`.
    """

    def __init__(self, shape: CacheShape) -> None:
        size = (shape.num_layers, shape.num_kv_heads, shape.capacity, shape.head_size)
        self.shape = shape
        if shape.keys_by_channel:
            room = -(-shape.capacity // KEY_ALIGNMENT) * KEY_ALIGNMENT
            by_channel = _zeros(shape, *size[:2], size[3], room)
            self.keys = by_channel.transpose(2, 3)[:, :, : shape.capacity]
        else:
            self.keys = _zeros(shape, *size)
        self.values = _zeros(shape, *size)
        self.hidden = _zeros(shape, shape.capacity, shape.hidden_size)
        self.tokens: list[int] = []
        self.num_from_chunks = 0

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
            raise ValueError(f"{len(tokens)} tokens do not fit after {self.num_cached} of {self.capacity}")
        self.tokens.extend(tokens)

    def keep_chunk(self, tokens: Sequence[int]) -> None:
        """As `keep`, if that pass was a whole chunk after whole chunks only."""
        if self.num_from_chunks != self.num_cached:
            raise ValueError(f"a chunk at {self.num_cached}, behind {self.num_from_chunks} from chunks")
        self.keep(tokens)
        self.num_from_chunks = self.num_cached

    def pretend(self, num_cached: int) -> None:
        """Hold this many positions whose contents do not matter, in memory of their own as after passes."""
        for tensor in (self.keys, self.values):
            tensor[:, :, :num_cached] = 0
        self.hidden[:num_cached] = 0
        self.tokens = [0] * num_cached

    def rewind(self, num_cached: int) -> None:
        """Forget everything from position `num_cached` on."""
        if not 0 <= num_cached <= self.num_cached:
            raise ValueError(f"cannot rewind from {self.num_cached} to {num_cached}")
        del self.tokens[num_cached:]
        self.num_from_chunks = min(self.num_from_chunks, num_cached)

    def copy(self, other: KVCache, first: int, end: int) -> None:
        """Copy positions `first` to `end` of `other`; the caller then declares valid positions."""
        if end > first:
            self.keys[:, :, first:end] = other.keys[:, :, first:end]
            self.values[:, :, first:end] = other.values[:, :, first:end]
            self.hidden[first:end] = other.hidden[first:end]

    def copy_from(self, other: KVCache, num_cached: int) -> None:
        """Hold a copy of the first `num_cached` positions of `other`, and nothing else."""
        self.copy(other, 0, num_cached)
        self.tokens = other.tokens[:num_cached]
        self.num_from_chunks = min(other.num_from_chunks, num_cached)

    def num_shared(self, tokens: Sequence[int]) -> int:
        """Length of the longest common prefix of `tokens` and what is cached."""
        return num_common(self.tokens, tokens)

    def check_integrity(self) -> None:
        """Assert the invariant."""
        assert 0 <= self.num_from_chunks <= self.num_cached <= self.capacity  # noqa: S101 - an invariant, not input


def _zeros(shape: CacheShape, *size: int) -> Tensor:
    """Return zeros that the system allocates on first write.

    Making 75 MB at once delays a request by 0.1 to 0.2 s.
    """
    if shape.device.type != "cpu":
        return torch.zeros(size, dtype=shape.dtype, device=shape.device)
    num_bytes = math.prod(size) * shape.dtype.itemsize
    try:
        pages = private_pages(num_bytes)
    except OSError as error:
        raise MemoryError(f"no memory for {num_bytes} bytes of keys and values") from error
    return torch.frombuffer(pages, dtype=shape.dtype).view(size)


def num_common(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the longest common prefix of two token sequences."""
    limit = min(len(left), len(right))
    if list(left[:limit]) == list(right[:limit]):
        return limit
    return next(i for i in range(limit) if left[i] != right[i])
