"""The best choices in hindsight: the best way of drafting in all, by prompt or by pass, and the best tree.

Pure: uses no model and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from completion_engine.drafting.policy import num_written
from completion_engine.drafting.tree import Candidate, merge
from tests.benchmarks.drafting.replay import (
    NOTHING,
    Arm,
    Replayed,
    ReplayOutcome,
    ms_of,
    planned,
    play,
    total,
)
from tests.benchmarks.drafting.trace import Traces


def nothing(traces: Traces) -> Replayed:
    """Plain decoding in the narrowest pass."""
    width = min(traces.costs.pass_ms)
    lengths = (len(trace.tokens) for trace in traces.traces)
    outcomes = [ReplayOutcome(count, count, ms=count * traces.costs.pass_ms[width]) for count in lengths]
    return Replayed(Arm(NOTHING, is_tree=False, widths=(width,)), outcomes=outcomes)


def best_arm(done: Iterable[Replayed]) -> Replayed:
    """The way of drafting that was fastest over all prompts: the usual baseline of regret."""
    return min(done, key=lambda one: one.outcome.ms)


def best_arm_of_each_prompt(done: Iterable[Replayed]) -> ReplayOutcome:
    """The way of drafting that was fastest on each prompt, having learnt on the prompts before it."""
    by_trace = zip(*(one.outcomes for one in done), strict=True)
    return total(min(outcomes, key=lambda outcome: outcome.ms) for outcomes in by_trace)


def either_or_oracle(traces: Traces, arms: Sequence[Arm]) -> ReplayOutcome:
    """The cheapest sequence of passes, each by one of `arms` or without a draft, given the true text.

    The choices of an arm depend on its learning, here from its own replay of the earlier traces.
    """
    learners = [Replayed(arm) for arm in arms]
    found = ReplayOutcome()
    for trace in traces.traces:
        edges: list[list[tuple[int, float]]] = []
        for at, asked in enumerate(trace.asked):
            truth = trace.tokens[at:]
            plans = [planned(one, asked, traces) for one in learners]
            here = [(num_written(plan, truth), ms_of(plan)) for plan in plans]
            edges.append([(1, min(traces.costs.pass_ms.values())), *here])
        _add_shortest(found, edges)
        for one in learners:
            play(one, trace, traces)
    return found


def one_tree_oracle(traces: Traces) -> ReplayOutcome:
    """The cheapest sequence of passes when each verifies just the true path among all that was drafted.

    A costly drafter has to run as deep as it alone knows that path.
    """
    found = ReplayOutcome()
    widest = max(traces.costs.pass_ms)
    for trace in traces.traces:
        edges: list[list[tuple[int, float]]] = []
        for at, asked in enumerate(trace.asked):
            here = [(1, traces.costs.ms_of(1))]
            step_ms = 0.0
            path = _true_path(merge(asked.drafts, lambda *_, **__: 1.0, widest - 1), trace.tokens[at:])
            for candidate in path:  # a shorter draft may end at a better place
                prices = [traces.step_ms.get(guess.source, 0.0) for guess in candidate.guesses]
                depth = candidate.depth + 1
                step_ms = max(step_ms, min(prices) * depth)
                here.append((depth + 1, traces.costs.ms_of(depth + 1) + step_ms))
            edges.append(here)
        _add_shortest(found, edges)
    return found


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


def _add_shortest(found: ReplayOutcome, edges: Sequence[Sequence[tuple[int, float]]]) -> None:
    """Add the cheapest way through a trace; `edges[at]`: tokens and milliseconds of passes from there."""
    best: list[tuple[float, int]] = [(0.0, 0)]  # milliseconds and passes from a position to the end
    for here in reversed(edges):
        left = len(best)
        options = [(ms + best[-min(n, left)][0], 1 + best[-min(n, left)][1]) for n, ms in here]
        best.append(min(options))
    found.ms += best[-1][0]
    found.num_passes += best[-1][1]
    found.num_tokens += len(edges)
