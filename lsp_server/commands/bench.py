"""`slipstream bench`: measurements on the user's own code, each a table for people and one JSON line last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsp_server.commands.bench_exactness import ExactnessWish, measure_exactness, show_exactness
from lsp_server.commands.bench_speed import measure_speed
from lsp_server.commands.cursor_samples import repository_samples
from lsp_server.commands.local_engine import indexed, load_engine, with_target
from lsp_server.commands.replay import Json, Target
from lsp_server.commands.repository_index import build_index, checked_folder
from lsp_server.commands.terminal import interruptible, progress_bar, show_figures

if TYPE_CHECKING:
    from completion_engine.engine import CompletionEngine
    from completion_engine.request import Progress
    from lsp_server.workspace.settings import Settings
    from ngram_cache import NgramIndex
from ngram_cache.repository import RepositoryOptions

app = typer.Typer(
    help="Measure on your own code: exactness, speed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

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
    root, settings, options = _work(sources, target)
    samples = repository_samples(root, prompts)
    wish = ExactnessWish(tokens, settings.temperature, settings.repository_memory)
    with interruptible(), progress_bar(quiet=json) as report:
        engine, index = _loaded(root, settings, options, report)
        found = measure_exactness(engine, samples, index, wish, report)
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
    root, settings, options = _work(sources, target)
    samples = repository_samples(root, prompts)
    with progress_bar(quiet=json) as report:
        found = measure_speed(*_loaded(root, settings, options, report), samples, tokens, report)
    about = {"bench": "speed", "target": settings.target, "num_prompts": prompts, "tokens_asked": tokens}
    show_figures(about | found, title="Milliseconds, on the same prompts in turn", json=json)


def _work(sources: Path, target: str) -> tuple[Path, Settings, RepositoryOptions]:
    root = checked_folder(sources)
    own, options = indexed(root)
    return root, with_target(own.model_copy(update={"target": target or own.target})), options


def _loaded(
    root: Path, settings: Settings, options: RepositoryOptions, report: Progress
) -> tuple[CompletionEngine, NgramIndex]:
    engine = load_engine(settings, report)
    return engine, build_index(root, engine.tokenizer, options, report)[1]
