"""`slipstream bench quality`: suggestions beside what people wrote, by language and ingredient."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from lsp_server.tools.bench.prompts import from_folder
from lsp_server.tools.bench.quality import COLUMNS, SWITCHES, measure_quality, table_rows, ways_without
from lsp_server.tools.bench.released_sources import RELEASES, released_sources
from lsp_server.tools.commands.engine import named_target
from lsp_server.tools.commands.terminal import progress_bar, show_rows, write_json


def quality(  # noqa: PLR0913 - one argument per option
    *,
    prompts: Annotated[int, typer.Option("--prompts", min=1, help="Positions of each language.")] = 150,
    language: Annotated[
        list[str] | None, typer.Option("--language", help=f"One of {', '.join(RELEASES)}; may be repeated.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", help=f"Also leave out {', '.join(SWITCHES)}; may be repeated."),
    ] = None,
    sources: Annotated[
        Path | None, typer.Option("--sources", help="A folder of projects instead of recent releases.")
    ] = None,
    target: Annotated[
        str, typer.Option("--target", help="Model id, path or auto.", callback=named_target)
    ] = DEFAULT_TARGET,
    dtype: Annotated[str, typer.Option("--dtype", help="As the setting of that name.")] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print the JSON line only.")] = False,
) -> None:
    """First suggestions beside the rest of the line that a person wrote: exact, near, no worse to parse."""
    _check(language or [], list(RELEASES))
    _check(without or [], list(SWITCHES))
    roots = {name: released_sources(name) for name in language or ["python"]}
    roots = {"sources": sources} if sources else roots
    with progress_bar(quiet=json) as report:
        engine = CompletionEngine.load(EngineConfig(target=target, dtype=dtype), report)
        found = {
            name: measure_quality(
                engine,
                from_folder(root, prompts),
                root,
                ways_without(without or []),
                lambda done, total, name=name: report(f"Asking in {name}", done, total),  # type: ignore[misc]
            )
            for name, root in roots.items()
        }
        facts = engine.describe()
    if not json:
        show_rows(f"First suggestions of {facts['target']}", COLUMNS, table_rows(found))
    about = {name: facts[name] for name in ("target", "device", "dtype", "num_context_tokens")}
    rows = {name: [report.as_dict() for report in reports] for name, reports in found.items()}
    write_json({"bench": "quality", **about, "languages": rows})


def _check(named: list[str], known: list[str]) -> None:
    if unknown := [name for name in named if name not in known]:
        raise UserError(f"Unknown: {unknown[0]}.", advice=f"Choose out of {', '.join(known)}.")
