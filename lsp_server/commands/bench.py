"""`slipstream bench exactness`: whether drafts change a token in your own code, as a table or one JSON line.

Arguments are checked before the libraries of a model are imported.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lsp_server.commands.local_engine import indexed, load_engine, repository_samples, with_target
from lsp_server.commands.replay import Json, Target
from lsp_server.commands.repository_index import build_index, checked_folder
from lsp_server.commands.terminal import interruptible, new_app, progress_bar

app = new_app(no_args_is_help=True)

Prompts = Annotated[int, typer.Option("--prompts", min=1, help="Number of prompts.")]
Tokens = Annotated[int, typer.Option("--tokens", min=2, help="Number of tokens to write for each prompt.")]
Sources = Annotated[Path, typer.Option("--sources", help="A repository; its index is updated.")]


@app.callback()
def bench() -> None:
    """Check on your own code that drafts change no text."""


@app.command()
def exactness(
    *,
    prompts: Prompts = 200,
    tokens: Tokens = 64,
    sources: Sources = Path(),
    target: Target = "",
    json: Json = False,
) -> None:
    """Count the tokens that differ between drafters on, in trees and in chains, and off.

    Uses your settings. Exit code 1 if any token differs, or if it was ended before all prompts were compared.
    """
    root = checked_folder(sources)
    samples = repository_samples(root, prompts)
    with interruptible(), progress_bar(quiet=json) as report:
        report("Loading libraries", 0, 0)
        from lsp_server.commands.bench_exactness import (  # noqa: PLC0415 - loads torch
            ExactnessOptions,
            measure_exactness,
            show_exactness,
        )

        own, options = indexed(root)
        settings = with_target(own.model_copy(update={"target": target or own.target}))
        engine = load_engine(settings, report)
        index = build_index(root, engine.tokenizer, options, report)[1]
        given = ExactnessOptions(tokens, memory=settings.repository_memory)
        found = measure_exactness(engine, samples, index, given, report)
    show_exactness(found, json=json)
