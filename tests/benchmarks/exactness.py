"""`slipstream bench exactness` on recent releases: `python -m tests.benchmarks.exactness`."""

from __future__ import annotations

from typing import Annotated

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.request import MemoryWish
from lsp_server.commands.bench_exactness import ExactnessWish, measure_exactness
from lsp_server.commands.terminal import interruptible, progress_bar, show_figures
from tests.benchmarks.command_line import (
    DraftModel,
    Dtype,
    Json,
    Prompts,
    Sources,
    Target,
    Tasks,
    Tokens,
    run,
    samples_of,
)
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.samples import repository_index


def exactness(
    *,
    prompts: Prompts = 200,
    tokens: Tokens = 64,
    tasks: Tasks = None,
    sources: Sources = None,
    target: Target = DEFAULT_TARGET,
    draft_model: DraftModel = "",
    dtype: Dtype = "auto",
    temperature: Annotated[float, typer.Option("--temperature", min=0.0, max=2.0)] = 0.0,
    memory: Annotated[MemoryWish, typer.Option("--memory", help="The setting repositoryMemory.")] = "auto",
    json: Json = False,
) -> None:
    """Count the tokens that differ between drafters on, in trees and in chains, and off.

    Exit code 1 if any token differs, or if it was ended before all prompts were compared.
    """
    root = sources or released_sources()
    config = EngineConfig(target=target, draft_model=draft_model, dtype=dtype)
    samples = samples_of(prompts, tasks or [], root)
    wish = ExactnessWish(tokens, temperature, memory)
    with interruptible(), progress_bar(quiet=json) as report:
        engine = CompletionEngine.load(config, report)
        report("Indexing the sources", 0, 0)
        index = repository_index(root, engine.tokenizer.encode_many)
        found = measure_exactness(engine, samples, index, wish, report)
    show_figures(found, title="With and without drafters, same target, token by token", json=json)
    if not found["is_exact"]:
        raise typer.Exit(1)


if __name__ == "__main__":
    run(exactness)
