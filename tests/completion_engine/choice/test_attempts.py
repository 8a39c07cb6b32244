"""A model whose loading kills the process twice gets new files, and after a third time it is not loaded."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from completion_engine.choice.pass_log import Attempts

KILLED = """
import os, signal, sys
from pathlib import Path
from completion_engine.choice.pass_log import Attempts
with Attempts(Path(sys.argv[1])).of("large"):
    os.kill(os.getpid(), signal.SIGKILL)
"""
UNTIL_TOLD = """
import sys
from pathlib import Path
from completion_engine.choice.pass_log import Attempts
with Attempts(Path(sys.argv[1])).of("large"):
    print("loading", flush=True)
    sys.stdin.read()
"""
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


def load_and_die(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False)
    assert done.returncode < 0


def test_files_are_made_anew_after_two_loads_that_never_ended_and_three_are_enough(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path)
    for needs_new_files, refused in ((False, []), (True, []), (True, ["large"])):
        load_and_die(tmp_path)
        assert attempts.needs_new_files("large") == needs_new_files
        assert list(attempts.refused(["small", "large"])) == refused
    assert not attempts.needs_new_files("small")


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


def test_loads_under_way_are_none_that_killed(tmp_path: Path) -> None:
    load_and_die(tmp_path)
    with contextlib.ExitStack() as loads:
        for _ in range(3):
            loads.enter_context(Attempts(tmp_path).of("large"))
        assert Attempts(tmp_path).refused(["large"]) == {}


def test_who_ends_in_order_does_not_speak_for_a_load_under_way(tmp_path: Path) -> None:
    """A running load of another process may still kill that process."""
    with subprocess.Popen([sys.executable, "-c", UNTIL_TOLD, str(tmp_path)], **PIPES) as other:
        assert other.stdout.readline() == b"loading\n"
        with Attempts(tmp_path).of("large"):
            pass
        other.kill()
    load_and_die(tmp_path)
    load_and_die(tmp_path)
    assert list(Attempts(tmp_path).refused(["large"])) == ["large"]


@pytest.mark.parametrize(
    "name", ["large.loading", "large.7.loading", "large.x-y-z.loading", "large.7-0-a.loading"]
)
def test_a_file_that_names_no_process_is_no_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert Attempts(tmp_path).refused(["large"]) == {}


def test_the_number_of_a_process_that_died_may_be_another_s(tmp_path: Path) -> None:
    for mark in "abc":
        (tmp_path / f"large.{os.getpid()}-0-{mark * 32}.loading").touch()
    assert list(Attempts(tmp_path).refused(["large"])) == ["large"]


def test_a_model_s_name_may_begin_as_another_s(tmp_path: Path) -> None:
    for _ in range(3):
        load_and_die(tmp_path)
    assert Attempts(tmp_path).refused(["lar", "large.1", "larg"]) == {}


def test_what_is_a_day_old_is_forgotten(tmp_path: Path) -> None:
    for _ in range(3):
        load_and_die(tmp_path)
    assert Attempts(tmp_path).refused(["large"])
    for mark in tmp_path.iterdir():
        os.utime(mark, (0, 0))
    assert Attempts(tmp_path).refused(["large"]) == {}


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path / "missing")
    with attempts.of("large"):
        pass
    assert attempts.refused(["large"]) == {}
