"""Infilling tasks from a file, as prompts for measurements."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

from completion_engine.errors import UserError
from lsp_server.commands.sample_positions import Sample


@dataclass(frozen=True, slots=True)
class InfillingTask:
    """A hole in a function, and the program that tests the function called `entry_point`."""

    sample: Sample
    entry_point: str
    test: str


def infilling_tasks(path: Path) -> list[InfillingTask]:
    """Infilling tasks (JSON lines, gzip) with the fields task_id, prompt, suffix, canonical_solution.

    The line of the hole gets a line end of its own, as it has in an editor.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            tasks = [json.loads(line) for line in lines]
        return [
            InfillingTask(
                Sample(
                    t["task_id"],
                    t["task_id"],
                    "python",
                    t["prompt"],
                    "\n" + t["suffix"],
                    t["canonical_solution"].rstrip("\n"),
                ),
                t.get("entry_point", ""),
                t.get("test", ""),
            )
            for t in tasks
        ]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"{path} holds no infilling tasks: {error!r}.", advice="Name a .jsonl.gz file of tasks."
        ) from error


def from_tasks(path: Path) -> list[Sample]:
    """The holes of infilling tasks."""
    return [task.sample for task in infilling_tasks(path)]
