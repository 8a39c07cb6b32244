"""`python -m tests.benchmarks.cold`: the first suggestion at places where nothing is computed yet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from completion_engine.config import AUTO
from lsp_server.commands.terminal import console, progress_bar, show_rows, write_json
from tests.benchmarks.cold.answers import cold_answers, one_of_each_file, summary
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
    json: Json = False,
) -> None:
    """Open each file and request one suggestion, with default settings: latency, count and accuracy."""
    root = sources or released_sources()
    samples = one_of_each_file(from_folder(root, _DRAWN_FOR_EACH * prompts))[:prompts]
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


if __name__ == "__main__":
    run(cold)
