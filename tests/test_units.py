"""The tests that share a process, and their order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.units import FIRST, unit_of, urgency

# Each test sees that the one before it ran in the same process.
NUMBERED = """
import pytest

last = -1

@pytest.mark.parametrize("number", range(12))
def test_numbered(number):
    global last
    assert number == last + 1
    last = number
"""


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        ("tests/a/test_b.py::test_c[x::y]", "tests/a/test_b.py"),
        ("tests/editors/neovim/test_neovim_typing.py::test_c[0.11-a]", "tests/editors/neovim/ 0.11"),
        ("tests/editors/neovim/test_neovim_plugin.py::test_c[0.12]", "tests/editors/neovim/ 0.12"),
        ("tests/editors/vscode/test_package.py::test_c", "tests/editors/vscode/"),
        ("tests/editors/vscode/test_fresh_profile.py::test_c", "tests/editors/vscode/test_fresh_profile.py"),
        ("tests/editors/test_checks.py::test_c", "tests/editors/test_checks.py"),
        ("tests/fleet/replicas/test_promises.py::test_c", "tests/fleet/replicas/"),
        ("tests/fleet/test_front.py::test_c", "tests/fleet/test_front.py"),
        ("tests/completion_engine/gpu/drafting/test_a.py::test_b", "tests/completion_engine/gpu/"),
    ],
)
def test_what_shares_a_process(test: str, unit: str) -> None:
    assert unit_of(test) == unit


def test_what_takes_longest_comes_first() -> None:
    units = [start if start.endswith(".py") else f"{start}test_b.py" for start in FIRST]
    units.append("tests/a/test_b.py")
    assert [urgency(unit) for unit in units] == sorted({urgency(unit) for unit in units})


def test_a_unit_runs_in_one_process_and_in_order(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / f"test_{name}.py").write_text(NUMBERED)
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-n", "2"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "-c", str(tmp_path / "pytest.ini"), str(tmp_path)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "36 passed" in done.stdout
