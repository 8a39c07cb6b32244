"""Drafts from trajectories of guesses that ran in idle rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from completion_engine.decoding.ending import Finish
from completion_engine.decoding.loop import Decoding
from completion_engine.drafting import lookahead
from completion_engine.drafting.drafts import Draft, Pass
from completion_engine.drafting.lookahead import LookaheadDrafter
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

Write = Callable[..., tuple[Decoding, Finish]]


class Watched(LookaheadDrafter):
    """Remembers each pass, and the known tokens after its rows right after it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Pass, list[list[tuple[int, ...]]]]] = []

    def observe(self, done: Pass) -> None:
        super().observe(done)
        self.seen.append((done, [list(self._table.get((token,)) or []) for token in done.tokens]))


def anything(token: int) -> bool:
    return token >= 0


@pytest.fixture
def cache(target: LanguageModel) -> KVCache:
    return KVCache(target.cache_shape)


@pytest.fixture
def drafter(cache: KVCache) -> LookaheadDrafter:
    drafter = LookaheadDrafter()
    drafter.begin([1, 2, 3], cache)
    return drafter


def see(
    drafter: LookaheadDrafter,
    tokens: Sequence[int],
    picked: Sequence[int],
    path: Sequence[int] = (0,),
    parents: Sequence[int] | None = None,
) -> None:
    """One pass, a chain unless `parents` say else, and what the target picked after each row."""
    chain = list(range(-1, len(tokens) - 1))
    drafter.observe(Pass(tokens, parents or chain, torch.empty(len(tokens), 0), picked, path))


def paths_of(drafts: list[Draft]) -> dict[tuple[int, ...], float]:
    """All paths of the only tree, with the share of their last tokens."""
    if not drafts:
        return {}
    (tree,) = drafts
    paths: list[tuple[int, ...]] = []
    for guess in tree:
        assert -1 <= guess.parent < len(paths)
        paths.append((*(paths[guess.parent] if guess.parent >= 0 else ()), guess.token))
    assert len(set(paths)) == len(paths)
    return {path: guess.probability for path, guess in zip(paths, tree, strict=True)}


def test_the_end_of_the_prompt_is_lent_first(drafter: LookaheadDrafter) -> None:
    assert drafter.spare_rows(2) == [1, 2]
    assert drafter.spare_rows(5) == [1, 2, 3]
    assert drafter.spare_rows(0) == []
    assert drafter.drafts(8, anything, 0.0) == []


def test_picks_behind_lent_rows_are_lent_next(drafter: LookaheadDrafter) -> None:
    lent = drafter.spare_rows(3)
    see(drafter, [3, *lent], [4, 50, 60, 70])
    drafter.extend([4])
    assert drafter.spare_rows(3) == [50, 60, 70]
    see(drafter, [4, 50, 60, 70], [50, 61, 71, 81])
    drafter.extend([50])
    assert drafter.spare_rows(2) == [61, 71]


def test_guesses_start_where_the_text_now_ends(drafter: LookaheadDrafter) -> None:
    lent = drafter.spare_rows(2)
    see(drafter, [3, 4, 5, *lent], [4, 6, 51, 61, 71], path=(0, 1))
    drafter.extend([4, 6])
    assert drafter.spare_rows(3) == [51, 61, 71]


def test_grams_grow_along_the_trajectory_and_are_drafted(drafter: LookaheadDrafter) -> None:
    see(drafter, [3, *drafter.spare_rows(2)], [9, 50, 60])
    drafter.extend([9])
    see(drafter, [9, *drafter.spare_rows(2)], [8, 61, 72])
    drafter.extend([8])
    see(drafter, [8, *drafter.spare_rows(2)], [7, 73, 80])
    drafter.extend([7, 50])
    assert set(paths_of(drafter.drafts(8, anything, 0.0))) == {(61,), (61, 73)}
    guess = drafter.drafts(8, anything, 0.0)[0][0]
    assert (guess.source, guess.read_from, guess.match_length) == ("recycled", "lookahead", 1)
    drafter.extend([61])
    (tree,) = drafter.drafts(8, anything, 0.0)
    assert [(guess.token, guess.match_length) for guess in tree] == [(73, 2)]


def test_rejected_rows_of_a_draft_give_grams_too(drafter: LookaheadDrafter) -> None:
    see(drafter, [3, 20, 30, 21], [9, 40, 50, 60], parents=[-1, 0, 0, 1])
    drafter.extend([9, 20])
    assert set(paths_of(drafter.drafts(8, anything, 0.0))) == {(40,), (21,), (21, 60)}


def test_shares_count_the_grams_that_go_on_alike(drafter: LookaheadDrafter) -> None:
    for tail in ([5, 6], [5, 7], [8, 9]):
        see(drafter, [3, tail[0]], [tail[0], tail[1]], path=(0, 1))
    shares = paths_of(drafter.drafts(8, anything, 0.0))
    assert shares[5,] == pytest.approx(2 / 3)
    assert shares[5, 6] == shares[5, 7] == pytest.approx(1 / 2)
    assert set(paths_of(drafter.drafts(1, anything, 0.0))) == {(5,), (8,)}
    assert set(paths_of(drafter.drafts(8, lambda token: token == 8, 0.0))) == {(8,), (8, 9)}


def test_the_pool_serves_the_next_completion_and_is_bounded(
    drafter: LookaheadDrafter, cache: KVCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookahead, "_MAX_KEYS", 6)
    for token in range(10, 30):
        drafter.begin([token], cache)
        see(drafter, [token], [token + 1])
        drafter.end()
    for token in range(10, 30):
        drafter.begin([token], cache)
        assert bool(drafter.drafts(4, anything, 0.0)) == (token >= 24)


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6)),
        max_size=12,
    )
)
def test_whatever_passes_bring_it_lends_and_drafts_within_bounds(
    target: LanguageModel, passes: list[tuple[int, list[tuple[int, int]]]]
) -> None:
    drafter = LookaheadDrafter()
    drafter.begin([1, 2], KVCache(target.cache_shape))
    for num_idle, rows in passes:
        lent = drafter.spare_rows(num_idle)
        assert len(lent) <= num_idle
        tokens = [2, *(token for token, _ in rows), *lent]
        see(drafter, tokens, [*(pick for _, pick in rows), 1, *lent])
        drafter.extend([rows[0][1] if rows else 1])
        depths = [len(path) for path in paths_of(drafter.drafts(3, anything, 0.0))]
        assert all(depth <= 3 for depth in depths)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(9, 900), min_size=1, max_size=60))
def test_the_same_text_in_fewer_passes(write: Write, prompt: list[int]) -> None:
    plain, _ = write(prompt)
    drafter = LookaheadDrafter()
    first, _ = write(prompt, [drafter])
    again, _ = write(prompt, [drafter])
    assert first.tokens[: len(plain.tokens)] == again.tokens[: len(plain.tokens)] == plain.tokens
    if plain.stats.num_forwards > 1:  # else the target ends at once
        assert again.stats.num_forwards < plain.stats.num_forwards


def test_rows_of_a_draft_that_fills_its_pass_are_not_taken_for_lent_ones(
    write: Write, scripted: Callable[..., object], free_targets: dict[str, LanguageModel]
) -> None:
    """Every other pass is filled by a draft, so that none of its rows is idle."""
    prompt, drafter = list(range(20, 60)), Watched()

    def script(path: list[int]) -> list[tuple[int, int]]:
        return [(900 - at, at - 1) for at in range(40)] if len(path) % 2 else []

    write(prompt, [scripted(script), drafter], by=free_targets["modules"])
    full = [(done, known) for done, known in drafter.seen if 899 in done.tokens]
    assert full
    # some rows were spare rows
    assert any(899 not in done.tokens and len(done.tokens) > 1 for done, _ in drafter.seen)
    for done, known in full:
        for row in range(1, len(done.tokens)):
            assert any(gram[0] == done.picked[row] for gram in known[row])
