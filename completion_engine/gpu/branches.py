"""Branches of a tree inside one cache: rows lie in row order, and what proves true is moved into line.

The `branch_caches.BranchStorage` for targets whose attention reads each row's ancestors through a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from completion_engine.target_model.branch_caches import Layout
from completion_engine.target_model.kv_cache import KVCache

Move = Callable[[KVCache, Sequence[int], int], None]  # see `gpu.decoder.GraphedDecoder.move`


class InPlaceBranches:
    """See `branch_caches.BranchStorage`. A branch more takes no memory."""

    max_branches = 64
    num_bytes = 0

    def __init__(self, move: Move) -> None:
        self._move = move

    def open(self, trunk: KVCache, layout: Layout) -> list[KVCache]:
        """The trunk, once for each branch. Raises ValueError where the rows do not fit after it."""
        num_rows = len(layout.depths)
        if trunk.num_cached + num_rows > trunk.capacity:
            raise ValueError(f"{num_rows} rows do not fit after {trunk.num_cached} of {trunk.capacity}")
        return [trunk] * len(layout.branches)

    def keep(self, trunk: KVCache, layout: Layout, rows: Sequence[int], tokens: Sequence[int]) -> None:
        """Declare the path `rows` true, whose tokens are `tokens`: its keys and values move into line."""
        path = tuple(rows)
        if all(branch.path[: len(path)] != path for branch in layout.branches):
            raise ValueError(f"{path} is not a path of this tree")
        first = next((depth for depth, row in enumerate(path) if row != depth), len(path))
        if first < len(path):
            start = trunk.num_cached
            self._move(trunk, [start + row for row in path[first:]], start + first)
        trunk.keep(tokens)
