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
from completion_engine.drafting.draft import Draft, DraftToken
from completion_engine.drafting.policy import (
    Costly,
    Plan,
    SurvivalTable,
    choose,
    judge,
    min_survival_for,
    num_written,
)
from completion_engine.drafting.tree import Candidate, merge
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
    """What the passes of one arm came to. Before `num_costly` of them a costly drafter was asked."""

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
            _play(one, trace, traces)
    return found


def nothing(traces: Traces) -> Outcome:
    """Plain decoding in the narrowest pass."""
    count = sum(len(trace.tokens) for trace in traces.traces)
    return Outcome(count, count, ms=count * min(traces.costs.pass_ms.values()))


def either_or_oracle(traces: Traces, arms: Sequence[Arm]) -> Outcome:
    """The cheapest sequence of passes, each by one of `arms` or without a draft, the truth being known.

    What an arm would verify depends on what it has learnt: here, from its own replay of the traces before.
    """
    learners = [Replayed(arm) for arm in arms]
    total = Outcome()
    for trace in traces.traces:
        edges: list[list[tuple[int, float]]] = []
        for at, asked in enumerate(trace.asked):
            truth = trace.tokens[at:]
            plans = [_planned(one, asked, traces) for one in learners]
            here = [(num_written(plan, truth), _ms(plan)) for plan in plans]
            edges.append([(1, min(traces.costs.pass_ms.values())), *here])
        _add_shortest(total, edges)
        for one in learners:
            _play(one, trace, traces)
    return total


def one_tree_oracle(traces: Traces) -> Outcome:
    """The cheapest sequence of passes when each verifies just the true path among all that was drafted.

    A costly drafter has to run as deep as it alone knows that path.
    """
    total = Outcome()
    widest = max(traces.costs.pass_ms)
    for trace in traces.traces:
        edges: list[list[tuple[int, float]]] = []
        for at, asked in enumerate(trace.asked):
            here = [(1, _cheapest(traces.costs, 1))]
            step_ms = 0.0
            path = _true_path(merge(asked.drafts, lambda *_, **__: 1.0, widest - 1), trace.tokens[at:])
            for candidate in path:  # a shorter draft may end at a better place
                prices = [traces.step_ms.get(guess.source, 0.0) for guess in candidate.guesses]
                depth = candidate.depth + 1
                step_ms = max(step_ms, min(prices) * depth)
                here.append((depth + 1, _cheapest(traces.costs, depth + 1) + step_ms))
            edges.append(here)
        _add_shortest(total, edges)
    return total


def _play(one: Replayed, trace: Trace, traces: Traces) -> None:
    at = 0
    while at < len(trace.tokens):
        plan = _planned(one, trace.asked[at], traces)
        picked = _picked(plan, trace.tokens[at:])
        judge(plan, picked, one.table)
        at += len(picked)
        one.outcome.num_tokens += len(picked)
        one.outcome.num_passes += 1
        one.outcome.num_drafted += len(plan.rows)
        one.outcome.num_costly += plan.costly is not None
        one.outcome.ms += _ms(plan)


def _planned(one: Replayed, asked: Asked, traces: Traces) -> Plan:
    """The plan of an arm, as decoding makes it: costly drafters are asked where that is thought worth it."""
    drafts = one.arm.drafts_of(asked)
    costs = one.arm.costs_of(traces.costs)
    cheap = [draft for draft in drafts if draft[0].source not in traces.step_ms]
    plan = choose(cheap, one.table, 1, costs)
    for source, step_ms in traces.step_ms.items():
        told = [draft for draft in drafts if draft[0].source == source]
        bar = min_survival_for(plan, step_ms, one.table) if told else 1.0
        if bar < 1.0:
            cut, num_steps = _as_asked(told[0], bar)
            plan = choose([*cheap, cut], one.table, 1, costs, Costly(plan, num_steps * step_ms))
    return plan


def _as_asked(draft: Draft, min_survival: float) -> tuple[Draft, int]:
    """What a drafter would have told that stops where its likeliest path falls under `min_survival`.

    That, and the steps it takes: one for each depth.
    """
    survivals: list[float] = []
    depths: list[int] = []
    best: dict[int, float] = {-1: 1.0}  # the likeliest path that ends at a depth
    for guess in draft:
        above, depth = (survivals[guess.parent], depths[guess.parent] + 1) if guess.parent >= 0 else (1.0, 0)
        survivals.append(above * guess.share)
        depths.append(depth)
        best[depth] = max(best.get(depth, 0.0), survivals[-1])
    deepest = len(best) - 1
    num_steps = next((depth for depth in range(1, deepest) if best[depth - 1] < min_survival), deepest)
    place: dict[int, int] = {-1: -1}
    kept: list[DraftToken] = []
    for at, guess in enumerate(draft):
        if depths[at] < num_steps:
            place[at] = len(kept)
            kept.append(replace(guess, parent=place[guess.parent]))
    return tuple(kept), num_steps


def _ms(plan: Plan) -> float:
    return plan.ms + (plan.costly.ms if plan.costly else 0.0)


def _cheapest(costs: Costs, num_rows: int) -> float:
    return min(ms for width, ms in costs.pass_ms.items() if width >= num_rows)


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


def _true_path(candidates: Sequence[Candidate], truth: Sequence[int]) -> list[Candidate]:
    """The candidates that the target writes, in order; the last true token stays its own."""
    path: list[Candidate] = []
    last = -1
    for at, candidate in enumerate(candidates):
        is_next = candidate.parent == last and len(path) < len(truth) - 1
        if is_next and candidate.token == truth[len(path)]:
            path.append(candidate)
            last = at
    return path


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
