"""`bench drafting`: acceptance of each source, cost of ways of drafting, regret of the policy.

Turns traces into one JSON object and the rows of tables. Uses no model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from completion_engine.drafting.drafts import Draft
from tests.benchmarks.drafting.hindsight import (
    best_arm,
    best_arm_of_each_prompt,
    either_or_oracle,
    nothing,
    one_tree_oracle,
)
from tests.benchmarks.drafting.replay import ALL, Arm, Replayed, ReplayOutcome, arms_of, replay
from tests.benchmarks.drafting.trace import Traces

ACCEPTANCE_COLUMNS = ("source", "by", "bucket", "guesses", "right")
ARM_COLUMNS = ("way of drafting", "width", "tokens/pass", "drafted/pass", "costly asked", "ms/token")
_LENGTHS = ("0", "1", "2", "3", "4-5", "6-8", "9-12", "13-20", "21+")
_UPPER = (0, 1, 2, 3, 5, 8, 12, 20)
_SHARES = 5


def measure_drafting(traces: Traces) -> dict[str, Any]:
    """All figures as one JSON object."""
    arms = arms_of(traces)
    done = [nothing(traces), *replay(traces, arms)]
    policy = _policy_of(done, traces)
    others = [one for one in done if one is not policy]
    oracles = _in_hindsight(traces, others, arms)
    return {
        "bench": "drafting",
        "target": traces.target,
        "device": traces.device,
        "num_prompts": len(traces.traces),
        "num_tokens": sum(len(trace.tokens) for trace in traces.traces),
        "pass_ms": {str(width): round(ms, 2) for width, ms in traces.costs.pass_ms.items()},
        "branch_ms": round(traces.costs.branch_ms, 3),
        "step_ms": {source: round(ms, 3) for source, ms in traces.step_ms.items()},
        "acceptance": acceptance(traces),
        "policy": policy.arm.name,
        "best_arm": _title(best_arm(others).arm),
        "arms": [_arm_dict(one) for one in done],
        "oracles": [_as_dict(name, (), outcome) for name, outcome in oracles.items()],
        "policy_ms_per_token": round(policy.outcome.ms_per_token, 3),
        "regret": {
            name: round(policy.outcome.ms_per_token / max(1e-9, outcome.ms_per_token) - 1, 4)
            for name, outcome in oracles.items()
        },
    }


def acceptance(traces: Traces) -> list[dict[str, Any]]:
    """For each source: guesses whose parents were all true, and how many were true themselves.

    By match length, by share (fifths) and by depth, over all positions, whether or not a pass began there.
    """
    counts: dict[tuple[str, str, str], list[int]] = {}
    for trace in traces.traces:
        for at, asked in enumerate(trace.asked):
            for draft in asked.drafts:
                for key, is_right in _judged(draft, trace.tokens[at:]):
                    count = counts.setdefault(key, [0, 0])
                    count[0] += 1
                    count[1] += is_right
    return [
        {"source": source, "by": by, "bucket": bucket, "num_guesses": tried, "right": round(right / tried, 3)}
        for (source, by, bucket), (tried, right) in sorted(counts.items(), key=lambda found: _order(found[0]))
    ]


def acceptance_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """The acceptance figures as rows of `ACCEPTANCE_COLUMNS`."""
    names = ("source", "by", "bucket", "num_guesses", "right")
    return [[str(row[name]) for name in names] for row in found["acceptance"]]


def arm_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """Arms and oracles as rows of `ARM_COLUMNS`."""
    return [
        [
            row["name"],
            "/".join(map(str, row["widths"])),
            f"{row['tokens_per_pass']:.2f}",
            f"{row['drafted_per_pass']:.1f}" if row["drafted_per_pass"] else "",
            f"{row['costly_asked']:.0%}" if row["costly_asked"] else "",
            f"{row['ms_per_token']:.2f}",
        ]
        for row in (*found["arms"], *found["oracles"])
    ]


def _policy_of(done: Sequence[Replayed], traces: Traces) -> Replayed:
    widths = tuple(sorted(traces.costs.pass_ms))
    whole = Arm(ALL, traces.costs.max_branches > 1, widths)
    return next(one for one in done if one.arm == whole)


def _title(arm: Arm) -> str:
    return f"{arm.name}, width {'/'.join(map(str, arm.widths))}"


def _in_hindsight(
    traces: Traces, others: Sequence[Replayed], arms: Sequence[Arm]
) -> dict[str, ReplayOutcome]:
    """Results with hindsight, by name, the smallest first; `others` is every way but the policy itself."""
    single = [arm for arm in arms if arm.origin != ALL]
    return {
        "best arm over all prompts": best_arm(others).outcome,
        "best arm of each prompt": best_arm_of_each_prompt(others),
        "either/or oracle: best single source of each pass": either_or_oracle(traces, single),
        "either/or oracle: best arm of each pass": either_or_oracle(traces, arms),
        "one-tree oracle: the true path of each pass": one_tree_oracle(traces),
    }


def _judged(draft: Draft, truth: Sequence[int]) -> Iterator[tuple[tuple[str, str, str], bool]]:
    """Every guess of a draft whose parents are true, under each of its buckets."""
    depths: list[int] = []
    true: set[int] = {-1}
    for at, guess in enumerate(draft):
        depth = depths[guess.parent] + 1 if guess.parent >= 0 else 0
        depths.append(depth)
        if guess.parent not in true or depth >= len(truth):
            continue
        is_right = guess.token == truth[depth]
        if is_right:
            true.add(at)
        share = min(_SHARES - 1, int(guess.probability * _SHARES))
        yield (guess.read_from, "match length", _bucket(guess.match_length)), is_right
        yield (guess.read_from, "share", f"{share / _SHARES:.1f}-{(share + 1) / _SHARES:.1f}"), is_right
        yield (guess.read_from, "depth", _bucket(depth)), is_right


def _bucket(number: int) -> str:
    return _LENGTHS[next((at for at, upper in enumerate(_UPPER) if number <= upper), len(_UPPER))]


def _order(key: tuple[str, str, str]) -> tuple[str, str, float]:
    source, by, bucket = key
    return source, by, float(bucket.replace("+", "-").split("-")[0])


def _arm_dict(one: Replayed) -> dict[str, Any]:
    return _as_dict(one.arm.name, one.arm.widths, one.outcome)


def _as_dict(name: str, widths: Sequence[int], outcome: ReplayOutcome) -> dict[str, Any]:
    return {
        "name": name,
        "widths": list(widths),
        "tokens_per_pass": round(outcome.tokens_per_pass, 3),
        "costly_asked": round(outcome.num_costly / max(1, outcome.num_passes), 3),
        "drafted_per_pass": round(outcome.num_drafted / max(1, outcome.num_passes), 2),
        "ms_per_token": round(outcome.ms_per_token, 3),
    }
