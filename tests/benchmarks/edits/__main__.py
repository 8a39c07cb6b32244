"""`python -m tests.benchmarks.edits`: the next edit over consecutive releases, precision against recall."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from typing import Annotated

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.load_engine import load_engine
from completion_engine.next_edit.decision import SHIPPED, Weights
from completion_engine.next_edit.proposer import EditProposer
from lsp_server.commands.terminal import progress_bar, show_rows, write_json
from lsp_server.workspace.measurements import percentiles
from tests.benchmarks.command_line import Json, Minutes, Target, run
from tests.benchmarks.edits.curves import (
    LOG_ODDS,
    SHIPPED_THRESHOLDS,
    THRESHOLDS,
    Row,
    Score,
    area_under_curve,
    by_log_odds,
    by_margin,
    by_pattern,
    by_probability,
    places_of,
    point,
)
from tests.benchmarks.edits.fitting import at, by_package, fit, held_out, with_chosen_thresholds
from tests.benchmarks.edits.questions import Question, Recording
from tests.benchmarks.edits.release_pairs import FITTED, PAIRS


def edits(
    recording: Annotated[Path, typer.Option(help="A folder: recorded scores are reused.")],
    *,
    questions: Annotated[int, typer.Option(min=1, help="Questions with candidates of each package.")] = 40,
    minutes: Minutes = 600.0,
    target: Target = DEFAULT_TARGET,
    json: Json = False,
) -> None:
    """Replay the hunks of releases in file order: precision and recall of what is proposed after each.

    A run that ended early is continued. With `--minutes 0`, only what is recorded is read.
    """
    recording.mkdir(parents=True, exist_ok=True)
    found = _recorded(recording, questions, time.monotonic() + 60 * minutes, target, quiet=json)
    tables = {
        "proposals": _proposals(found),
        "as shipped, by threshold": _curve(found, by_probability(SHIPPED), THRESHOLDS),
        "weights fitted without the package, by threshold": [
            at(held_out(by_package(found), fit), (it, it)).as_row(it) for it in THRESHOLDS
        ],
        "log odds alone, by threshold": _curve(found, by_log_odds, LOG_ODDS),
        "weights fitted without the package and without one kind of evidence": _without_evidence(found),
    }
    if not json:
        for title, rows in tables.items():
            names = list(rows[0])
            show_rows(title, names, [[f"{row[name]}" for name in names] for row in rows])
    write_json(
        {
            "bench": "edits",
            "target": target,
            "packages": sorted({question.package for question in found}),
            "num_questions": len(found),
            "num_places": len(places_of(found)),
            "fitted": str(fit(found)),
            "shipped": str(SHIPPED),
            "area_under_curve": {
                "log odds": area_under_curve(found, by_log_odds),
                "as shipped": area_under_curve(found, by_probability(SHIPPED)),
            },
            "score_ms": percentiles(scored.ms for question in found for scored in question.candidates),
            "tables": tables,
        }
    )


def _proposals(found: Sequence[Question]) -> list[Row]:
    """Proposals with the shipped thresholds, and with thresholds that are chosen without the package."""
    packages = by_package(found)
    unseen = [question for question in found if question.package not in FITTED]
    shipped = by_margin(SHIPPED)
    return [
        point(found, shipped, 0.0).as_row("as shipped"),
        point(unseen, shipped, 0.0).as_row("as shipped, packages that its weights never saw"),
        with_chosen_thresholds(packages, lambda _: SHIPPED).as_row(
            "as shipped, thresholds without the package"
        ),
        at(held_out(packages, fit), SHIPPED_THRESHOLDS).as_row("weights fitted without the package"),
        with_chosen_thresholds(packages, fit).as_row("weights and thresholds without the package"),
        point(found, by_log_odds, 6.0).as_row("log odds of at least 6 alone"),
        point(found, by_pattern, 1.0).as_row("patterns alone"),
    ]


def _without_evidence(found: Sequence[Question]) -> list[Row]:
    packages = by_package(found)
    return [
        at(held_out(packages, partial(fit, without=name)), SHIPPED_THRESHOLDS).as_row(name)
        for name in ("", *(it.name for it in fields(Weights)[1:]))
    ]


def _recorded(
    recording: Path, max_scored: int, until_s: float, target: str, *, quiet: bool
) -> list[Question]:
    """The questions of all packages; the package with the fewest is next, so that a part is a fair sample."""
    recordings = [Recording(pair, recording / f"{pair.after.project}.jsonl", max_scored) for pair in PAIRS]
    with progress_bar(quiet=quiet) as report:

        @cache
        def make_proposer() -> EditProposer:
            engine = load_engine(EngineConfig(target=target, drafters=()), report)
            return EditProposer(engine.target, engine.tokenizer)

        waiting = list(recordings)
        while waiting and time.monotonic() < until_s:
            report("packages", len(recordings) - len(waiting), len(recordings))
            least = min(waiting, key=lambda it: it.num_scored)
            if not least.record(make_proposer):
                waiting.remove(least)
    return [question for it in recordings for question in it.questions]


def _curve(questions: Sequence[Question], score: Score, thresholds: Sequence[float]) -> list[Row]:
    return [point(questions, score, threshold).as_row(threshold) for threshold in thresholds]


if __name__ == "__main__":
    run(edits)
