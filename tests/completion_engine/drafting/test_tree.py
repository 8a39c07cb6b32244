"""One tree out of many drafts: merged where they agree, grown by promise, in an order that branches run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.drafting.drafts import Draft, DraftToken
from completion_engine.drafting.tree import (
    Candidate,
    by_branch,
    by_probability,
    depth_first,
    merge,
    within_branches,
)
from completion_engine.target_model.decoder import lay_out


@st.composite
def drafts(draw: st.DrawFn) -> list[Draft]:
    """A few small trees over a tiny vocabulary, so that they often agree."""
    found = []
    for _ in range(draw(st.integers(0, 4))):
        tree: list[DraftToken] = []
        for at in range(draw(st.integers(0, 12))):
            share = draw(st.floats(0.0, 1.0))
            parent = draw(st.integers(-1, at - 1))
            tree.append(DraftToken(draw(st.integers(0, 3)), "ngram", "index", at, share, parent))
        found.append(tuple(tree))
    return found


def shares(guesses: Sequence[DraftToken], depth: int, *, is_first: bool) -> float:
    return max(guess.probability for guess in guesses)


def grown(candidates: Sequence[Candidate], max_nodes: int, max_branches: int) -> list[int]:
    """The policy's choice for this number of branches, up to a width."""
    return within_branches(by_probability(candidates), by_branch(candidates), max_branches)[:max_nodes]


def path_of(candidates: Sequence[Candidate], at: int) -> tuple[int, ...]:
    return (*path_of(candidates, candidates[at].parent), candidates[at].token) if at >= 0 else ()


def guess_path(draft: Draft, at: int) -> tuple[int, ...]:
    return (*guess_path(draft, draft[at].parent), draft[at].token) if at >= 0 else ()


@given(drafts(), st.integers(0, 6))
def test_merging_keeps_every_path_once_with_all_that_was_said_for_it(
    found: list[Draft], max_depth: int
) -> None:
    candidates = merge(found, shares, max_depth)
    paths = [path_of(candidates, at) for at in range(len(candidates))]
    wanted: dict[tuple[int, ...], list[DraftToken]] = {}
    for draft in found:
        for at, guess in enumerate(draft):
            path = guess_path(draft, at)
            if len(path) <= max_depth:
                wanted.setdefault(path, []).append(guess)
    assert dict(zip(paths, [list(one.guesses) for one in candidates], strict=True)) == wanted
    assert [one.depth for one in candidates] == [len(path) - 1 for path in paths]
    assert all(one.parent < at for at, one in enumerate(candidates))


@given(drafts())
def test_siblings_share_what_others_leave_and_survival_falls_along_a_path(found: list[Draft]) -> None:
    """Probabilities of siblings keep their proportions; one part is left for other tokens."""
    candidates = merge(found, shares, 8)
    for parent in {one.parent for one in candidates}:
        siblings = [one for one in candidates if one.parent == parent]
        left = 1.0 - sum(one.probability for one in siblings)
        assert left > 0.0
        for one in siblings:
            assert one.probability / left == pytest.approx(max(guess.probability for guess in one.guesses))
    for one in candidates:
        above = candidates[one.parent].path_probability if one.parent >= 0 else 1.0
        assert one.path_probability == pytest.approx(above * one.probability)
        assert one.path_probability <= above


def test_the_first_choice_of_a_source_is_told_from_its_others() -> None:
    told: dict[int, bool] = {}

    def listen(guesses: Sequence[DraftToken], depth: int, *, is_first: bool) -> float:
        told[guesses[0].token] = is_first
        return 1.0

    guess = DraftToken(0, "ngram", "index", 3, 0.5)
    merge(
        [
            (replace(guess, token=1), replace(guess, token=2), replace(guess, token=3, parent=0)),
            (replace(guess, token=4), replace(guess, token=2), replace(guess, token=5, parent=1)),
        ],
        listen,
        8,
    )
    assert told == {1: True, 2: False, 3: True, 4: True, 5: True}


@given(drafts(), st.integers(0, 24), st.integers(1, 4))
def test_any_beginning_of_what_is_grown_is_a_tree_within_its_branches(
    found: list[Draft], max_nodes: int, max_branches: int
) -> None:
    candidates = merge(found, shares, 8)
    chosen = grown(candidates, max_nodes, max_branches)
    assert len(set(chosen)) == len(chosen) <= max_nodes
    for num_rows in range(len(chosen) + 1):
        begun = chosen[:num_rows]
        assert {candidates[at].parent for at in begun} <= {-1, *begun}
        assert num_leaves(candidates, begun) <= max_branches
    survivals = [candidates[at].path_probability for at in chosen]
    assert survivals == sorted(survivals, reverse=True)


@given(drafts(), st.integers(1, 4))
def test_no_other_branches_promise_more_than_those_that_are_grown(
    found: list[Draft], max_branches: int
) -> None:
    """Against all sets of as many leaves, by brute force."""
    candidates = merge(found, shares, 8)[:9]
    chosen = grown(candidates, len(candidates), max_branches)
    promised = sum(candidates[at].path_probability for at in chosen)
    leaves = set(range(len(candidates))) - {one.parent for one in candidates}
    for some in combinations(sorted(leaves), min(max_branches, len(leaves))):
        covered = set().union(*(ancestors(candidates, leaf) for leaf in some))
        assert sum(candidates[at].path_probability for at in covered) <= promised + 1e-9


@given(drafts(), st.integers(1, 4))
def test_with_room_and_branches_for_all_nothing_is_left_out(found: list[Draft], max_branches: int) -> None:
    candidates = merge(found, shares, 8)
    chosen = grown(candidates, len(candidates), len(candidates) + max_branches)
    assert sorted(chosen) == list(range(len(candidates)))


@given(drafts(), st.integers(0, 24), st.integers(1, 4))
def test_rows_stand_behind_their_parents_and_each_leaf_ends_a_branch(
    found: list[Draft], max_nodes: int, max_branches: int
) -> None:
    candidates = merge(found, shares, 8)
    chosen = grown(candidates, max_nodes, max_branches)
    rows = depth_first(candidates, chosen)
    assert sorted(rows) == sorted(chosen)
    place = {at: row for row, at in enumerate(rows, 1)} | {-1: 0}
    parents = [-1, *(place[candidates[at].parent] for at in rows)]
    assert all(parent < row for row, parent in enumerate(parents))
    layout = lay_out(parents)
    assert list(layout.depths) == [0, *(candidates[at].depth + 1 for at in rows)]
    assert len(layout.branches) == max(1, num_leaves(candidates, rows))
    if rows:
        assert rows[0] == chosen[0]  # the likeliest child runs on in the trunk


def ancestors(candidates: Sequence[Candidate], at: int) -> set[int]:
    return {at, *ancestors(candidates, candidates[at].parent)} if at >= 0 else set()


def num_leaves(candidates: Sequence[Candidate], rows: Sequence[int]) -> int:
    inner = {candidates[at].parent for at in rows}
    return sum(at not in inner for at in rows)
