"""Replays traces offline: what ways of drafting would have cost, and what hindsight would have chosen.

Pure.
A way of drafting (an arm) is the policy itself, restricted to some sources, shapes and widths, learning as it
goes. A replay follows the true tokens: what an arm's pass accepts decides where its next pass stands.
Pure: knows no model and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from completion_engine.costs import Costs
from completion_engine.drafting.draft import Draft
from completion_engine.drafting.policy import Plan, SurvivalTable, choose, judge
from completion_engine.drafting.tree import merge
from lsp_server.bench.drafting_trace import Asked, Trace, Traces

ALL = "all sources"


@dataclass(frozen=True, slots=True)
class Arm:
    """A way of drafting: from the sources of `origin` (or all), as a tree or a chain, at some widths."""

    origin: str
    is_tree: bool
    widths: tuple[int, ...]

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.origin}, {'tree' if self.is_tree else 'chain'}"

    def drafts_of(self, asked: Asked) -> list[Draft]:
        """The drafts that this arm looks at."""
        return [draft for draft in asked.drafts if draft and self.origin in {ALL, draft[0].origin}]

    def costs_of(self, costs: Costs) -> Costs:
        """The passes that this arm may choose from."""
        pass_ms = {width: costs.pass_ms[width] for width in self.widths}
        return replace(costs, pass_ms=pass_ms, max_lanes=costs.max_lanes if self.is_tree else 1)


@dataclass(slots=True)
class Outcome:
    """What the passes of one arm came to."""

    num_tokens: int = 0
    num_passes: int = 0
    num_drafted: int = 0
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
    """An arm with what it has learnt and done so far."""

    arm: Arm
    table: SurvivalTable = field(default_factory=SurvivalTable)
    outcome: Outcome = field(default_factory=Outcome)


def arms_of(traces: Traces) -> list[Arm]:
    """Every source alone and all together, as trees and as chains, at each width and at any."""
    widths = tuple(sorted(traces.costs.pass_ms))
    origins = sorted(
        {draft[0].origin for t in traces.traces for at in t.asked for draft in at.drafts if draft}
    )
    shapes = (False, True) if traces.costs.max_lanes > 1 else (False,)
    choices = [widths, *((width,) for width in widths)] if len(widths) > 1 else [widths]
    return [Arm(o, is_tree, w) for o in (*origins, ALL) for is_tree in shapes for w in choices]


def replay(traces: Traces, arms: Iterable[Arm]) -> list[Replayed]:
    """Every arm over all traces in turn."""
    found = [Replayed(arm) for arm in arms]
    for trace in traces.traces:
        for one in found:
            _play(one, trace, one.arm.costs_of(traces.costs))
    return found


def nothing(traces: Traces) -> Outcome:
    """Plain decoding in the narrowest pass."""
    count = sum(len(trace.tokens) for trace in traces.traces)
    return Outcome(count, count, 0, count * min(traces.costs.pass_ms.values()))


def either_or_oracle(traces: Traces, arms: Sequence[Arm]) -> Outcome:
    """The cheapest sequence of passes, each by one of `arms` or without a draft, the truth being known.

    What an arm would verify depends on what it has learnt: here, from its own replay of the traces before.
    """
    learners = [Replayed(arm) for arm in arms]
    total = Outcome()
    for trace in traces.traces:
        edges: list[list[tuple[int, float]]] = []
        for at in range(len(trace.tokens)):
            here = [(1, min(traces.costs.pass_ms.values()))]
            for one in learners:
                costs = one.arm.costs_of(traces.costs)
                plan = choose(one.arm.drafts_of(trace.asked[at]), one.table, 1, costs)
                here.append((len(_picked(plan, trace.tokens[at:])), pass_ms(plan, costs)))
            edges.append(here)
        _add_shortest(total, edges)
        for one in learners:
            _play(one, trace, one.arm.costs_of(traces.costs))
    return total


def one_tree_oracle(traces: Traces) -> Outcome:
    """The cheapest sequence of passes when each verifies just the true path among all that was drafted."""
    total = Outcome()
    widest = max(traces.costs.pass_ms)
    for trace in traces.traces:
        edges: list[list[tuple[int, float]]] = []
        for at, asked in enumerate(trace.asked):
            plan = Plan((), (), tuple(merge(asked.drafts, lambda *_, **__: 1.0, widest - 1)), widest)
            longest = _true_depth(plan, trace.tokens[at:])
            lengths = range(min(longest, widest - 1) + 1)  # a shorter draft may end at a better place
            edges.append([(length + 1, _cheapest(traces.costs, length + 1)) for length in lengths])
        _add_shortest(total, edges)
    return total


def _cheapest(costs: Costs, num_rows: int) -> float:
    return min(ms for width, ms in costs.pass_ms.items() if width >= num_rows)


def pass_ms(plan: Plan, costs: Costs) -> float:
    """What verifying a plan costs."""
    num_leaves = len(plan.rows) - len(set(plan.parents) - {-1})
    return costs.pass_ms[plan.width] + max(0, num_leaves - 1) * costs.lane_ms


def _play(one: Replayed, trace: Trace, costs: Costs) -> None:
    at = 0
    while at < len(trace.tokens):
        plan = choose(one.arm.drafts_of(trace.asked[at]), one.table, 1, costs)
        picked = _picked(plan, trace.tokens[at:])
        judge(plan, picked, one.table)
        at += len(picked)
        one.outcome.num_tokens += len(picked)
        one.outcome.num_passes += 1
        one.outcome.num_drafted += len(plan.rows)
        one.outcome.ms += pass_ms(plan, costs)


def _picked(plan: Plan, truth: Sequence[int]) -> dict[int, int]:
    """The target's pick after each true row, -1 before them: as many as the pass yields tokens."""
    child_of = {
        (parent, row.token): at for at, (row, parent) in enumerate(zip(plan.rows, plan.parents, strict=True))
    }
    picked: dict[int, int] = {}
    at: int | None = -1
    for token in truth:
        if at is None:
            break
        picked[at] = token
        at = child_of.get((at, token))
    return picked


def _true_depth(plan: Plan, truth: Sequence[int]) -> int:
    """Tokens of the longest true path among all that was considered; the last one stays the target's."""
    true, depth = {-1}, 0
    for at, candidate in enumerate(plan.considered):
        is_within = candidate.parent in true and candidate.depth < len(truth) - 1
        if is_within and candidate.token == truth[candidate.depth]:
            true.add(at)
            depth = max(depth, candidate.depth + 1)
    return depth


def _add_shortest(total: Outcome, edges: Sequence[Sequence[tuple[int, float]]]) -> None:
    """Add the cheapest way through a trace; `edges[at]`: tokens and milliseconds of passes from there."""
    best: list[tuple[float, int]] = [(0.0, 0)]  # milliseconds and passes from a position to the end
    for here in reversed(edges):
        left = len(best)
        options = [(ms + best[-min(n, left)][0], 1 + best[-min(n, left)][1]) for n, ms in here]
        best.append(min(options))
    total.ms += best[-1][0]
    total.num_passes += best[-1][1]
    total.num_tokens += len(edges)
