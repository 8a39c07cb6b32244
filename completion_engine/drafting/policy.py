"""The size of a draft, and its drafters: pure functions of acceptance probabilities and measured costs.

They maximise the expected tokens per millisecond of a pass, and draft nothing when that is best. An
`AcceptanceTable` learns from the passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from completion_engine.drafting.acceptance import AcceptanceTable
from completion_engine.drafting.drafts import Draft, DraftToken
from completion_engine.drafting.tree import (
    Candidate,
    by_branch,
    by_probability,
    grow,
    in_branch_order,
    merge,
    true_path,
)
from completion_engine.target_model.costs import Costs

__all__ = [
    "AcceptanceTable",
    "Costly",
    "DraftPlan",
    "choose",
    "credited",
    "learn_from_picks",
    "min_probability_for",
]

_NEVER = 1.0  # no path is likelier


@dataclass(frozen=True, slots=True)
class Costly:
    """A drafter whose steps cost time was asked: the plan without it, and its time."""

    without: DraftPlan
    ms: float


@dataclass(frozen=True, slots=True)
class DraftPlan:
    """The drafted rows of a pass in branch order, with the index of each one's parent in `rows`.

    `considered` holds all guesses: the target's picks show which of them are right. The pass of `width` rows
    takes `ms`, and `row_ms` more for each further one. `costly` is set if a costly drafter was asked.
    """

    rows: tuple[Candidate, ...]
    parents: tuple[int, ...]
    considered: tuple[Candidate, ...]
    width: int
    ms: float = 0.0
    row_ms: float = 0.0
    costly: Costly | None = None

    @property
    def num_expected(self) -> float:
        """Expected tokens of the pass."""
        return 1.0 + sum(row.path_probability for row in self.rows)


def choose(
    drafts: Sequence[Draft],
    table: AcceptanceTable,
    num_pending: int,
    costs: Costs,
    costly: Costly | None = None,
) -> DraftPlan:
    """Return the tree with the most expected tokens per millisecond; it may be empty.

    A pass of width w holds `num_pending` known rows and w - num_pending guessed ones. Rows up to the width
    are paid for whether they are used or not.
    """
    room = max(0, max(costs.pass_ms) - num_pending)
    considered = merge(drafts, table.odds, room)
    branches, order = by_branch(considered), by_probability(considered)
    best = _Choice(0.0, max(costs.pass_ms), max(costs.pass_ms.values()), [])
    for num_branches in range(1, 1 + min(max(1, costs.max_branches), 1 + max(branches, default=0))):
        kept = grow(order, branches, num_branches)
        for found in _widths(considered, kept, branches, num_pending, costs):
            best = found if found.rate > best.rate else best
    rows = in_branch_order(considered, best.chosen)
    place = {at: row for row, at in enumerate(rows)} | {-1: -1}
    return DraftPlan(
        tuple(considered[at] for at in rows),
        tuple(place[considered[at].parent] for at in rows),
        tuple(considered),
        best.width,
        best.ms,
        costs.row_ms(num_pending + len(rows)),
        costly,
    )


def min_probability_for(plan: DraftPlan, step_ms: float, table: AcceptanceTable) -> float:
    """Return the least path probability that a drafter with steps of `step_ms` follows; 1 not to ask it.

    `plan` is what would be verified without it. Asking is worth its time where such drafters, beside plans
    that promised as much, have added more tokens per millisecond than the plan itself promises; and a
    further step where the token that it adds is likely enough for that and for a row of the pass.
    """
    rate = plan.num_expected / max(plan.ms, 1e-9)
    tokens, ms = table.gain(plan.num_expected, step_ms)
    return min(_NEVER, rate * (step_ms + plan.row_ms)) if tokens > rate * ms else _NEVER


def learn_from_picks(plan: DraftPlan, picked: Mapping[int, int], table: AcceptanceTable) -> None:
    """Learn from a pass: `picked` holds the target's pick after each true row in order, -1 for before them.

    All guesses after a true row count, verified or not.
    """
    true_at = {-1: picked[-1]}
    rows = {id(candidate): row for row, candidate in enumerate(plan.rows)}
    for at, candidate in enumerate(plan.considered):
        pick = true_at.get(candidate.parent)
        if pick is None:
            continue
        is_right = candidate.token == pick
        table.learn(candidate.guesses, candidate.probability, is_right=is_right)
        row = rows.get(id(candidate))
        if is_right and row is not None and row in picked:
            true_at[at] = picked[row]
    _learn_from_costly(plan, list(picked.values()), table)


def _learn_from_costly(plan: DraftPlan, truth: Sequence[int], table: AcceptanceTable) -> None:
    """Learn what a costly drafter added to the tokens that the plan without it would have yielded."""
    asked = plan.costly
    if asked is None:
        table.forget_gain(plan.num_expected)
    else:
        num_added = len(truth) - num_written(asked.without, truth)
        table.learn_gain(asked.without.num_expected, num_added, asked.ms + plan.ms - asked.without.ms)


def credited(candidate: Candidate, table: AcceptanceTable) -> DraftToken:
    """Return the guess with the highest acceptance probability for a token; its source is credited."""
    return max(candidate.guesses, key=lambda guess: table.odds((guess,), candidate.depth, is_first=True))


def num_written(plan: DraftPlan, truth: Sequence[int]) -> int:
    """Return the tokens that verifying `plan` yields where the target writes `truth`."""
    return len(picked_along(plan, truth))


def picked_along(plan: DraftPlan, truth: Sequence[int]) -> dict[int, int]:
    """Return the picks where the target writes `truth`, by true row of `plan`; -1 for before them."""
    ahead = iter(truth)
    tokens = [candidate.token for candidate in plan.rows]
    path = true_path(tokens, plan.parents, -1, lambda _: next(ahead, None))
    return dict(zip((-1, *path), truth, strict=False))  # tokens after the last true row may be unknown


@dataclass(frozen=True, slots=True)
class _Choice:
    """Candidates to verify in one pass, and their expected tokens per millisecond."""

    rate: float
    width: int
    ms: float
    chosen: list[int]


def _widths(
    considered: Sequence[Candidate], kept: list[int], branches: Sequence[int], num_pending: int, costs: Costs
) -> Iterator[_Choice]:
    """Yield for each width the likeliest of `kept` that fit."""
    expected = list(accumulate((considered[at].path_probability for at in kept), initial=1.0))
    for width, pass_ms in costs.pass_ms.items():
        room = width - num_pending
        if room >= 0:
            count = min(room, len(kept))
            num_branches = len({branches[at] for at in kept[:count]})
            ms = pass_ms + max(0, num_branches - 1) * costs.branch_ms
            yield _Choice(expected[count] / ms, width, ms, kept[:count])
