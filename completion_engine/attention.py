"""Attention of one pass over the lanes of a tree: every row sees its ancestors where a chain would put them.

Keeps the property that exactness rests on: a row's result depends on its own token and what stands before it,
not on how many rows run beside it (rows in whole groups, keys in whole blocks).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from completion_engine.kv_cache import KVCache
from completion_engine.lanes import Lane, Layout

ROWS = 8  # every pass runs a multiple of this many rows; see `pad_rows`
KEY_BLOCK = 512  # attention reads whole blocks of keys, as torch's CPU kernel walks them


def pad_rows(num_rows: int) -> int:
    """Rows a pass really runs. Fewer than a full group would take other kernels, with other sums."""
    return -(-num_rows // ROWS) * ROWS


def num_keys_for(end: int, capacity: int) -> int:
    """Keys to read for rows that end at position `end`: whole blocks, so that sums do not change."""
    return min(-(-end // KEY_BLOCK) * KEY_BLOCK, capacity)


def causal_mask(positions: Tensor, num_keys: int, dtype: torch.dtype) -> Tensor:
    """Additive mask [num_rows, num_keys]: each row sees the keys up to its own position."""
    hidden = torch.arange(num_keys, device=positions.device) > positions[:, None]
    shape = (positions.shape[0], num_keys)
    return torch.zeros(shape, dtype=dtype, device=positions.device).masked_fill_(hidden, float("-inf"))


def window_of(lane: Lane, num_rows: int) -> tuple[int, int]:
    """First and last row + 1 that attend in a lane: its own rows, filled up to whole groups with others."""
    size = pad_rows(lane.end - lane.first)
    first = min(lane.first, num_rows - size)
    return first, first + size


class OpenLane:
    """A lane during one pass: its cache, which rows attend there, and which keys they see."""

    def __init__(self, lane: Lane, cache: KVCache, mask: Tensor) -> None:
        self.cache = cache
        self._start, self._stop = cache.num_cached, cache.num_cached + len(lane.path)
        is_run = lane.path == tuple(range(len(lane.path)))
        self._path: slice | list[int] = slice(0, len(lane.path)) if is_run else list(lane.path)
        self._window = first, end = window_of(lane, mask.shape[0])
        self._own = slice(lane.first - first, lane.end - first)
        self._mask = mask[first:end]
        self._folded: Tensor | None = None

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """The lane's own rows [num_own, num_heads, head_size], once their keys and values are written.

        q [num_rows, num_heads, head_size]; k, v [num_kv_heads, num_rows, head_size], all rows of the pass.
        """
        keys, values = self.cache.keys[layer], self.cache.values[layer]
        keys[:, self._start : self._stop] = k[:, self._path]
        values[:, self._start : self._stop] = v[:, self._path]
        first, end = self._window
        num_rows, num_kv, head_size = end - first, k.shape[0], q.shape[-1]
        num_keys, num_groups = self._mask.shape[-1], q.shape[1] // num_kv
        folded = q[first:end].view(num_rows, num_kv, num_groups, head_size).permute(1, 2, 0, 3)
        heads = functional.scaled_dot_product_attention(
            folded.reshape(1, num_kv, num_groups * num_rows, head_size),
            keys[None, :, :num_keys],
            values[None, :, :num_keys],
            self._mask_of(num_groups),
            scale=scale,
        )
        heads = heads.view(num_kv, num_groups, num_rows, head_size).permute(2, 0, 1, 3)
        return heads[self._own].reshape(-1, q.shape[1], head_size)

    def store_hidden(self, hidden: Tensor) -> None:
        """Keep the last hidden states [num_rows, hidden_size] of the lane's path."""
        self.cache.hidden[self._start : self._stop] = hidden[self._path]

    def _mask_of(self, num_groups: int) -> Tensor:
        """The mask for queries whose groups are folded into the rows."""
        if self._folded is None:
            self._folded = self._mask.repeat(num_groups, 1)[None, None]
        return self._folded


class OpenLanes:
    """All lanes of one pass. `positions` [num_rows] are the rows' places in the text."""

    def __init__(
        self, layout: Layout, caches: Sequence[KVCache], dtype: torch.dtype, device: torch.device
    ) -> None:
        start = caches[0].num_cached
        self.positions = torch.tensor(layout.depths, device=device) + start
        num_keys = num_keys_for(start + max(layout.depths) + 1, caches[0].capacity)
        self.mask = causal_mask(self.positions, num_keys, dtype)
        self._lanes = [
            OpenLane(lane, cache, self.mask) for lane, cache in zip(layout.lanes, caches, strict=True)
        ]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """All rows [num_rows, num_heads, head_size]; arguments as in `OpenLane.attend`."""
        heads = [lane.attend(layer, q, k, v, scale) for lane in self._lanes]
        return heads[0] if len(heads) == 1 else torch.cat(heads)

    def store_hidden(self, hidden: Tensor) -> None:
        """Keep the last hidden states [num_rows, hidden_size] of all rows."""
        for lane in self._lanes:
            lane.store_hidden(hidden)
