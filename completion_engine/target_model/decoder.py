"""The forward pass of a target, token rows in, logits out, and the positions of its rows in caches.

Owns the protocol, which `cpu.int8_decoder`, `gpu.decoder` and `transformers_decoder` implement, and the
branches of a tree. All decoders are built for one property: a row's logits, keys and
values depend only on its own token and the tokens before it, not on the number of rows beside it. `exactness`
tests this property at load. Sums over keys depend on the places of the keys. So that a drafted path gives the
same bits in a tree as in a chain, every row sees its ancestors at the places that a chain would give them:
the first path lies in the document's own cache, each further one in a copy of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from completion_engine.target_model.brake import Brake
from completion_engine.target_model.kv_cache import CacheShape, KVCache, num_common
from completion_engine.target_model.weights import RowTable

MAX_BRANCHES = 4  # the trunk included; each further one holds a cache's memory


class Decoder(Protocol):
    """One target's forward pass."""

    num_layers: int
    num_kv_heads: int
    head_size: int
    hidden_size: int
    vocab_size: int
    row_step: int  # passes run a multiple of this number of rows
    computes_in_torch: bool  # its operations also need threads
    brake: Brake  # ends a pass early, where passes are made of kernels that look at it

    @property
    def num_weight_bytes(self) -> int:
        """Memory of the weights."""
        ...

    @property
    def embedding(self) -> RowTable:
        """The numbers that the first layer reads for each token, [vocab_size, hidden_size]."""
        ...

    @property
    def rotary(self) -> tuple[Tensor, Tensor] | None:
        """Arguments of `rotate` that turn queries for cached keys, by position; None if unknown."""
        ...

    def head_rows(self, tokens: Tensor) -> Tensor:
        """The head's weights of some tokens [num_tokens, hidden_size]; a copy."""
        ...

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        """Run `rows` [num_rows] on the host, a multiple of `row_step`, after the cached positions.

        `layout` says where each row stands; `caches` holds one cache a branch, and gets the rows' keys,
        values and hidden states (its length stays as it is). Returns the logits [num_logits, vocab_size] of
        the last `num_logits` rows. Raises CancelledError where `brake` ended the pass: nothing that the
        caches hold of its rows counts then.
        """
        ...


@dataclass(frozen=True, slots=True)
class Branch:
    """Rows `first` to `end` of a pass are computed here; `path` are they and all rows before them."""

    first: int
    end: int
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """`depths[row]` counts the rows before a row; `branches[0]` is the trunk."""

    depths: tuple[int, ...]
    branches: tuple[Branch, ...]


def lay_out(parents: Sequence[int]) -> Layout:
    """The branches of rows whose parents are given; -1 for the first row, an earlier row for every other.

    A row that follows the one before it stays in its branch; any other opens a new one.
    """
    if list(parents) == list(range(-1, len(parents) - 1)):
        rows = tuple(range(len(parents)))
        return Layout(rows, (Branch(0, len(parents), rows),))
    paths: list[tuple[int, ...]] = []
    branches: list[Branch] = []
    for row, parent in enumerate(parents):
        if not (parent == -1 and row == 0) and not 0 <= parent < row:
            raise ValueError(f"row {row} cannot have the parent {parent}")
        paths.append((*paths[parent], row) if parent >= 0 else (row,))
        if parent == row - 1 and branches:
            branches[-1] = Branch(branches[-1].first, row + 1, paths[row])
        else:
            branches.append(Branch(row, row + 1, paths[row]))
    return Layout(tuple(len(path) - 1 for path in paths), tuple(branches))


class BranchCaches:
    """The caches of further branches, brought up to date with the trunk when they are used.

    `open` makes room for a pass, and `keep` moves what proves true into the trunk.
    """

    max_branches = MAX_BRANCHES

    def __init__(self, shape: CacheShape) -> None:
        self._shape = shape
        self._branches: list[KVCache] = []

    @property
    def num_bytes(self) -> int:
        """Memory held."""
        return len(self._branches) * self._shape.num_bytes

    def open(self, trunk: KVCache, layout: Layout) -> list[KVCache]:
        """One cache for each branch, all holding what the trunk holds."""
        while len(self._branches) < len(layout.branches) - 1:
            self._branches.append(KVCache(self._shape))
        used = self._branches[: len(layout.branches) - 1]
        for branch in used:
            # Equal tokens mean equal bits, whichever document they came from: rows are invariant.
            branch.rewind(num_common(branch.tokens, trunk.tokens))
            branch.copy(trunk, branch.num_cached, trunk.num_cached)
            branch.keep(trunk.tokens[branch.num_cached :])
        return [trunk, *used]

    def keep(self, trunk: KVCache, layout: Layout, rows: Sequence[int], tokens: Sequence[int]) -> None:
        """Declare the path `rows` true, whose tokens are `tokens`: its keys and values move to the trunk."""
        path = tuple(rows)
        at = next(at for at, branch in enumerate(layout.branches) if branch.path[: len(path)] == path)
        if at:
            num_shared = num_common(path, layout.branches[0].path)
            start = trunk.num_cached
            trunk.copy(self._branches[at - 1], start + num_shared, start + len(path))
        trunk.keep(tokens)


class InPlaceBranches:
    """As `BranchCaches`. Rows lie in row order, accepted ones are moved into line; needs no copies.

    For targets whose attention reads each row's ancestors through a table.
    """

    max_branches = 64
    num_bytes = 0

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
            place = slice(trunk.num_cached + first, trunk.num_cached + len(path))
            sources = torch.tensor(path[first:], device=trunk.hidden.device) + trunk.num_cached
            trunk.hidden[place] = trunk.hidden[sources]
            for part in (trunk.keys, trunk.values):
                part[:, :, place] = part[:, :, sources]
        trunk.keep(tokens)


BranchStorage = BranchCaches | InPlaceBranches
