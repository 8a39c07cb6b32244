"""Verification walks a tree along the target's picks: the longest true path, and nothing beside it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.drafting.tree import verify

NUM_TOKENS = 3


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Tokens, parents and picks of a drafted tree whose siblings differ."""
    rng = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311 - reproducible draws, no secrets
    tokens, parents = [0], [-1]
    for _ in range(draw(st.integers(0, 20))):
        parent, token = rng.randrange(len(tokens)), rng.randrange(NUM_TOKENS)
        if (parent, token) not in zip(parents, tokens, strict=True):
            parents.append(parent)
            tokens.append(token)
    return tokens, parents, [rng.randrange(NUM_TOKENS) for _ in tokens]


def true_paths(tokens: list[int], parents: list[int], picked: list[int]) -> list[tuple[int, ...]]:
    """Every path from row 0 on which each token is the pick of the row above it, by trying all rows."""
    found = []
    for leaf in range(len(tokens)):
        path, row = [], leaf
        while row:
            path.insert(0, row)
            row = parents[row]
        if all(tokens[row] == picked[parents[row]] for row in path):
            found.append(tuple(path))
    return found


@given(trees())
def test_the_longest_true_path_is_accepted(
    tree: tuple[list[int], list[int], list[int]],
) -> None:
    tokens, parents, picked = tree
    assert tuple(verify(tokens, parents, picked)) == max(true_paths(tokens, parents, picked), key=len)


@given(st.lists(st.integers(0, 2), max_size=8), st.lists(st.integers(0, 2), max_size=9))
def test_of_a_chain_the_common_beginning_is_accepted(drafted: list[int], picks: list[int]) -> None:
    picked = (picks + [0] * 9)[: len(drafted) + 1]
    accepted = verify([7, *drafted], range(-1, len(drafted)), picked)
    count = len(accepted)
    assert accepted == [*range(1, count + 1)]
    assert drafted[:count] == picked[:count]
    assert count == len(drafted) or drafted[count] != picked[count]


@pytest.mark.parametrize(("num_parents", "num_picks"), [(2, 3), (3, 2)])
def test_a_row_without_parent_or_pick_is_a_bug_not_a_guess(num_parents: int, num_picks: int) -> None:
    with pytest.raises(ValueError, match="picks"):
        verify([1, 2, 3], [-1, 0, 1][:num_parents], [1, 2, 3][:num_picks])
