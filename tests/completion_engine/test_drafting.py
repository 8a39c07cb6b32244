"""Drafts, their evidence, and how much of them a pass is given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.drafting.draft import Draft, DraftToken
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.drafting.policy import SurvivalTable, choose
from completion_engine.verification import verify
from ngram_cache import NgramIndex

COSTS = {8: 30.0, 16: 36.0}


def chain(length: int, share: float = 1.0, match_length: int = 12, origin: str = "index") -> Draft:
    return tuple(DraftToken(at, "ngram", origin, match_length, share) for at in range(length))


def anything(token: int) -> bool:
    return token >= 0


def tokens_of(drafts: list[Draft]) -> list[list[int]]:
    return [[guess.token for guess in draft] for draft in drafts]


@given(st.lists(st.integers(0, 2), max_size=8), st.lists(st.integers(0, 2), max_size=9))
def test_what_is_accepted_is_the_common_beginning(drafted: list[int], picks: list[int]) -> None:
    picked = (picks + [0] * 9)[: len(drafted) + 1]
    verdict = verify(drafted, picked)
    assert list(verdict.written) == picked[: verdict.num_accepted + 1]
    assert drafted[: verdict.num_accepted] == picked[: verdict.num_accepted]
    if verdict.num_accepted < len(drafted):
        assert drafted[verdict.num_accepted] != picked[verdict.num_accepted]


def test_a_pick_is_missing_is_a_bug_not_a_guess() -> None:
    with pytest.raises(ValueError, match="picks"):
        verify([1, 2], [1, 2])


def test_the_repository_is_drafted_from_with_its_place() -> None:
    drafter = NgramDrafter()
    drafter.index = NgramIndex([("lib.py", [1, 2, 3, 4, 5, 6, 7])])
    drafter.begin([90, 91, 2, 3])
    (draft,) = drafter.drafts(3, anything)
    assert [guess.token for guess in draft] == [4, 5, 6]
    assert [drafter.index.path_of(guess.document) for guess in draft] == ["lib.py"] * 3
    assert [guess.offset for guess in draft] == [3, 4, 5]


def test_the_prompt_itself_and_what_was_written_are_drafted_from() -> None:
    drafter = NgramDrafter()
    drafter.begin([1, 2, 3, 4, 9])
    drafter.extend([1, 2])
    assert [3, 4] in tokens_of(drafter.drafts(2, anything))


def test_a_suggestion_shown_before_is_a_draft_for_the_next() -> None:
    drafter = NgramDrafter()
    drafter.begin([1, 2, 3])
    drafter.extend([50, 51, 52])
    drafter.end()
    drafter.begin([2, 3])
    assert [50, 51, 52] in tokens_of(drafter.drafts(3, anything))


def test_the_first_drafted_token_spells_what_was_taken_back() -> None:
    drafter = NgramDrafter()
    drafter.begin([1, 2, 30, 1, 2, 30, 1, 2, 40, 5, 1, 2])
    assert tokens_of(drafter.drafts(1, lambda token: token == 40)) == [[40]]
    assert drafter.drafts(1, lambda token: token == 77) == []


def test_a_sure_draft_fills_the_wide_pass() -> None:
    assert len(choose([chain(20)], SurvivalTable(), 1, COSTS)) == 15


def test_rows_that_are_paid_for_anyway_are_used() -> None:
    """A poor draft costs nothing within the narrow pass, and is not worth the wide one."""
    assert len(choose([chain(20, share=0.2, match_length=1)], SurvivalTable(), 1, COSTS)) == 7


def test_nothing_is_drafted_when_there_is_no_room() -> None:
    assert choose([chain(5)], SurvivalTable(), 16, COSTS) == ()


def test_a_source_that_keeps_failing_is_believed_less() -> None:
    table = SurvivalTable()
    good, bad = chain(4, origin="prompt", match_length=4), chain(4, origin="index", match_length=9)
    assert choose([good, bad], table, 1, COSTS)[0].origin == "index"
    for _ in range(40):
        table.observe(bad, 0)
        table.observe(good, 4)
    assert choose([good, bad], table, 1, COSTS)[0].origin == "prompt"


def test_only_tested_tokens_are_learnt_from() -> None:
    table = SurvivalTable()
    kinds = tuple(DraftToken(at, "ngram", "index", at, 1.0) for at in (3, 4, 5))
    before = table.estimate(kinds[2])
    table.observe(kinds, 0)
    assert table.estimate(kinds[0]) < 0.6
    assert table.estimate(kinds[2]) == before
