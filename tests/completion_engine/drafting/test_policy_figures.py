"""The figures of a plan, to the digit: fixed probabilities make its promise and its learning countable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from completion_engine.drafting.drafts import Draft, DraftToken
from completion_engine.drafting.policy import (
    CostlyDraftRecord,
    DraftPlan,
    choose,
    credited,
    learn_from_picks,
    min_probability_for,
    picked_along,
)
from completion_engine.drafting.tree import Candidate
from completion_engine.target_model.passes import Costs


@dataclass
class Even:
    """Gives every token even probabilities, and records its observations."""

    seen: tuple[float, float] = (0.0, 0.0)
    learnt: list[tuple[int, float, bool]] = field(default_factory=list)
    gains: list[tuple[float, ...]] = field(default_factory=list)
    asked: list[tuple[int, int, bool]] = field(default_factory=list)

    def weight(self, guesses: Sequence[DraftToken], depth: int, *, is_first: bool) -> float:
        self.asked.append((guesses[0].token, depth, is_first))
        return guesses[0].probability

    def learn(self, guesses: Sequence[DraftToken], chance: float, *, is_right: bool) -> None:
        self.learnt.append((guesses[0].token, round(chance, 6), is_right))

    def gain(self, num_expected: float, step_ms: float) -> tuple[float, float]:
        self.gains.append((num_expected, step_ms))
        return self.seen

    def learn_gain(self, num_expected: float, tokens: float, ms: float) -> None:
        self.gains.append((num_expected, tokens, ms))

    def forget_gain(self, num_expected: float) -> None:
        self.gains.append((num_expected,))


def chain(*tokens: int, odds: float = 1.0) -> Draft:
    return tuple(
        DraftToken(token, "ngram", "index", 9, odds, parent) for parent, token in enumerate(tokens, start=-1)
    )


def plan_of(drafts: Sequence[Draft], costs: Costs, num_pending: int = 1, **options: Any) -> DraftPlan:
    table: Any = Even()
    return choose(drafts, table, num_pending, costs, **options)


def tokens_of(plan: DraftPlan) -> list[int]:
    return [row.token for row in plan.rows]


@pytest.mark.parametrize(
    ("wide_ms", "num_rows", "width"),
    [
        # A half, a quarter, an eighth: 1.875 tokens in three rows, 1.9921875 in seven.
        pytest.param(10.62, 7, 8, id="four rows for their worth"),
        pytest.param(10.63, 3, 4, id="four rows for a little more"),
    ],
)
def test_the_width_with_most_tokens_per_millisecond_is_taken(
    wide_ms: float, num_rows: int, width: int
) -> None:
    costs = Costs({4: 10.0, 8: wide_ms})
    plan = plan_of([chain(*range(1, 20))], costs)
    assert (len(plan.rows), plan.width, plan.ms) == (num_rows, width, costs.pass_ms[width])
    assert plan.num_expected == 1.0 + sum(0.5**row for row in range(1, num_rows + 1))
    assert plan.row_ms == costs.row_ms(1 + num_rows)
    assert [one.token for one in plan.considered] == list(range(1, 8))


@pytest.mark.parametrize(
    ("branch_ms", "max_branches", "tokens"),
    [
        # Each beginning has a third, what follows half of that: 1.5 tokens in one branch, 2 in both.
        pytest.param(3.3, 2, [1, 2, 3, 4], id="a branch for its worth"),
        pytest.param(3.4, 2, [1, 2], id="a branch for a little more"),
        pytest.param(0.0, 1, [1, 2], id="one branch only"),
        pytest.param(0.0, 0, [1, 2], id="never less than one"),
        pytest.param(0.0, 9, [1, 2, 3, 4], id="more than there are"),
    ],
)
def test_a_branch_is_opened_for_what_it_promises(
    branch_ms: float, max_branches: int, tokens: list[int]
) -> None:
    plan = plan_of([chain(1, 2), chain(3, 4)], Costs({8: 10.0}, branch_ms, max_branches))
    assert tokens_of(plan) == tokens
    assert plan.ms == 10.0 + branch_ms * (len(tokens) // 2 - 1)
    assert plan.parents == (-1, 0, -1, 2)[: len(tokens)]


def test_a_third_branch_costs_twice_what_a_second_one_does() -> None:
    plan = plan_of([chain(1), chain(2), chain(3)], Costs({8: 10.0}, 0.5, 3))
    assert (tokens_of(plan), plan.ms) == ([1, 2, 3], 11.0)


def test_of_two_plans_that_promise_the_same_the_smaller_is_taken() -> None:
    plan = plan_of([], Costs({4: 10.0, 8: 10.0}))
    assert (plan.width, plan.ms, plan.rows) == (4, 10.0, ())


@pytest.mark.parametrize(
    ("num_pending", "wide_ms", "width", "num_rows"),
    [(3, 90.0, 4, 1), (3, 9.0, 8, 5), (4, 9.0, 8, 4), (4, 90.0, 4, 0), (8, 9.0, 8, 0), (9, 9.0, 8, 0)],
)
def test_known_rows_take_their_room_first(
    num_pending: int, wide_ms: float, width: int, num_rows: int
) -> None:
    costs = Costs({2: 1.0, 4: 6.0, 8: wide_ms})
    plan = plan_of([chain(*range(20), odds=99.0)], costs, num_pending)
    assert (plan.width, plan.ms, len(plan.rows)) == (width, costs.pass_ms[width], num_rows)
    assert plan.row_ms == costs.row_ms(num_pending + num_rows)


@pytest.mark.parametrize(
    ("step_ms", "seen", "is_asked"),
    [
        pytest.param(0.1, (1.0, 0.33), True, id="asked where more is added"),
        pytest.param(0.1, (1.0, 0.34), False, id="not where less is"),
        pytest.param(0.1, (1.5, 0.5), False, id="not where as much is"),
        pytest.param(9.0, (1.0, 0.1), False, id="a step that costs more than a token"),
    ],
)
def test_the_bar_for_a_costly_drafter(step_ms: float, seen: tuple[float, float], is_asked: bool) -> None:
    """The plan promises 1.5 tokens in half a millisecond, three a millisecond."""
    half = DraftToken(1, "ngram", "index", 9, 1.0)
    row = Candidate(1, -1, 0, (half,), 0.5, 0.5)
    plan = DraftPlan((row,), (-1,), (row,), 8, ms=0.5, row_ms=0.01)
    table: Any = Even(seen)
    bar = min_probability_for(plan, step_ms, table)
    assert bar == pytest.approx(3.0 * (step_ms + 0.01)) if is_asked else bar is None
    assert table.gains == [(1.5, step_ms)]


def test_a_plan_whose_pass_is_not_measured_asks_nobody() -> None:
    table: Any = Even((1.0, 1.0))
    assert min_probability_for(DraftPlan((), (), (), 8), 0.5, table) is None


TWO = [chain(1, 2, 3), chain(4, 5)]


@pytest.mark.parametrize(
    ("picked", "learnt"),
    [
        pytest.param(
            {-1: 1, 0: 2, 1: 9},
            [(1, 1 / 3, True), (2, 0.5, True), (3, 0.5, False), (4, 1 / 3, False)],
            id="a true path and what lies beside it",
        ),
        pytest.param({-1: 4}, [(1, 1 / 3, False), (4, 1 / 3, True)], id="one that was not verified"),
        pytest.param({-1: 9}, [(1, 1 / 3, False), (4, 1 / 3, False)], id="none"),
        pytest.param({-1: 1}, [(1, 1 / 3, True), (4, 1 / 3, False)], id="what follows is unknown"),
    ],
)
def test_what_stands_behind_what_is_true_is_judged(
    picked: dict[int, int], learnt: list[tuple[int, float, bool]]
) -> None:
    plan = plan_of(TWO, Costs({4: 10.0}))
    assert tokens_of(plan) == [1, 2, 3]
    table: Any = Even()
    learn_from_picks(plan, picked, table)
    assert sorted(table.learnt) == [(token, round(chance, 6), right) for token, chance, right in learnt]
    assert table.gains == [(plan.num_expected,)]


def test_a_costly_drafter_is_charged_with_its_time_and_what_the_pass_took_more() -> None:
    without = plan_of([chain(1, 7)], Costs({4: 8.0}))
    plan = plan_of(TWO, Costs({4: 10.0}), costly=CostlyDraftRecord(without, 3.0))
    table: Any = Even()
    learn_from_picks(plan, {-1: 1, 0: 2, 1: 3, 2: 9}, table)
    assert table.gains == [(1.75, 2, 5.0)]


def test_credit_goes_by_the_odds_of_each_guess_alone_as_a_first_choice_there() -> None:
    weak, strong = (DraftToken(5, source, "index", 1, odds) for source, odds in (("a", 0.1), ("b", 0.2)))
    table: Any = Even()
    assert credited(Candidate(5, 3, 4, (weak, strong), 0.5, 0.5), table) is strong
    assert table.asked == [(5, 4, True), (5, 4, True)]


@pytest.mark.parametrize(
    ("truth", "picked"),
    [([1, 2, 3], {-1: 1, 0: 2, 1: 3}), ([1, 9], {-1: 1, 0: 9}), ([9, 1], {-1: 9}), ([], {})],
)
def test_what_is_picked_after_each_true_row(truth: list[int], picked: dict[int, int]) -> None:
    assert picked_along(plan_of([chain(1, 2)], Costs({4: 10.0})), truth) == picked
