"""From runs to figures: spreads, ratios per prompt, equal texts; and the rows of the table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tests.benchmarks.peers.runs import Run

Spell = Callable[[Sequence[int]], str]

COLUMNS = (
    "peer",
    "ms/token (quartiles)",
    "tokens/pass",
    "x plain (quartiles), p1",
    "x greedy (quartiles), p1",
    "text as greedy",
    "text as plain",
)


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over prompts: median, quartiles, first percentile (the lower of two neighbours)."""

    median: float
    low: float
    high: float
    p1: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """None where there are no values."""
        if not values:
            return None
        low, middle, high = np.percentile(values, (25, 50, 75))
        first = np.percentile(values, 1, method="lower")
        return cls(*(round(float(value), 3) for value in (middle, low, high, first)))


def ratios(runs: Sequence[Run], baseline: Sequence[Run]) -> list[float]:
    """Speed per token relative to the baseline, prompt by prompt.

    A prompt that either of them ended in its first pass is left out, because it has no decoding.
    """
    pairs = ((run.ms_per_token, base.ms_per_token) for run, base in zip(runs, baseline, strict=True))
    return [other / own for own, other in pairs if own and other]


def num_same(runs: Sequence[Run], baseline: Sequence[Run], spell: Spell) -> int:
    """Prompts on which both wrote the same text."""
    pairs = zip(runs, baseline, strict=True)
    return sum(spell(run.tokens) == spell(base.tokens) for run, base in pairs)


def summarise(
    runs: Mapping[str, Sequence[Run]], plain: str, greedy: str, spell: Spell
) -> list[dict[str, Any]]:
    """One JSON object per peer. `plain` and `greedy` name the two peers the others are compared with.

    Comparisons with a missing peer are None.
    """
    baselines = {"plain": runs.get(plain), "greedy": runs.get(greedy)}
    return [_row(name, own, baselines, spell) for name, own in runs.items()]


def _row(
    name: str, runs: Sequence[Run], baselines: Mapping[str, Sequence[Run] | None], spell: Spell
) -> dict[str, Any]:
    decoded, passes = sum(run.num_decoded for run in runs), sum(run.num_passes for run in runs)
    row: dict[str, Any] = {
        "name": name,
        "num_tokens": sum(len(run.tokens) for run in runs),
        "num_decoded": decoded,
        "num_passes": passes,
        "ms_per_token": _plain(Spread.of([run.ms_per_token for run in runs if run.num_decoded])),
        "ms_per_token_overall": round(sum(run.decode_ms for run in runs) / max(1, decoded), 3),
        "tokens_per_pass": round(decoded / max(1, passes), 3),
        "first_ms": _plain(Spread.of([run.first_ms for run in runs])),
    }
    for key, baseline in baselines.items():
        row[f"over_{key}"] = _plain(Spread.of(ratios(runs, baseline))) if baseline else None
        row[f"same_as_{key}"] = num_same(runs, baseline, spell) if baseline else None
    return row


def _plain(spread: Spread | None) -> dict[str, float] | None:
    return asdict(spread) if spread else None


def table_rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The cells under `COLUMNS`, one row per peer."""
    return [_cells(row, found["num_prompts"]) for row in found["peers"]]


def absent_lines(found: Mapping[str, Any]) -> list[str]:
    """One line per peer that could not run, with its reason."""
    return [f"{absent['name']}: not measured, {absent['reason']}" for absent in found["absent"]]


def _cells(row: Mapping[str, Any], num_prompts: int) -> tuple[str, ...]:
    return (
        row["name"],
        _middle(row["ms_per_token"], 1),
        f"{row['tokens_per_pass']:.2f}",
        _ratio(row["over_plain"]),
        _ratio(row["over_greedy"]),
        *(_of(row[f"same_as_{key}"], num_prompts) for key in ("greedy", "plain")),
    )


def _of(count: int | None, total: int) -> str:
    return "-" if count is None else f"{count} of {total}"


def _middle(spread: Mapping[str, float] | None, digits: int) -> str:
    if spread is None:
        return "-"
    return f"{spread['median']:.{digits}f} ({spread['low']:.{digits}f} - {spread['high']:.{digits}f})"


def _ratio(spread: Mapping[str, float] | None) -> str:
    return f"{_middle(spread, 2)}, {spread['p1']:.2f}" if spread else "-"
