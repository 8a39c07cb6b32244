"""The common part of the benchmarks' command lines: options of one name and one help, and how errors are
shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from completion_engine.engine import CompletionEngine
from completion_engine.errors import SlipstreamError
from lsp_server.commands.local_engine import Sample, named_target
from lsp_server.commands.terminal import show_error
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.samples import from_folder, from_tasks, interleaved

Json = Annotated[bool, typer.Option("--json", help="Print the JSON line only.")]
Target = Annotated[str, typer.Option("--target", help="Model id, path or auto.", callback=named_target)]
Results = Annotated[
    Path | None,
    typer.Option("--results", help="JSON lines to continue; completed rows are not measured again."),
]
Minutes = Annotated[float, typer.Option("--minutes", min=0, help="Begin nothing after this many minutes.")]
Prompts = Annotated[int, typer.Option("--prompts", min=1, help="Number of prompts.")]
Tokens = Annotated[int, typer.Option("--tokens", min=1, help="Number of tokens to write for each prompt.")]
Tasks = Annotated[list[Path] | None, typer.Option("--tasks", help="Infilling tasks (.jsonl.gz).")]
Sources = Annotated[
    Path | None, typer.Option("--sources", help="A folder of source code instead of recent releases.")
]
Dtype = Annotated[str, typer.Option("--dtype", help="auto, bfloat16, float32 or int8.")]
DraftModel = Annotated[str, typer.Option("--draft-model", help="The folder of a trained drafter.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw a picture (.svg, .png, .pdf).")]


def app_of(command: Callable[..., None]) -> typer.Typer:
    """`command` as a program of its own."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    return app


def run(command: Callable[..., None]) -> None:
    """Run `command` with the arguments of this process; an expected error ends it with exit code 1."""
    try:
        app_of(command)()
    except SlipstreamError as error:
        show_error(error)
        sys.exit(1)


def samples_of(num_prompts: int, tasks: list[Path], sources: Path | None) -> list[Sample]:
    """An equal share of every task file and of the sources, in turn; without sources, of recent releases."""
    share = -(-num_prompts // (len(tasks) + 1))
    groups = [from_tasks(path) for path in tasks]
    spread = [group[:: max(1, len(group) // share)][:share] for group in groups]
    drawn = from_folder(sources or released_sources(), share)
    return list(interleaved(*spread, drawn))[:num_prompts]


def engine_facts(engine: CompletionEngine) -> dict[str, Any]:
    """The facts of an engine that its figures depend on."""
    facts = engine.describe()
    return {name: facts[name] for name in ("target", "device", "dtype", "exactness", "pass_ms")}
