"""pass@1 of infilling tasks: the share of functions that pass the task's own tests with the suggestion.

One greedy suggestion per task: for an explicit request, and from the raw model's plain continuation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from completion_engine.engine import CompletionEngine
from completion_engine.request import CompletionRequest
from tests.benchmarks.infilling.sandbox import runs_to_its_end
from tests.benchmarks.json_lines import JsonLines
from tests.benchmarks.quality.results import sign_test
from tests.benchmarks.quality.run import plain_text
from tests.benchmarks.samples import InfillingTask

OURS, PLAIN = "Slipstream", "plain continuation"


def measure_infilling(
    engine: CompletionEngine,
    tasks: Sequence[InfillingTask],
    results: JsonLines,
    progress: Callable[[int, int], None],
    until_s: float = float("inf"),
) -> None:
    """Add to `results` what is not there yet; no new task is begun `until_s`."""
    facts = engine.describe()
    model = f"{facts['target']} {facts['dtype']}"
    known = {(found["model"], found["task"]) for found in results.objects}
    for num_done, task in enumerate(tasks):
        name = task.sample.name
        if (model, name) not in known:
            if time.monotonic() >= until_s:
                return
            written = {OURS: _suggestion(engine, task), PLAIN: _continuation(engine, task)}
            passed = {way: _passes(task, text) for way, text in written.items()}
            results.add({"model": model, "task": name, "written": written, "passed": passed})
        progress(num_done + 1, len(tasks))


def infilling_rows(results: JsonLines) -> list[dict[str, Any]]:
    """A row for each model: the share that passes by way, and tasks that one of the two alone passed."""
    rows = []
    for model in sorted({found["model"] for found in results.objects}):
        passed = [found["passed"] for found in results.objects if found["model"] == model]
        num_won = sum(one[OURS] and not one[PLAIN] for one in passed)
        num_lost = sum(one[PLAIN] and not one[OURS] for one in passed)
        shares = {way: round(sum(one[way] for one in passed) / len(passed), 3) for way in (OURS, PLAIN)}
        split = {"num_won": num_won, "num_lost": num_lost, "chance": sign_test(num_won, num_lost)}
        rows.append({"model": model, "num_tasks": len(passed), **shares, **split})
    return rows


def _suggestion(engine: CompletionEngine, task: InfillingTask) -> str:
    sample = task.sample
    request = CompletionRequest(
        sample.prefix,
        sample.suffix,
        sample.language,
        sample.document,
        deadline_ms=0,
        patience_ms=float("inf"),
    )
    text = engine.complete(request).text
    engine.forget(sample.document)
    return text


def _continuation(engine: CompletionEngine, task: InfillingTask) -> str:
    """As the benchmark asks: all of the line is missing, its end too."""
    document = f"plain {task.sample.document}"
    text, _ = plain_text(engine, replace(task.sample, suffix=task.sample.suffix.removeprefix("\n")), document)
    engine.forget(document)
    return text.partition("\n")[0]


def _passes(task: InfillingTask, text: str) -> bool:
    function = task.sample.prefix + text + task.sample.suffix
    return runs_to_its_end(f"{function}\n{task.test}\ncheck({task.entry_point})")
