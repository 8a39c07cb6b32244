"""Accuracy of each source of drafts, and the loss by the policy: `python -m tests.benchmarks.drafting`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.load_engine import load_engine
from completion_engine.loading.drafters import build_drafters
from lsp_server.commands.local_engine import Sample
from lsp_server.commands.terminal import console, progress_bar, show_rows, write_json
from tests.benchmarks import command_line as cli
from tests.benchmarks.drafting.arms import (
    ACCEPTANCE_COLUMNS,
    ARM_COLUMNS,
    acceptance_rows,
    arm_rows,
    measure_drafting,
)
from tests.benchmarks.drafting.plot import write_drafting_plot
from tests.benchmarks.drafting.record import record
from tests.benchmarks.drafting.trace import Traces, load, save
from tests.benchmarks.plot import check_plot
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.samples import repository_index


def drafting(
    *,
    prompts: cli.Prompts = 40,
    tokens: cli.Tokens = 48,
    tasks: cli.Tasks = None,
    sources: cli.Sources = None,
    target: cli.Target = DEFAULT_TARGET,
    draft_model: cli.DraftModel = "",
    dtype: cli.Dtype = "auto",
    traces: Annotated[
        Path | None, typer.Option("--traces", help="Replay this recording; record it if there is none.")
    ] = None,
    plot: cli.Plot = None,
    json: cli.Json = False,
) -> None:
    """Acceptance of each source, time per token of ways of drafting, and the loss of the policy."""
    if plot:
        check_plot(plot)
    if traces is not None and traces.exists():
        recorded = load(traces)
    else:
        root = sources or released_sources()
        config = EngineConfig(target=target, draft_model=draft_model, dtype=dtype)
        recorded = _recorded(config, cli.samples_of(prompts, tasks or [], root), root, tokens, quiet=json)
        if traces is not None:
            save(recorded, traces)
    found = measure_drafting(recorded)
    if plot:
        write_drafting_plot(found, plot)
    if not json:
        _show(found)
    write_json(found)


def _show(found: Mapping[str, Any]) -> None:
    show_rows("Guesses after true ones", ACCEPTANCE_COLUMNS, acceptance_rows(found))
    show_rows("Replayed over the same positions", ARM_COLUMNS, arm_rows(found))
    regrets = (f"{regret:+.1%} against the {name}" for name, regret in found["regret"].items())
    best = f"(the best arm over all prompts was {found['best_arm']})"
    console().print("The policy's time per token:", *regrets, best, sep="\n  ", markup=False)


def _recorded(config: EngineConfig, samples: list[Sample], root: Path, tokens: int, *, quiet: bool) -> Traces:
    with progress_bar(quiet=quiet) as report:
        engine = load_engine(replace(config, drafters=()), report)
        drafters = build_drafters(config, engine.target)
        report("Indexing the sources", 0, 0)
        index = repository_index(root, engine.tokenizer.encode_many)
        return record(
            engine, drafters, samples, tokens, index, lambda done: report("Recording", done, len(samples))
        )


if __name__ == "__main__":
    cli.run(drafting)
