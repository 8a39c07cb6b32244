"""`python -m tests.benchmarks.edits`: the next edit over consecutive releases, precision against recall."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.next_edit.decision import SHIPPED, Decision
from completion_engine.next_edit.proposer import EditProposer
from lsp_server.commands.terminal import progress_bar, show_rows, write_json
from lsp_server.workspace.measurements import percentiles
from tests.benchmarks.command_line import Json, Minutes, Target, run
from tests.benchmarks.edits.asking import Ask, recorded
from tests.benchmarks.edits.curves import (
    LOG_ODDS,
    THRESHOLDS,
    Point,
    Score,
    by_log_odds,
    by_margin,
    by_pattern,
    by_probability,
    fit,
    left_out,
    point,
)
from tests.benchmarks.edits.release_pairs import PAIRS


def edits(
    recording: Annotated[Path, typer.Option(help="A folder: recorded scores are reused.")],
    *,
    asks: Annotated[int, typer.Option(min=1, help="Asks with candidates of each package.")] = 40,
    minutes: Minutes = 600.0,
    target: Target = DEFAULT_TARGET,
    json: Json = False,
) -> None:
    """Replay the hunks of releases in file order and ask after each: curves over thresholds."""
    recording.mkdir(parents=True, exist_ok=True)
    found = _recorded(recording, asks, time.monotonic() + 60 * minutes, target, quiet=json)
    held_out = left_out(found)
    curves: dict[str, list[dict[str, float]]] = {
        "without the package": [_held_out(held_out, by_probability, it).as_row() for it in THRESHOLDS],
        "without the package, at the thresholds": [_held_out(held_out, by_margin, 0.0).as_row()],
        "as shipped": _curve(found, by_probability(SHIPPED), THRESHOLDS),
        "as shipped, at the thresholds": _curve(found, by_margin(SHIPPED), (0.0,)),
        "log odds alone": _curve(found, by_log_odds, LOG_ODDS),
        "patterns alone": _curve(found, by_pattern, (1.0,)),
    }
    if not json:
        for title, rows in curves.items():
            names = list(rows[0])
            show_rows(title, names, [[f"{row[name]:g}" for name in names] for row in rows])
    write_json(
        {
            "bench": "edits",
            "target": target,
            "packages": sorted({ask.package for ask in found}),
            "num_asks": len(found),
            "fitted": str(fit(found)),
            "shipped": str(SHIPPED),
            "score_ms": percentiles(scored.ms for ask in found for scored in ask.candidates),
            "curves": curves,
        }
    )


def _recorded(recording: Path, max_asks: int, until_s: float, target: str, *, quiet: bool) -> list[Ask]:
    """The asks of all packages; the target is loaded only where one is not recorded yet."""
    found: list[Ask] = []
    with progress_bar(quiet=quiet) as report:

        @cache
        def make_proposer() -> EditProposer:
            engine = CompletionEngine.load(EngineConfig(target=target, drafters=()), report)
            return EditProposer(engine.target, engine.tokenizer)

        for at, pair in enumerate(PAIRS):
            report(pair.name, at, len(PAIRS))
            file = recording / f"{pair.after.project}.jsonl"
            if file.is_file() or time.monotonic() < until_s:
                found += recorded(pair, make_proposer, max_asks, file)
    return found


def _held_out(
    packages: dict[str, tuple[list[Ask], Decision]], score: Callable[[Decision], Score], threshold: float
) -> Point:
    """One point of all packages, each by the weights that are fitted on the others."""
    points = (point(asks, score(decision), threshold) for asks, decision in packages.values())
    return sum(points, Point(threshold))


def _curve(asks: Sequence[Ask], score: Score, thresholds: Sequence[float]) -> list[dict[str, Any]]:
    return [point(asks, score, threshold).as_row() for threshold in thresholds]


if __name__ == "__main__":
    run(edits)
