"""Replays traces offline: the cost of ways of drafting.

A way of drafting (an arm) is the policy itself, restricted to some sources, shapes and widths, learning as it
goes. A replay follows the true tokens: the accepted tokens of an arm's pass decide where its next pass
begins. Pure: uses no model and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field, replace

from completion_engine.drafting.drafts import Draft, DraftToken
from completion_engine.drafting.policy import (
    AcceptanceTable,
    CostlyDraftRecord,
    DraftPlan,
    choose,
    learn_from_picks,
    min_probability_for,
    picked_along,
)
from completion_engine.target_model.passes import Costs
from tests.benchmarks.drafting.trace import Trace, TracedDrafts, Traces

ALL = "all sources"
NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Arm:
    """A way of drafting: from the sources of `origin`, all or none, as a tree or a chain, at some widths."""

    origin: str
    is_tree: bool
    widths: tuple[int, ...]

    @property
    def name(self) -> str:
        """What tables call it."""
        shape = "tree" if self.is_tree else "chain"
        return NOTHING if self.origin == NOTHING else f"{self.origin}, {shape}"

    def drafts_of(self, asked: TracedDrafts) -> list[Draft]:
        """The drafts that this arm looks at."""
        return [draft for draft in asked.drafts if draft and self.origin in {ALL, draft[0].read_from}]

    def costs_of(self, costs: Costs) -> Costs:
        """The passes that this arm may choose from."""
        pass_ms = {width: costs.pass_ms[width] for width in self.widths}
        return replace(costs, pass_ms=pass_ms, max_branches=costs.max_branches if self.is_tree else 1)


@dataclass(slots=True)
class ReplayOutcome:
    """The results of one arm's passes. Before `num_costly` of them a costly drafter was asked."""

    num_tokens: int = 0
    num_passes: int = 0
    num_drafted: int = 0
    num_costly: int = 0
    ms: float = 0.0

    @property
    def tokens_per_pass(self) -> float:
        """Tokens that a pass yields on average."""
        return self.num_tokens / max(1, self.num_passes)

    @property
    def ms_per_token(self) -> float:
        """Expected milliseconds of a token."""
        return self.ms / max(1, self.num_tokens)


@dataclass(slots=True)
class Replayed:
    """An arm with what it has learnt so far, and what each trace came to."""

    arm: Arm
    table: AcceptanceTable = field(default_factory=AcceptanceTable)
    outcomes: list[ReplayOutcome] = field(default_factory=list)

    @property
    def outcome(self) -> ReplayOutcome:
        """All traces together."""
        return total(self.outcomes)


def total(outcomes: Iterable[ReplayOutcome]) -> ReplayOutcome:
    """Several outcomes as one."""
    columns = zip(*map(astuple, outcomes), strict=True)
    return ReplayOutcome(*map(sum, columns))


def arms_of(traces: Traces) -> list[Arm]:
    """Every source alone and all together, as trees and as chains, at each width and at any."""
    widths = tuple(sorted(traces.costs.pass_ms))
    origins = sorted(
        {draft[0].read_from for t in traces.traces for at in t.asked for draft in at.drafts if draft}
    )
    shapes = (False, True) if traces.costs.max_branches > 1 else (False,)
    choices = [widths, *((width,) for width in widths)] if len(widths) > 1 else [widths]
    return [Arm(o, is_tree, w) for o in (*origins, ALL) for is_tree in shapes for w in choices]


def replay(traces: Traces, arms: Iterable[Arm]) -> list[Replayed]:
    """Every arm over all traces in turn."""
    found = [Replayed(arm) for arm in arms]
    for trace in traces.traces:
        for one in found:
            play(one, trace, traces)
    return found


def play(one: Replayed, trace: Trace, traces: Traces) -> None:
    """One more trace for an arm: it learns from what the target wrote there."""
    at, came_to = 0, ReplayOutcome()
    while at < len(trace.tokens):
        plan = planned(one, trace.asked[at], traces)
        picked = picked_along(plan, trace.tokens[at:])
        learn_from_picks(plan, picked, one.table)
        at += len(picked)
        came_to.num_tokens += len(picked)
        came_to.num_passes += 1
        came_to.num_drafted += len(plan.rows)
        came_to.num_costly += plan.costly is not None
        came_to.ms += ms_of(plan)
    one.outcomes.append(came_to)


def planned(one: Replayed, asked: TracedDrafts, traces: Traces) -> DraftPlan:
    """The plan of an arm, as decoding makes it: costly drafters are asked where that is thought worth it."""
    drafts = one.arm.drafts_of(asked)
    costs = one.arm.costs_of(traces.costs)
    cheap = [draft for draft in drafts if draft[0].source not in traces.step_ms]
    plan = choose(cheap, one.table, 1, costs)
    for source, step_ms in traces.step_ms.items():
        own = [draft for draft in drafts if draft[0].source == source]
        bar = min_probability_for(plan, step_ms, one.table) if own else None
        if bar is not None:
            cut, num_steps = _as_asked(own[0], bar)
            plan = choose([*cheap, cut], one.table, 1, costs, CostlyDraftRecord(plan, num_steps * step_ms))
    return plan


def _as_asked(draft: Draft, min_probability: float) -> tuple[Draft, int]:
    """The draft of a drafter that stops when its likeliest path falls below `min_probability`.

    Returns it with its number of steps: one for each depth.
    """
    survivals: list[float] = []
    depths: list[int] = []
    best: dict[int, float] = {-1: 1.0}  # the likeliest path that ends at a depth
    for guess in draft:
        above, depth = (survivals[guess.parent], depths[guess.parent] + 1) if guess.parent >= 0 else (1.0, 0)
        survivals.append(above * guess.probability)
        depths.append(depth)
        best[depth] = max(best.get(depth, 0.0), survivals[-1])
    deepest = len(best) - 1
    num_steps = next((depth for depth in range(1, deepest) if best[depth - 1] < min_probability), deepest)
    place: dict[int, int] = {-1: -1}
    kept: list[DraftToken] = []
    for at, guess in enumerate(draft):
        if depths[at] < num_steps:
            place[at] = len(kept)
            kept.append(replace(guess, parent=place[guess.parent]))
    return tuple(kept), num_steps


def ms_of(plan: DraftPlan) -> float:
    """Milliseconds of a pass and of the costly draft before it."""
    return plan.ms + (plan.costly.ms if plan.costly else 0.0)
