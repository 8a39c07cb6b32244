"""`slipstream bench exactness` on recent releases: `python -m tests.benchmarks.exactness`."""

from __future__ import annotations

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from lsp_server.commands.bench import Memory, Temperature, measure_exactness
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


def exactness(
    *,
    prompts: Prompts = 200,
    tokens: Tokens = 64,
    tasks: Tasks = None,
    sources: Sources = None,
    target: Target = DEFAULT_TARGET,
    draft_model: DraftModel = "",
    dtype: Dtype = "auto",
    temperature: Temperature = 0.0,
    memory: Memory = "auto",
    json: Json = False,
) -> None:
    """Count the tokens that differ between drafters on, in trees and in chains, and off.

    Exit code 1 if any token differs, or if it was ended before all prompts were compared.
    """
    root = sources or released_sources()
    config = EngineConfig(target=target, draft_model=draft_model, dtype=dtype)
    samples = samples_of(prompts, tasks or [], root)
    measure_exactness(samples, root, config, tokens, temperature, memory, json=json)


if __name__ == "__main__":
    run(exactness)
