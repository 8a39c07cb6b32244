"""`slipstream bench`: measurements on the user's own code, each a table, or one JSON line.

Arguments are checked before the libraries of a model are imported.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsp_server.commands.local_engine import Sample, indexed, load_engine, repository_samples, with_target
from lsp_server.commands.replay import Json, Target
from lsp_server.commands.repository_index import build_index, checked_folder
from lsp_server.commands.terminal import interruptible, new_app, progress_bar, show_figures

if TYPE_CHECKING:
    from completion_engine.engine import CompletionEngine
    from completion_engine.request import Progress
    from lsp_server.workspace.settings import Settings
    from ngram_cache import NgramIndex
    from ngram_cache.repository import RepositoryOptions

app = new_app(help="Measure on your own code: exactness, speed.", no_args_is_help=True)

Prompts = Annotated[int, typer.Option("--prompts", min=1, help="Number of prompts.")]
Tokens = Annotated[int, typer.Option("--tokens", min=2, help="Number of tokens to write for each prompt.")]
Sources = Annotated[Path, typer.Option("--sources", help="A repository; its index is updated.")]


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
    root, samples = _work(sources, prompts)
    with interruptible(), progress_bar(quiet=json) as report:
        report("Loading libraries", 0, 0)
        from lsp_server.commands.bench_exactness import (  # noqa: PLC0415 - loads torch
            ExactnessOptions,
            measure_exactness,
            show_exactness,
        )

        settings, options = _settings(root, target)
        given = ExactnessOptions(tokens, memory=settings.repository_memory)
        engine, index = _loaded(root, settings, options, report)
        found = measure_exactness(engine, samples, index, given, report)
    show_exactness(found, json=json)


@app.command()
def speed(
    *,
    prompts: Prompts = 10,
    tokens: Tokens = 48,
    sources: Sources = Path(),
    target: Target = "",
    json: Json = False,
) -> None:
    """Time passes by width, and tokens beside transformers and llama.cpp if they are installed."""
    root, samples = _work(sources, prompts)
    with progress_bar(quiet=json) as report:
        report("Loading libraries", 0, 0)
        from lsp_server.commands.bench_speed import measure_speed  # noqa: PLC0415 - loads torch

        settings, options = _settings(root, target)
        found = measure_speed(*_loaded(root, settings, options, report), samples, tokens, report)
    about = {"bench": "speed", "target": settings.target, "num_prompts": prompts, "tokens_asked": tokens}
    show_figures(about | found, title="Milliseconds, on the same prompts in turn", json=json)


def _work(sources: Path, num_prompts: int) -> tuple[Path, list[Sample]]:
    """The repository, and cursor positions in it. Raises UserError."""
    root = checked_folder(sources)
    return root, repository_samples(root, num_prompts)


def _settings(root: Path, target: str) -> tuple[Settings, RepositoryOptions]:
    own, options = indexed(root)
    return with_target(own.model_copy(update={"target": target or own.target})), options


def _loaded(
    root: Path, settings: Settings, options: RepositoryOptions, report: Progress
) -> tuple[CompletionEngine, NgramIndex]:
    engine = load_engine(settings, report)
    return engine, build_index(root, engine.tokenizer, options, report)[1]
