"""`python -m tests.benchmarks.accepting`: every suggestion taken as it comes, and what then stands twice."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.load_engine import load_engine
from lsp_server.commands.terminal import console, progress_bar, write_json
from tests.benchmarks.accepting.holes import accepting_rows, measure_accepting
from tests.benchmarks.command_line import Json, Minutes, Results, Target, run
from tests.benchmarks.json_lines import JsonLines
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.releases import ENDINGS
from tests.benchmarks.samples import Position, from_folder, interleaved

_LANGUAGES = ("python", "typescript", "rust", "go", "c")


def accepting(
    *,
    prompts: Annotated[int, typer.Option("--prompts", min=1, help="Places in each language.")] = 40,
    language: Annotated[
        list[str] | None, typer.Option("--language", help=f"As {', '.join(_LANGUAGES)}; may be repeated.")
    ] = None,
    results: Results = None,
    minutes: Minutes = 1e9,
    target: Target = DEFAULT_TARGET,
    json: Json = False,
) -> None:
    """Accept suggestion after suggestion in holes of real files, and count repeated lines and brackets."""
    until_s = time.monotonic() + minutes * 60
    kept = JsonLines(results)
    with progress_bar(quiet=json) as report:
        engine = load_engine(EngineConfig(target=target, context_tokens=0), report)
        drawn = [_positions(name, prompts) for name in language or _LANGUAGES]
        positions = list(interleaved(*drawn))
        measure_accepting(engine, positions, kept, partial(report, "Accepting"), until_s)
    rows = accepting_rows(kept)
    if not json:
        for row in rows:
            console().print(*(f"{name}: {value}" for name, value in row.items()), sep="\n  ", markup=False)
    write_json({"bench": "accepting", "rows": rows})


def _positions(language: str, count: int) -> list[Position]:
    """Other ones than those at which quality is measured."""
    root = released_sources(language)
    return [Position(language, sample, root) for sample in from_folder(root, count, 1, ENDINGS[language])]


if __name__ == "__main__":
    run(accepting)
