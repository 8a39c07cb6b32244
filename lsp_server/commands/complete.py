"""`slipstream complete`: one completion from the shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from completion_engine.cutting.language_names import language_of_path
from completion_engine.request import Completion, CompletionRequest, Progress
from completion_engine.runtime import seldom_collected
from lsp_server.commands.local_engine import (
    load_engine,
    parse_cursor,
    read_source,
    reported,
    repository_of,
    split_at,
    with_target,
)
from lsp_server.commands.terminal import new_app, progress_bar, write, write_json
from lsp_server.workspace.settings import Settings
from ngram_cache.saved_index import nearest_saved

app = new_app()


@app.command()
def complete(
    cursor: Annotated[
        str,
        typer.Argument(
            metavar="FILE:LINE:COLUMN",
            help="The file and the cursor in it, counted from 1: main.py:3:1 is the start of line 3.",
        ),
    ],
    *,
    target: Annotated[str, typer.Option(help="Model to use instead of the configured one.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print {text, stats} as JSON.")] = False,
) -> None:
    """Complete a file at a cursor and print the text to insert there."""
    file, line, column = parse_cursor(cursor)
    sides = split_at(read_source(file), line, column)
    own = reported(repository_of(file)).settings
    settings = with_target(own.model_copy(update={"target": target or own.target}))
    with progress_bar(quiet=as_json) as report, seldom_collected():
        completion = _completion(file, sides, settings, report)
    if as_json:
        values = {name: getattr(completion, name) for name in ("text", "num_replaced", "rule")}
        pieces = [{"text": p.text, "source": p.source, "evidence": p.evidence} for p in completion.segments]
        write_json({**values, "pieces": pieces, "stats": completion.stats.as_dict()})
    elif completion.text:
        write(completion.text + "\n")
    else:
        sys.stderr.write("Slipstream has no suggestion there.\n")


def _completion(file: Path, sides: tuple[str, str], settings: Settings, report: Progress) -> Completion:
    engine = load_engine(settings, report, warms_up=False)
    is_indexed = settings.index.enabled
    stored = nearest_saved(file, engine.tokenizer.fingerprint) if is_indexed else None
    path = file.resolve()
    request = CompletionRequest(
        *sides,
        language=language_of_path(file.name),
        document=path.relative_to(stored[0]).as_posix() if stored else path.as_uri(),
        index=stored[1] if stored else None,
        max_tokens=settings.max_tokens,
        deadline_ms=0,
        patience_ms=float("inf"),
        multiline=settings.multiline,
    )
    return engine.complete(request)
