"""Attention of one pass over a tree's branches: every row sees its ancestors where a chain would put them.

Keeps the property that exactness rests on: a row's result depends on its own token and the tokens before it,
not on the number of rows beside it. Rows run in whole groups, keys in whole blocks, and sums over one block
at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from completion_engine.cpu.kernels import attention, heads
from completion_engine.cpu.kernels.language import array_of
from completion_engine.target_model.decoder import Branch, Layout
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.passes import pad_rows

_KEY_BLOCK = {"cpu": 128, "cuda": 512}  # attention reads whole blocks of keys


def num_keys_for(end: int, capacity: int, device: torch.device) -> int:
    """Keys to read for rows that end at position `end`: whole blocks, so that sums do not change."""
    block = _KEY_BLOCK[device.type]
    return min(-(-end // block) * block, capacity)


def attend(q: Tensor, memory: tuple[Tensor, Tensor], num_seen: Tensor, scale: float) -> Tensor:
    """Attention of q [num_rows, num_heads, head_size] to the first `num_seen` [num_rows] keys; shaped as q.

    `memory` holds keys and values [num_kv_heads, num_keys, head_size].
    """
    if attention.can_attend(q, *memory):
        return attention.attend(q, *memory, num_seen, scale)
    return attend_on_device(q, *memory, num_seen, scale)


def attend_on_device(q: Tensor, keys: Tensor, values: Tensor, num_seen: Tensor, scale: float) -> Tensor:
    """`attend` by torch's own attention, where our kernels cannot run."""
    num_rows, num_kv = q.shape[0], keys.shape[0]
    folded = q.view(num_rows, num_kv, -1, q.shape[-1]).permute(1, 2, 0, 3)
    is_seen = torch.arange(keys.shape[1], device=q.device) < num_seen[:, None]
    mask = is_seen.repeat(folded.shape[1], 1)[None, None]
    found = functional.scaled_dot_product_attention(
        folded.flatten(1, 2)[None], keys[None], values[None], mask, scale=scale
    )
    return found.view(folded.shape).permute(2, 0, 1, 3).reshape(q.shape)


def window_of(branch: Branch, num_rows: int) -> tuple[int, int]:
    """First and last row + 1 that attend in a branch: its own rows, filled up to whole groups with others."""
    size = pad_rows(branch.end - branch.first)
    first = min(branch.first, num_rows - size)
    return first, first + size


class OpenBranch:
    """A branch during one pass: its cache, which rows attend there, and which keys they see."""

    def __init__(self, branch: Branch, cache: KVCache, positions: Tensor, num_keys: int) -> None:
        self.cache = cache
        self._start, self._num_keys = cache.num_cached, num_keys
        self._path = torch.tensor(branch.path, device=positions.device)
        self._window = first, end = window_of(branch, len(positions))
        self._own = slice(branch.first - first, branch.end - first)
        self._num_seen = positions[first:end] + 1

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """The branch's own rows [num_own, num_heads, head_size], once their keys and values are written.

        q [num_rows, num_heads, head_size]; k, v [num_kv_heads, num_rows, head_size], all rows of the pass.
        """
        keys, values = self.cache.keys[layer], self.cache.values[layer]
        self._write(k, v, keys, values)
        first, end = self._window
        memory = keys[:, : self._num_keys], values[:, : self._num_keys]
        return attend(q[first:end], memory, self._num_seen, scale)[self._own]

    def store_hidden(self, hidden: Tensor) -> None:
        """Keep the last hidden states [num_rows, hidden_size] of the branch's path."""
        self.cache.hidden[self._start : self._start + len(self._path)] = hidden[self._path]

    def _write(self, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> None:
        if k.device.type == "cpu" and k.dtype != torch.float16:  # which numba does not know
            path, by_channel = array_of(self._path), array_of(keys.transpose(1, 2))
            heads.place(array_of(k), array_of(v), path, by_channel, array_of(values), self._start)
            return
        stop = self._start + len(self._path)
        keys[:, self._start : stop] = k[:, self._path]
        values[:, self._start : stop] = v[:, self._path]


class OpenBranches:
    """All branches of one pass of whole groups. `positions` [num_rows] are the rows' places in the text."""

    def __init__(self, layout: Layout, caches: Sequence[KVCache], device: torch.device) -> None:
        start = caches[0].num_cached
        self.positions = torch.tensor(layout.depths, device=device) + start
        self.num_keys = num_keys_for(start + max(layout.depths) + 1, caches[0].capacity, device)
        self._branches = [
            OpenBranch(branch, cache, self.positions, self.num_keys)
            for branch, cache in zip(layout.branches, caches, strict=True)
        ]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """All rows [num_rows, num_heads, head_size]; arguments as in `OpenBranch.attend`."""
        found = [branch.attend(layer, q, k, v, scale) for branch in self._branches]
        return found[0] if len(found) == 1 else torch.cat(found)

    def store_hidden(self, hidden: Tensor) -> None:
        """Keep the last hidden states [num_rows, hidden_size] of all rows."""
        for branch in self._branches:
            branch.store_hidden(hidden)
