"""`python -m tests.benchmarks.quality`: suggestions beside what people wrote, by language and ingredient."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.load_engine import load_engine
from completion_engine.prompting.prompt_choice import MAX_CONTEXT_TOKENS
from lsp_server.commands.local_engine import ENDINGS as SOURCE_ENDINGS
from lsp_server.commands.terminal import progress_bar, show_rows, write_json
from tests.benchmarks.command_line import Json, Minutes, Results, Target, run
from tests.benchmarks.quality.results import QualityResults
from tests.benchmarks.quality.run import (
    COLUMNS,
    PLAIN,
    SWITCHES,
    USUAL,
    WAYS,
    QualityRun,
    named_way,
    table_rows,
    way_without,
)
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.releases import ENDINGS, RELEASES
from tests.benchmarks.samples import Position, from_folder, interleaved


def quality(
    *,
    prompts: Annotated[int, typer.Option("--prompts", min=1, help="Positions of each language.")] = 120,
    language: Annotated[
        list[str] | None, typer.Option("--language", help=f"One of {', '.join(RELEASES)}; may be repeated.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", help=f"Also leave out {', '.join(SWITCHES)}, or some joined by +."),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Also ask with the plain prompt.")] = False,
    way: Annotated[
        list[str] | None, typer.Option("--way", help=f"Only {', '.join(WAYS)}; may be repeated.")
    ] = None,
    results: Results = None,
    minutes: Minutes = 1e9,
    context_tokens: Annotated[
        int, typer.Option("--context-tokens", min=0, help="The longest context.")
    ] = MAX_CONTEXT_TOKENS,
    sources: Annotated[
        Path | None, typer.Option("--sources", help="A folder of projects instead of recent releases.")
    ] = None,
    target: Target = DEFAULT_TARGET,
    dtype: Annotated[str, typer.Option("--dtype", help="As the setting of that name.")] = "auto",
    json: Json = False,
) -> None:
    """First suggestions beside the rest of the line that a person wrote: exact, near, no worse to parse."""
    until_s = time.monotonic() + minutes * 60
    named = [named_way(name) for name in way or WAYS]
    ways = [*([PLAIN] if plain else []), *named, *map(way_without, without or [])]
    kept = QualityResults(results)
    with progress_bar(quiet=json) as report:
        config = EngineConfig(target=target, dtype=dtype, context_tokens=context_tokens)
        run = QualityRun(load_engine(config, report), ways, kept, until_s)
        names = language or ["python"]
        roots = {"sources": sources} if sources else {name: released_sources(name) for name in names}
        drawn = [
            [
                Position(name, sample, root)
                for sample in from_folder(root, prompts, endings=ENDINGS.get(name, SOURCE_ENDINGS))
            ]
            for name, root in roots.items()
        ]
        run.measure(list(interleaved(*drawn)), partial(report, "Asking"))
    if not json:
        show_rows("First suggestions; pairs are the default against the row", COLUMNS, table_rows(kept))
    write_json({"bench": "quality", "rows": list(kept.rows(USUAL.name))})


if __name__ == "__main__":
    run(quality)
