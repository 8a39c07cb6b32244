"""What shares a process, and that what measures time shares the machine with no other test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.units import TIMING, unit_of, urgency

SLOW = """
import time
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(12))
def test_slow(number):
    mark = Path(__file__).with_suffix(".running")
    mark.touch()
    time.sleep(0.05)
    mark.unlink()
"""
TIMED = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(3))
def test_timed(number):
    assert not list(Path(__file__).parent.glob("*.running"))
"""


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        ("tests/a/test_b.py::test_c[x::y]", "tests/a/test_b.py"),
        ("tests/a/test_b_speed.py::test_c", TIMING),
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


def test_editors_come_first_and_timing_last() -> None:
    gpu, vscode = "tests/completion_engine/gpu/", "tests/editors/vscode/"
    units = [TIMING, "tests/a/test_b.py", "tests/e2e/test_b.py", "tests/editors/test_b.py", gpu, vscode]
    assert sorted(units, key=urgency) == units[::-1]


def test_tests_that_measure_time_run_when_all_others_have_ended(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / f"test_{name}.py").write_text(SLOW)
        (tmp_path / f"test_{name}_speed.py").write_text(TIMED)
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    timing: measures time\n")
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
    assert "45 passed" in done.stdout
    order = [line for line in done.stdout.splitlines() if "PASSED" in line]
    assert all("test_timed" in line for line in order[-9:])
    assert len({line.split()[0] for line in order[-9:]}) == 1  # the worker
