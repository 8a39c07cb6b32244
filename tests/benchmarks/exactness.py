"""`slipstream bench exactness` on recent releases: `python -m tests.benchmarks.exactness`."""

from __future__ import annotations

from typing import Annotated

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.load_engine import load_engine
from completion_engine.request import MemorySetting
from lsp_server.commands.bench_exactness import ExactnessOptions, measure_exactness, show_exactness
from lsp_server.commands.terminal import interruptible, progress_bar
from tests.benchmarks import command_line as cli
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.samples import repository_index


def exactness(
    *,
    prompts: cli.Prompts = 200,
    tokens: cli.Tokens = 64,
    tasks: cli.Tasks = None,
    sources: cli.Sources = None,
    target: cli.Target = DEFAULT_TARGET,
    draft_model: cli.DraftModel = "",
    dtype: cli.Dtype = "auto",
    memory: Annotated[MemorySetting, typer.Option("--memory", help="The setting repositoryMemory.")] = "auto",
    json: cli.Json = False,
) -> None:
    """Count the tokens that differ between drafters on, in trees and in chains, and off.

    Exit code 1 if any token differs, or if it was ended before all prompts were compared.
    """
    root = sources or released_sources()
    config = EngineConfig(target=target, draft_model=draft_model, dtype=dtype)
    samples = cli.samples_of(prompts, tasks or [], root)
    given = ExactnessOptions(tokens, memory)
    with interruptible(), progress_bar(quiet=json) as report:
        engine = load_engine(config, report)
        report("Indexing the sources", 0, 0)
        index = repository_index(root, engine.tokenizer.encode_many)
        found = measure_exactness(engine, samples, index, given, report)
    show_exactness(found, json=json)


if __name__ == "__main__":
    cli.run(exactness)
