"""From runs to the figures of a table. Pure.

A key whose answer had not come when the next one was pressed counts in every percentile and share: its time
is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from lsp_server.scripted_typing.screen import ScreenLog, sum_of
from tests.benchmarks.keystrokes.file_run import FileRun

COLUMNS = (
    "",
    "answered: p50",
    "p95",
    "within 100 ms",
    "within 500 ms",
    "shown within 100 ms",
    "within 500 ms",
    "first in a file",
    "not typed",
    "wrong per 100",
    "seconds saved",
    "end a unit",
    "replaced per 100",
    "wrong by time",
    "keys",
)


_SEEN = ("seconds_saved", "share_units", "replaced_per_100", "wrong_per_100_by_time")


@dataclass(frozen=True, slots=True)
class Figures:
    """One program's figures over files; times in ms, shares of all keys or of all characters.

    A percentile is infinite where the answers it would need did not come before the next key.
    """

    num_keys: int
    p50_ms: float
    p95_ms: float
    share_answered_100: float
    share_answered_500: float
    share_shown_100: float
    share_shown_500: float
    first_ms: float
    share_not_typed: float
    wrong_per_100: float
    seconds_saved: float
    share_units: float
    replaced_per_100: float
    wrong_per_100_by_time: float

    def as_dict(self) -> dict[str, float | None]:
        """As JSON values: null for an infinite time."""
        return {name: None if math.isinf(value) else round(value, 4) for name, value in asdict(self).items()}


def figures_of(runs: Sequence[FileRun]) -> Figures:
    """The figures of one program's runs: at least one, with keys and characters."""
    shown = [ms for run in runs for ms in run.shown_ms]
    num_late = sum(run.num_late for run in runs)
    answered = sorted([*shown, *(ms for run in runs for ms in run.empty_ms), *[math.inf] * num_late])
    num_keys, num_chars = len(answered), sum(run.num_chars for run in runs)
    seen = sum_of(ScreenLog(**run.screen) for run in runs).figures(num_chars)  # type: ignore[arg-type]
    firsts = [math.inf if run.first_ms is None else run.first_ms for run in runs]
    return Figures(
        num_keys=num_keys,
        p50_ms=_percentile(answered, 0.50),
        p95_ms=_percentile(answered, 0.95),
        share_answered_100=_within(answered, 100) / num_keys,
        share_answered_500=_within(answered, 500) / num_keys,
        share_shown_100=_within(shown, 100) / num_keys,
        share_shown_500=_within(shown, 500) / num_keys,
        first_ms=median(firsts),
        share_not_typed=sum(run.num_not_typed for run in runs) / num_chars,
        wrong_per_100=100 * sum(run.num_wrong for run in runs) / num_chars,
        **{name: seen[name] for name in _SEEN},
    )


def by_system(runs: Iterable[FileRun]) -> dict[str, Figures]:
    """The figures of each program, in the order in which they come."""
    found: dict[str, list[FileRun]] = {}
    for run in runs:
        who = "" if run.typist == "eager" else f", {run.typist}"
        found.setdefault(f"{run.system}{who}", []).append(run)
    return {system: figures_of(own) for system, own in found.items()}


def table_row(system: str, figures: Figures) -> tuple[str, ...]:
    """The cells under `COLUMNS`."""
    shares = (
        figures.share_answered_100,
        figures.share_answered_500,
        figures.share_shown_100,
        figures.share_shown_500,
    )
    return (
        system,
        milliseconds(figures.p50_ms),
        milliseconds(figures.p95_ms),
        *(f"{share:.0%}" for share in shares),
        milliseconds(figures.first_ms),
        f"{figures.share_not_typed:.0%}",
        f"{figures.wrong_per_100:.0f}",
        f"{figures.seconds_saved:.0f}",
        f"{figures.share_units:.0%}",
        f"{figures.replaced_per_100:.1f}",
        f"{figures.wrong_per_100_by_time:.0f}",
        str(figures.num_keys),
    )


def markdown(found: Mapping[str, Figures]) -> list[str]:
    """The lines of a table for a page."""
    columns = [name or "program" for name in COLUMNS]
    rows = [columns, ["---"] * len(columns), *(table_row(name, own) for name, own in found.items())]
    return [f"| {' | '.join(row)} |" for row in rows]


def milliseconds(value: float) -> str:
    """A time in a table; an infinite one is that of the next key."""
    return "after the next key" if math.isinf(value) else f"{value:.0f} ms"


def _within(values: Sequence[float], limit_ms: float) -> int:
    return sum(value <= limit_ms for value in values)


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
