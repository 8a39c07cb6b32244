"""`slipstream complete`: one completion from the shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from completion_engine.runtime import seldom_collected
from lsp_server.commands.local_engine import load_engine, reported_settings, with_target
from lsp_server.commands.source_file import language_id, read_source, repository_of, split_at
from lsp_server.commands.terminal import progress_bar, write, write_json

if TYPE_CHECKING:
    from completion_engine.request import Progress
    from completion_engine.stats import Completion
    from lsp_server.workspace.settings import Settings


def complete(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The source file.", show_default=False)],
    line: Annotated[int, typer.Option(help="Line, counted from 0.")],
    column: Annotated[int, typer.Option(help="Column in characters, counted from 0.")],
    *,
    target: Annotated[str, typer.Option(help="Another target than the settings name.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print {text, stats} as JSON.")] = False,
) -> None:
    """Complete FILE at a place and print the text to insert there."""
    sides = split_at(read_source(file), line, column)
    settings = reported_settings(repository_of(file))
    if target:
        settings = settings.model_copy(update={"target": target})
    settings = with_target(settings)
    with progress_bar(quiet=as_json) as report, seldom_collected():
        completion = completion_at(file, sides, settings, report)
    if as_json:
        pieces = [{"text": p.text, "source": p.source, "evidence": p.evidence} for p in completion.segments]
        write_json(
            {
                "text": completion.text,
                "num_replaced": completion.num_replaced,
                "rule": completion.rule,
                "pieces": pieces,
                "stats": completion.stats.as_dict(),
            }
        )
    elif completion.text:
        write(completion.text + "\n")
    else:
        sys.stderr.write("Nothing is worth suggesting there.\n")


def completion_at(file: Path, sides: tuple[str, str], settings: Settings, report: Progress) -> Completion:
    """What the engine writes between the two sides of a place in `file`, however long it takes."""
    from completion_engine.request import CompletionRequest  # noqa: PLC0415 - loads numpy
    from lsp_server.commands.repository_index import stored_index  # noqa: PLC0415 - as above

    engine = load_engine(settings, report, warms_up=False)
    stored = stored_index(file, engine.tokenizer) if settings.index.enabled else None
    path = file.resolve()
    return engine.complete(
        CompletionRequest(
            *sides,
            language=language_id(file),
            document=path.relative_to(stored.root).as_posix() if stored else path.as_uri(),
            index=stored.index if stored else None,
            max_tokens=settings.max_tokens,
            deadline_ms=0,
            patience_ms=float("inf"),
            multiline=settings.multiline,
            temperature=settings.temperature,
        )
    )
