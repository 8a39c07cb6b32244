"""Drafts by match and their evidence; the size of a pass' draft, and what the policy learns."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.drafting.drafts import Draft, DraftScope, DraftToken
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.drafting.policy import (
    AcceptanceTable,
    CostlyDraftRecord,
    DraftPlan,
    choose,
    credited,
    learn_from_picks,
    min_probability_for,
    num_written,
)
from completion_engine.target_model.kv_cache import CacheShape, KVCache
from completion_engine.target_model.passes import Costs
from ngram_cache import NgramIndex

COSTS = Costs({8: 30.0, 16: 36.0}, branch_ms=1.0, max_branches=4)
CHAINS = Costs({8: 30.0, 16: 36.0})
CACHE = KVCache(CacheShape(1, 1, 2, 4, 8, torch.float32, torch.device("cpu")))


def chain(
    tokens: Sequence[int],
    share: float = 1.0,
    match_length: int = 12,
    origin: str = "index",
    source: str = "ngram",
) -> Draft:
    return tuple(
        DraftToken(token, source, origin, match_length + at, share, at - 1) for at, token in enumerate(tokens)
    )


def anything(token: int) -> bool:
    return token >= 0


def begun(prompt: Sequence[int], drafter: NgramDrafter | None = None) -> NgramDrafter:
    drafter = drafter or NgramDrafter()
    drafter.begin(prompt, CACHE)
    return drafter


def tokens_of(drafts: Sequence[Draft]) -> list[list[int]]:
    return [[guess.token for guess in draft] for draft in drafts]


def chance(table: AcceptanceTable, *guesses: DraftToken) -> float:
    """The probability of a token with all of `guesses` for it and no rival."""
    weight = table.weight(guesses, 0, is_first=True)
    return weight / (1.0 + weight)


def written_by(plan: DraftPlan, answer: Sequence[int]) -> dict[int, int]:
    """The target's picks after each true row of a plan when it is about to write `answer`."""
    picked, row = {-1: answer[0]}, -1
    for following, token in enumerate(answer, 1):
        under = zip(plan.rows, plan.parents, strict=True)
        row = next((at for at, (one, parent) in enumerate(under) if (one.token, parent) == (token, row)), -2)
        if row < 0 or following == len(answer):
            break
        picked[row] = answer[following]
    return picked


def test_the_repository_is_drafted_from_with_its_place() -> None:
    drafter = NgramDrafter()
    index = NgramIndex([("lib.py", [1, 2, 3, 4, 5, 6, 7])])
    drafter.enter(DraftScope("", "", index))
    (draft,) = begun([90, 91, 2, 3], drafter).drafts(3, anything, 0.0)
    assert [guess.token for guess in draft] == [4, 5, 6]
    assert [guess.parent for guess in draft] == [-1, 0, 1]
    assert [index.path_of(guess.document) for guess in draft] == ["lib.py"] * 3
    assert [guess.offset for guess in draft] == [3, 4, 5]


def test_each_guess_tells_the_evidence_for_itself() -> None:
    """After a match of four tokens 50 follows, after one of two 70 does, and both go on with 51."""
    text = [1, 2, 3, 4, 50, 51, 8, 9, 3, 4, 70, 51, 7, 6, 1, 2, 3, 4]
    (draft,) = begun(text).drafts(2, anything, 0.0)
    matches = {(guess.token, guess.parent >= 0): guess.match_length for guess in draft}
    share = {guess.token: guess.probability for guess in draft if guess.parent < 0}
    assert matches[50, False] == 4
    assert matches[70, False] == 2
    assert share[50] > share[70] > 0
    assert share[50] + share[70] < 1
    assert all(0 < guess.probability < 1 for guess in draft)


def test_the_prompt_itself_and_what_was_written_are_drafted_from() -> None:
    drafter = begun([1, 2, 3, 4, 9])
    drafter.extend([1, 2])
    assert [3, 4] in tokens_of(drafter.drafts(2, anything, 0.0))


def test_a_suggestion_shown_before_is_a_draft_for_the_next() -> None:
    drafter = begun([1, 2, 3])
    drafter.extend([50, 51, 52])
    drafter.end()
    assert [50, 51, 52] in tokens_of(begun([2, 3], drafter).drafts(3, anything, 0.0))


def test_different_continuations_are_branches_of_one_tree() -> None:
    (draft,) = begun([1, 2, 30, 31, 1, 2, 40, 41, 1, 2]).drafts(2, anything, 0.0)
    assert {(guess.token, guess.parent) for guess in draft if guess.parent < 0} == {(30, -1), (40, -1)}
    assert {(guess.token, draft[guess.parent].token) for guess in draft if guess.parent >= 0} == {
        (31, 30),
        (41, 40),
    }


def test_the_first_drafted_token_spells_what_was_taken_back() -> None:
    drafter = begun([1, 2, 30, 1, 2, 30, 1, 2, 40, 5, 1, 2])
    assert tokens_of(drafter.drafts(1, lambda token: token == 40, 0.0)) == [[40]]
    assert drafter.drafts(1, lambda token: token == 77, 0.0) == []


def test_a_sure_draft_fills_the_wide_pass() -> None:
    plan = choose([chain(range(20))], AcceptanceTable(), 1, COSTS)
    assert (len(plan.rows), plan.width) == (15, 16)
    assert plan.parents == tuple(range(-1, 14))


def test_rows_that_are_paid_for_anyway_are_used() -> None:
    """A poor draft costs nothing within the narrow pass, and is not worth the wide one."""
    plan = choose([chain(range(20), share=0.2, match_length=1)], AcceptanceTable(), 1, COSTS)
    assert (len(plan.rows), plan.width) == (7, 8)


def test_nothing_is_drafted_when_there_is_no_room() -> None:
    plan = choose([chain(range(5))], AcceptanceTable(), 16, COSTS)
    assert (plan.rows, plan.considered) == ((), ())


def test_without_drafts_the_narrow_pass_runs() -> None:
    plan = choose([], AcceptanceTable(), 1, COSTS)
    assert (plan.rows, plan.width, plan.ms, plan.num_expected) == ((), 8, 30.0, 1.0)


def test_sources_that_disagree_are_verified_side_by_side() -> None:
    drafts = [chain([1, 2, 3], origin="index"), chain([4, 5, 6], origin="prompt")]
    plan = choose(drafts, AcceptanceTable(), 1, COSTS)
    assert sorted(row.token for row in plan.rows) == [1, 2, 3, 4, 5, 6]
    assert plan.parents.count(-1) == 2


def test_where_trees_cannot_be_verified_the_best_chain_is() -> None:
    drafts = [chain([1, 2, 3], share=0.3), chain([4, 5, 6], share=0.9)]
    plan = choose(drafts, AcceptanceTable(), 1, CHAINS)
    assert [row.token for row in plan.rows] == [4, 5, 6]
    assert plan.parents == (-1, 0, 1)


@pytest.mark.parametrize(("branch_ms", "num_branches"), [(0.0, 2), (30.0, 1)])
def test_a_branch_that_costs_more_than_it_promises_is_not_opened(branch_ms: float, num_branches: int) -> None:
    drafts = [chain(range(3), share=0.9), chain(range(50, 53), share=0.5, match_length=4)]
    plan = choose(drafts, AcceptanceTable(), 1, Costs({8: 30.0}, branch_ms, max_branches=4))
    assert plan.parents.count(-1) == num_branches
    assert plan.ms == 30.0 + (num_branches - 1) * branch_ms


def test_sources_that_agree_are_believed_more_than_each_alone() -> None:
    table = AcceptanceTable()
    index, recent = chain([1], 0.5, 3), chain([1], 0.5, 3, origin="prompt")
    assert chance(table, *index, *recent) > max(chance(table, *index), chance(table, *recent))


def test_a_source_that_keeps_failing_is_believed_less() -> None:
    table = AcceptanceTable()
    good, bad = chain([1, 2], 0.8, 4), chain([3, 4], 0.8, 9, origin="prompt")
    assert choose([good, bad], table, 1, CHAINS).rows[0].token == 3
    for _ in range(80):
        plan = choose([good, bad], table, 1, CHAINS)
        learn_from_picks(plan, written_by(plan, [1, 2, 9]), table)
    assert choose([good, bad], table, 1, CHAINS).rows[0].token == 1


def test_a_token_that_several_guessed_counts_for_the_one_who_was_surest() -> None:
    drafts = [
        chain([5], share=0.05, match_length=1),
        chain([5], share=0.98, origin="distilled", source="neural"),
    ]
    for order in (drafts, drafts[::-1]):
        (row,) = choose(order, AcceptanceTable(), 1, COSTS).rows
        assert len(row.guesses) == 2
        assert credited(row, AcceptanceTable()).source == "neural"


def test_what_was_not_verified_is_judged_too() -> None:
    """The target's pick refutes a guess whether or not there was a row for it."""
    table = AcceptanceTable()
    sure, poor = chain([1, 2]), chain([3], 0.5, 2)
    before = chance(table, *poor)
    plan = choose([sure, poor], table, 1, CHAINS)
    assert 3 not in [row.token for row in plan.rows]
    learn_from_picks(plan, written_by(plan, [1, 2, 9]), table)
    assert chance(table, *poor) < before


def test_guesses_behind_a_wrong_token_say_nothing() -> None:
    table = AcceptanceTable()
    guesses = chain(range(3), match_length=1)
    before = [chance(table, guess) for guess in guesses]
    plan = choose([guesses], table, 1, COSTS)
    learn_from_picks(plan, written_by(plan, [9]), table)
    after = [chance(table, guess) for guess in guesses]
    assert after[0] < before[0]
    assert after[2] == before[2]


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1), st.booleans()), max_size=60))
def test_chances_stay_chances_whatever_happens(seen: list[tuple[int, float, bool]]) -> None:
    table = AcceptanceTable()
    for match_length, share, is_right in seen:
        guesses = chain([1], share, match_length)
        table.learn(guesses, chance(table, *guesses), is_right=is_right)
        assert 0.0 < chance(table, *guesses) < 1.0


def test_what_keeps_happening_is_expected_in_the_end() -> None:
    table = AcceptanceTable()
    guesses = chain([1], 0.5, 2)
    rng = random.Random(0)  # noqa: S311 - reproducible draws, no secrets
    for _ in range(1500):
        table.learn(guesses, chance(table, *guesses), is_right=rng.random() < 0.8)
    assert chance(table, *guesses) == pytest.approx(0.8, abs=0.1)


def asked(cheap: Draft, right: Sequence[int], num_passes: int, ms: float) -> AcceptanceTable:
    """The table after a costly drafter names `right`, which the target writes, beside a cheap draft."""
    table = AcceptanceTable()
    for _ in range(num_passes):
        without = choose([cheap], table, 1, COSTS)
        neural = chain(right, 0.9, 0, origin="model", source="neural")
        plan = choose([cheap, neural], table, 1, COSTS, CostlyDraftRecord(without, ms))
        learn_from_picks(plan, written_by(plan, [*right, 99]), table)
    return table


POOR = chain([7, 8], 0.2, 1)


def bar(table: AcceptanceTable, cheap: Draft, step_ms: float) -> float | None:
    return min_probability_for(choose([cheap], table, 1, COSTS), step_ms, table)


def test_a_costly_drafter_is_tried_where_little_is_expected() -> None:
    once, twice = (bar(AcceptanceTable(), POOR, step_ms) for step_ms in (1.0, 2.0))
    assert once is not None
    assert twice is not None
    assert 0.0 < once < 0.1
    row_ms = COSTS.row_ms(3)  # the last written row and the two that the cheap draft takes
    assert twice / once == pytest.approx((2.0 + row_ms) / (1.0 + row_ms))


def test_a_step_has_to_pay_for_a_row_of_the_pass_too() -> None:
    free = Costs({8: 30.0}, branch_ms=1.0, max_branches=4)
    plans = [choose([POOR], AcceptanceTable(), 1, costs) for costs in (free, COSTS)]
    without, with_price = (min_probability_for(plan, 1.0, AcceptanceTable()) for plan in plans)
    assert without is not None
    assert with_price is not None
    assert without < with_price


def test_a_step_that_costs_more_than_a_token_is_never_taken() -> None:
    assert bar(asked(POOR, [1, 2, 3], 20, 1.0), POOR, 40.0) is None


def test_a_costly_drafter_that_adds_tokens_goes_on_being_asked() -> None:
    assert bar(asked(POOR, [1, 2, 3], 40, 3.0), POOR, 1.0) is not None


def test_a_costly_drafter_that_adds_nothing_is_not_asked_but_tried_again_later() -> None:
    table = asked(POOR, [7, 8], 40, 6.0)  # it repeats what the cheap draft says
    plan = choose([POOR], table, 1, COSTS)
    assert min_probability_for(plan, 3.0, table) is None
    for _ in range(300):
        learn_from_picks(plan, {-1: 99}, table)
    assert min_probability_for(plan, 3.0, table) is not None


def test_what_is_learnt_beside_poor_drafts_says_nothing_about_good_ones() -> None:
    good = chain(range(20, 27))
    table = asked(POOR, [7, 8], 40, 6.0)
    assert bar(table, good, 0.5) == bar(AcceptanceTable(), good, 0.5)


@pytest.mark.parametrize(
    ("truth", "num_tokens"),
    [([7, 8, 9], 3), ([7, 8], 2), ([7, 5, 8], 2), ([9, 7], 1), ([], 0)],
)
def test_tokens_that_a_plan_would_have_yielded(truth: list[int], num_tokens: int) -> None:
    assert num_written(choose([POOR], AcceptanceTable(), 1, COSTS), truth) == num_tokens
