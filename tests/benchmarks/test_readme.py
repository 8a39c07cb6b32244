"""The list of benchmarks is complete."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent


def test_the_list_names_every_benchmark_that_can_be_run() -> None:
    files = (path for path in FOLDER.glob("*.py") if not path.name.startswith("test_"))
    programs = [path for path in files if '__name__ == "__main__"' in path.read_text("utf-8")]
    names = {path.stem for path in programs} | {path.parent.name for path in FOLDER.glob("*/__main__.py")}
    listed = re.findall(r"`python -m tests\.benchmarks\.(\w+)[ `]", (FOLDER / "README.md").read_text("utf-8"))
    assert sorted(listed) == sorted(names)
