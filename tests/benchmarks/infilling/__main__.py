"""`python -m tests.benchmarks.infilling`: the share of functions that pass their tests."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.load_engine import load_engine
from lsp_server.commands.terminal import progress_bar, show_rows, write_json
from tests.benchmarks.command_line import Json, Minutes, Results, Target, run
from tests.benchmarks.infilling.pass_rate import OURS, PLAIN, infilling_rows, measure_infilling
from tests.benchmarks.json_lines import JsonLines
from tests.benchmarks.samples import infilling_tasks


def infilling(
    *,
    tasks: Annotated[Path, typer.Option("--tasks", help="Infilling tasks with their tests (.jsonl.gz).")],
    num_tasks: Annotated[int, typer.Option("--prompts", min=1, help="Number of tasks, evenly spread.")] = 150,
    results: Results = None,
    minutes: Minutes = 1e9,
    target: Target = DEFAULT_TARGET,
    json: Json = False,
) -> None:
    """pass@1 of suggestions and of the raw model's continuation, by the tasks' own tests, confined."""
    until_s = time.monotonic() + minutes * 60
    found = infilling_tasks(tasks)
    chosen = [found[at * len(found) // num_tasks] for at in range(min(num_tasks, len(found)))]
    kept = JsonLines(results)
    with progress_bar(quiet=json) as report:
        engine = load_engine(EngineConfig(target=target), report)
        measure_infilling(engine, chosen, kept, partial(report, "Asking and testing"), until_s)
    rows = infilling_rows(kept)
    if not json:
        columns = ("model", "num_tasks", OURS, PLAIN, "num_won", "num_lost", "chance")
        show_rows("Share that passes", columns, [[str(row[name]) for name in columns] for row in rows])
    write_json({"bench": "infilling", "rows": rows})


if __name__ == "__main__":
    run(infilling)
