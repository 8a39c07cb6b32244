"""The result files of this benchmark: one line for each file and program, and a last one for the machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from completion_engine.errors import UserError
from tests.benchmarks.keystrokes.file_run import FileRun


def read_results(path: Path) -> tuple[list[FileRun], dict[str, Any]]:
    """The runs of a result file and the facts of their machine. Raises UserError for another file."""
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [FileRun.from_json(line) for line in lines if "system" in line], dict(lines[-1])
    except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
        raise UserError(f"{path} holds no results: {error}.", advice="Name a file of --out.") from error


def write_line(path: Path, value: Mapping[str, Any]) -> None:
    """Append one object."""
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(value, ensure_ascii=True) + "\n")
