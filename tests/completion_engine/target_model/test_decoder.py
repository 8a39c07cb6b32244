"""Branch caches: rows see their ancestors where a chain would put them; the true path ends in the trunk."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.target_model.decoder import BranchCaches, lay_out
from completion_engine.target_model.kv_cache import CacheShape, KVCache

SHAPE = CacheShape(2, 1, 2, 4, 64, torch.float32, torch.device("cpu"))
forests = st.lists(st.integers(0, 30), min_size=1, max_size=16).map(
    lambda drawn: [-1, *(number % (row + 1) for row, number in enumerate(drawn))]
)


def ancestors(parents: list[int], row: int) -> tuple[int, ...]:
    return (*ancestors(parents, parents[row]), row) if row >= 0 else ()


@given(forests)
def test_every_row_has_one_branch_and_its_ancestors_in_order(parents: list[int]) -> None:
    layout = lay_out(parents)
    assert [row for branch in layout.branches for row in range(branch.first, branch.end)] == list(
        range(len(parents))
    )
    for branch in layout.branches:
        assert branch.path == ancestors(parents, branch.end - 1)
        assert branch.path[branch.first - branch.end :] == tuple(range(branch.first, branch.end))
        assert all(parents[row] == row - 1 for row in range(branch.first + 1, branch.end))
    assert list(layout.depths) == [len(ancestors(parents, row)) - 1 for row in range(len(parents))]


@given(forests)
def test_a_cache_is_opened_only_where_a_branch_begins(parents: list[int]) -> None:
    assert len(lay_out(parents).branches) == 1 + sum(parent != row - 1 for row, parent in enumerate(parents))


@given(st.integers(1, 40))
def test_a_chain_is_one_branch(num_rows: int) -> None:
    (branch,) = lay_out(range(-1, num_rows - 1)).branches
    assert branch.path == tuple(range(num_rows))


@pytest.mark.parametrize("parents", [[0], [-1, 1], [-1, -1], [-1, 0, 3, 0], [-1, -2]])
def test_a_row_before_its_parent_is_a_bug(parents: list[int]) -> None:
    with pytest.raises(ValueError, match="parent"):
        lay_out(parents)


def value_of(path: list[int]) -> float:
    """The key at the end of `path`: like real keys, it depends on all tokens before."""
    value = 1.0
    for token in path:
        value = (value * 31 + token) % 8191
    return value


def write(cache: KVCache, at: int, value: float) -> None:
    cache.keys[:, :, at], cache.values[:, :, at], cache.hidden[at] = value, -value, 2 * value


def agrees(cache: KVCache, tokens: list[int]) -> bool:
    """Whether the cache holds just what belongs to `tokens`."""
    wanted = torch.tensor([value_of(tokens[: at + 1]) for at in range(len(tokens))])
    held = cache.keys[-1, 0, : len(tokens), 0], -cache.values[0, -1, : len(tokens), -1]
    halved = cache.hidden[: len(tokens), 1] / 2
    return cache.tokens == tokens and all(torch.equal(found, wanted) for found in (*held, halved))


@given(st.lists(forests, min_size=1, max_size=6), st.integers(0, 2**32))
def test_the_kept_path_moves_to_the_trunk_and_further_branches_follow(
    passes: list[list[int]], seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - reproducible draws, no secrets
    branches, trunks, texts = BranchCaches(SHAPE), [KVCache(SHAPE), KVCache(SHAPE)], [[], []]
    for parents in passes:
        which = rng.randrange(2)  # two documents share the further branches
        trunk, text = trunks[which], texts[which]
        if trunk.num_cached + len(parents) > SHAPE.capacity:
            continue
        layout, tokens = lay_out(parents), [rng.randrange(50) for _ in parents]
        caches = branches.open(trunk, layout)
        for branch, cache in zip(layout.branches, caches, strict=True):
            assert agrees(cache, text)
            for depth, row in enumerate(branch.path):
                path = [tokens[at] for at in ancestors(parents, row)]
                write(cache, len(text) + depth, value_of(text + path))
        leaf = rng.randrange(len(parents))
        path = ancestors(parents, leaf)
        branches.keep(trunk, layout, path, [tokens[row] for row in path])
        text += [tokens[row] for row in path]
        assert agrees(trunk, text)
    assert branches.num_bytes == SHAPE.num_bytes * len(branches._branches)
