"""Branches of a tree inside one cache: rows lie in row order, and what proves true is moved into line.

The `lanes.Branches` for targets whose attention reads each row's ancestors through a table.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from completion_engine.kv_cache import KVCache
from completion_engine.lanes import Layout


class InPlaceBranches:
    """See `lanes.Branches`. A branch more takes no memory and next to no time."""

    max_lanes = 64
    num_bytes = 0

    def open(self, trunk: KVCache, layout: Layout) -> list[KVCache]:
        """The trunk, once for each lane. Raises ValueError where the rows do not fit behind it."""
        num_rows = len(layout.depths)
        if trunk.num_cached + num_rows > trunk.capacity:
            raise ValueError(f"{num_rows} rows do not fit behind {trunk.num_cached} of {trunk.capacity}")
        return [trunk] * len(layout.lanes)

    def keep(self, trunk: KVCache, layout: Layout, rows: Sequence[int], tokens: Sequence[int]) -> None:
        """Declare the path `rows` true, whose tokens are `tokens`: its keys and values move into line."""
        path = tuple(rows)
        if all(lane.path[: len(path)] != path for lane in layout.lanes):
            raise ValueError(f"{path} is no path of this tree")
        first = next((depth for depth, row in enumerate(path) if row != depth), len(path))
        if first < len(path):
            start = trunk.num_cached
            sources = trunk.keys.new_tensor([start + row for row in path[first:]]).long()
            move(trunk, sources, start + first)
        trunk.keep(tokens)


def move(cache: KVCache, sources: Tensor, first: int) -> None:
    """Copy the positions `sources` [num_rows] to `first` and behind it. They may overlap."""
    end = first + len(sources)
    cache.keys[:, :, first:end] = cache.keys[:, :, sources]
    cache.values[:, :, first:end] = cache.values[:, :, sources]
    cache.hidden[first:end] = cache.hidden[sources]
