"""`python -m tests.benchmarks.cold`: the first suggestion at places where nothing is computed yet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from completion_engine.config import AUTO
from lsp_server.commands.local_engine import Sample
from lsp_server.commands.terminal import console, progress_bar, show_rows, write_json
from tests.benchmarks.cold.answers import cold_answers, one_of_each_file, summary
from tests.benchmarks.cold.growing import figures, growing_texts, right
from tests.benchmarks.command_line import Json, run
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.samples import from_folder

_DRAWN_FOR_EACH = 4  # positions for each that is asked: several may lie in one file

Prompts = Annotated[int, typer.Option("--prompts", min=1, help="Number of files, at most.")]
Target = Annotated[str, typer.Option("--target", help="The setting target: auto, a model id or a path.")]


def cold(
    *,
    prompts: Prompts = 60,
    sources: Annotated[Path | None, typer.Option("--sources", help="A folder of source code.")] = None,
    target: Target = AUTO,
    growing: Annotated[
        bool, typer.Option("--growing", help="Look at the screen for 2.5 s, with and without growing.")
    ] = False,
    json: Json = False,
) -> None:
    """Open each file and request one suggestion, with default settings: latency, count and accuracy."""
    root = sources or released_sources()
    samples = one_of_each_file(from_folder(root, _DRAWN_FOR_EACH * prompts))[:prompts]
    if growing:
        _show_growing(samples, root, target, json=json)
        return
    with progress_bar(quiet=json) as report:
        answers = cold_answers(
            samples, root, {"target": target}, lambda done, total: report("Cold places", done, total)
        )
    found: dict[str, Any] = {"bench": "cold", "target": target, **summary(answers)}
    if not json:
        show_rows("Cold places", ("", "value"), [(name, str(value)) for name, value in found.items()])
        for answer in answers:
            if not answer.text:
                console().print(
                    f"nothing at {answer.sample.name} after {answer.ms:.0f} ms: {answer.rule}", markup=False
                )
    write_json(found)


def _show_growing(samples: Sequence[Sample], root: Path, target: str, *, json: bool) -> None:
    found: dict[str, Any] = {"bench": "growing", "target": target, "num_places": len(samples)}
    with progress_bar(quiet=json) as report:
        for name, knows in (("without", False), ("with", True)):
            step = partial(report, f"{name} growing".capitalize())
            found[name] = figures(growing_texts(samples, root, {"target": target}, step, knows_growth=knows))
        step = partial(report, "Without a deadline")
        patient = {"target": target, "deadlineMs": 0}
        answers = cold_answers(samples, root, patient, step)
        found["without a deadline"] = right([(one.sample, one.text) for one in answers])
    if not json:
        for name in ("with", "without", "without a deadline"):
            show_rows(name, ("", "value"), [(key, str(value)) for key, value in found[name].items()])
    write_json(found)


if __name__ == "__main__":
    run(cold)
