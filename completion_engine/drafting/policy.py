"""Chooses the draft to verify, and whether to ask a costly drafter, by expected tokens per millisecond.

`choose` and `min_probability_for` use acceptance probabilities and measured times. `learn_from_picks` updates
the `AcceptanceTable` after a pass.

Four kinds of index occur:

| name | indexes | value for the last written token |
| --- | --- | --- |
| `Candidate.parent` | `DraftPlan.considered` | -1 |
| `DraftPlan.parents`, keys of `picked` | `DraftPlan.rows` | -1 |
| a row of `Verified` (`planner.py`) | row 0 is the last written token, row r + 1 is `DraftPlan.rows[r]` | 0 |
| `DraftToken.parent` | the drafter's own draft | -1 |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from completion_engine.drafting.acceptance import AcceptanceTable
from completion_engine.drafting.drafts import Draft, DraftToken
from completion_engine.drafting.tree import (
    Candidate,
    accepted_path,
    by_branch,
    by_probability,
    depth_first,
    merge,
    within_branches,
)
from completion_engine.target_model.passes import Costs

__all__ = [
    "AcceptanceTable",
    "CostlyDraftRecord",
    "DraftPlan",
    "choose",
    "credited",
    "learn_from_picks",
    "min_probability_for",
]


@dataclass(frozen=True, slots=True)
class CostlyDraftRecord:
    """A record that a costly drafter (`step_ms` > 0) drafted: the plan without its draft, and its time."""

    without: DraftPlan
    ms: float


@dataclass(frozen=True, slots=True)
class DraftPlan:
    """The drafted rows of a pass in depth-first order, and `parents`, the index of each row's parent in
    `rows`.

    `considered` holds all candidates, verified or not, for `learn_from_picks`. The pass has `width` rows in
    all and takes `ms`; each further row would take `row_ms` more. `costly` is set if a costly drafter
    drafted.
    """

    rows: tuple[Candidate, ...]
    parents: tuple[int, ...]
    considered: tuple[Candidate, ...]
    width: int
    ms: float = 0.0
    row_ms: float = 0.0
    costly: CostlyDraftRecord | None = None

    @property
    def num_expected(self) -> float:
        """Expected number of tokens that the pass writes, the target's own one included."""
        return 1.0 + sum(row.path_probability for row in self.rows)


def choose(
    drafts: Sequence[Draft],
    table: AcceptanceTable,
    num_pending: int,
    costs: Costs,
    costly: CostlyDraftRecord | None = None,
) -> DraftPlan:
    """Return the tree with the most expected tokens per millisecond; it may be empty.

    A pass of width w holds `num_pending` rows of written tokens that are not cached yet, and up to
    w - num_pending drafted rows. Its time is that of w rows, even if fewer are used.
    """
    room = max(0, max(costs.pass_ms) - num_pending)
    considered = merge(drafts, table.weight, room)
    branches, order = by_branch(considered), by_probability(considered)
    best = _Choice(0.0, max(costs.pass_ms), max(costs.pass_ms.values()), [])
    for num_branches in range(1, 1 + min(max(1, costs.max_branches), 1 + max(branches, default=0))):
        kept = within_branches(order, branches, num_branches)
        for found in _widths(considered, kept, branches, num_pending, costs):
            best = found if found.rate > best.rate else best
    rows = depth_first(considered, best.chosen)
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


def min_probability_for(plan: DraftPlan, step_ms: float, table: AcceptanceTable) -> float | None:
    """Return the path probability down to which a costly drafter should draft; None if it should not draft.

    `plan` is what would be verified without it, and `rate` below are its expected tokens per millisecond.
    Drafting pays if, beside plans with about as many expected tokens, it has added more tokens per
    millisecond than `rate`. One more step pays if its token is accepted with at least the probability `rate`
    times the milliseconds of the step and of a row.
    """
    rate = plan.num_expected / max(plan.ms, 1e-9)
    tokens, ms = table.gain(plan.num_expected, step_ms)
    least = rate * (step_ms + plan.row_ms)
    return least if tokens > rate * ms and least < 1 else None


def learn_from_picks(plan: DraftPlan, picked: Mapping[int, int], table: AcceptanceTable) -> None:
    """Learn from a pass: `picked` maps each accepted row of `plan.rows`, in order, to the target's pick after
    it.

    Key -1 holds the pick after the last written token. The table learns from every candidate whose parent was
    accepted, whether the candidate was verified or not.
    """
    pick_after = {-1: picked[-1]}  # by index in `considered`
    rows = {id(candidate): row for row, candidate in enumerate(plan.rows)}
    for at, candidate in enumerate(plan.considered):
        pick = pick_after.get(candidate.parent)
        if pick is None:
            continue
        is_right = candidate.token == pick
        table.learn(candidate.guesses, candidate.probability, is_right=is_right)
        row = rows.get(id(candidate))
        if is_right and row is not None and row in picked:
            pick_after[at] = picked[row]
    if (asked := plan.costly) is None:
        table.forget_gain(plan.num_expected)
    else:  # the pass wrote this many tokens more than without the costly drafter
        num_added = len(picked) - num_written(asked.without, list(picked.values()))
        table.learn_gain(asked.without.num_expected, num_added, asked.ms + plan.ms - asked.without.ms)


def credited(candidate: Candidate, table: AcceptanceTable) -> DraftToken:
    """Return the guess to credit for a candidate: the one with the highest weight by itself."""
    return max(candidate.guesses, key=lambda guess: table.weight((guess,), candidate.depth, is_first=True))


def num_written(plan: DraftPlan, truth: Sequence[int]) -> int:
    """Return how many tokens a pass that verifies `plan` writes if the target's next tokens are `truth`."""
    return len(picked_along(plan, truth))


def picked_along(plan: DraftPlan, truth: Sequence[int]) -> dict[int, int]:
    """Return the picks after the accepted rows of `plan.rows` if the target's next tokens are `truth`.

    Keys are rows in order; -1 is the last written token.
    """
    ahead = iter(truth)
    tokens = [candidate.token for candidate in plan.rows]
    path = accepted_path(tokens, plan.parents, -1, lambda _: next(ahead, None))
    return dict(zip((-1, *path), truth, strict=False))  # `truth` may end before the last accepted row


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
    """Yield for each width the likeliest of `kept` that fit in a pass of that width."""
    expected = list(accumulate((considered[at].path_probability for at in kept), initial=1.0))
    for width, pass_ms in costs.pass_ms.items():
        room = width - num_pending
        if room >= 0:
            count = min(room, len(kept))
            num_branches = len({branches[at] for at in kept[:count]})
            ms = pass_ms + max(0, num_branches - 1) * costs.branch_ms
            yield _Choice(expected[count] / ms, width, ms, kept[:count])
