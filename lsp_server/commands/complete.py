"""`slipstream complete`: one completion from the shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsp_server.commands.engine import load_engine, told_settings
from lsp_server.commands.source_file import language_id, read_source, repository_of, split_at
from lsp_server.commands.terminal import progress_bar, write, write_json

if TYPE_CHECKING:
    from completion_engine.stats import Completion
    from lsp_server.commands.terminal import Report


def complete(
    file: Annotated[Path, typer.Argument(help="The source file.", show_default=False)],
    line: Annotated[int, typer.Option(help="Line, counted from 0.")],
    column: Annotated[int, typer.Option(help="Column in characters, counted from 0.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print {text, stats} as JSON.")] = False,
) -> None:
    """Complete FILE at a place; prints the text to insert there."""
    prefix, suffix = split_at(read_source(file), line, column)
    with progress_bar(quiet=as_json) as report:
        completion = completion_at(file, prefix, suffix, report)
    if as_json:
        pieces = [{"text": p.text, "source": p.source, "evidence": p.evidence} for p in completion.pieces]
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


def completion_at(file: Path, prefix: str, suffix: str, report: Report) -> Completion:
    """What the engine writes between `prefix` and `suffix` of `file`, however long it takes."""
    from completion_engine.request import CompletionRequest  # noqa: PLC0415 - loads numpy
    from lsp_server.commands.repository import stored_index  # noqa: PLC0415 - as above

    folder = repository_of(file)
    settings = told_settings(folder)
    engine = load_engine(settings, report)
    return engine.complete(
        CompletionRequest(
            prefix,
            suffix,
            language=language_id(file),
            document=file.resolve().as_uri(),
            index=stored_index(folder, engine.tokenizer.fingerprint),
            max_tokens=settings.max_tokens,
            deadline_ms=0,
            patience_ms=float("inf"),
            multiline=settings.multiline,
            temperature=settings.temperature,
        )
    )
