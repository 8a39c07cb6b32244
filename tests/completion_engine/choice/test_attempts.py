"""A model whose loading kills the process is not loaded a third time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from completion_engine.choice.attempts import Attempts

KILLED = """
import os, signal, sys
from pathlib import Path
from completion_engine.choice.attempts import Attempts
with Attempts(Path(sys.argv[1])).of("large"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def load_and_die(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False)
    assert done.returncode < 0


def test_two_loads_that_never_ended_are_enough(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path)
    load_and_die(tmp_path)
    assert attempts.refused(["small", "large"]) == {}
    load_and_die(tmp_path)
    assert list(attempts.refused(["small", "large"])) == ["large"]


def test_a_load_that_ends_takes_back_what_came_before(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path)
    load_and_die(tmp_path)
    with attempts.of("large"):
        pass
    load_and_die(tmp_path)
    assert attempts.refused(["large"]) == {}


def test_a_load_that_fails_in_order_is_none_that_killed(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path)
    for _ in range(3):
        with pytest.raises(MemoryError), attempts.of("large"):
            raise MemoryError
    assert attempts.refused(["large"]) == {}


def test_what_is_a_day_old_is_forgotten(tmp_path: Path) -> None:
    load_and_die(tmp_path)
    load_and_die(tmp_path)
    (mark,) = tmp_path.iterdir()
    os.utime(mark, (0, 0))
    assert Attempts(tmp_path).refused(["large"]) == {}


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path / "missing")
    with attempts.of("large"):
        pass
    assert attempts.refused(["large"]) == {}
