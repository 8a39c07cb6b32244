"""Pass times and marks of loads: a damaged file counts as empty, the mark of a live process does not."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from completion_engine.choice.choice import RECENT_LOADS, TRUSTED_LOADS, Passes
from completion_engine.choice.pass_log import FILE_NAME, MAX_LOADS, Attempts, PassLog


@pytest.fixture
def log(tmp_path: Path) -> PassLog:
    return PassLog(tmp_path / "models")


def test_the_quickest_of_the_last_loads_speaks(log: PassLog) -> None:
    log.record("small", "cpu", {1: 2.0, 8: 3.0, 16: 5.0})
    for ms in range(40, 40 - RECENT_LOADS, -1):
        log.record("small", "cpu", {8: ms})
    assert log.of("cpu") == {"small": Passes(41 - RECENT_LOADS, RECENT_LOADS)}


def test_models_and_settings_are_kept_apart(log: PassLog) -> None:
    log.record("small", "cpu", {8: 3.0})
    log.record("small", "battery", {8: 6.0})
    log.record("large", "cpu", {8: 9.0})
    assert log.of("cpu") == {"small": Passes(3.0, 1), "large": Passes(9.0, 1)}
    assert log.of("battery") == {"small": Passes(6.0, 1)}


def test_a_model_that_is_not_loaded_any_more_is_not_called_slow_for_ever(log: PassLog) -> None:
    """Its times may be those of a busy machine, and no load would correct them."""
    for _ in range(TRUSTED_LOADS):
        log.record("large", "cpu", {8: 1000.0})
    log.record("large", "battery", {8: 2000.0})
    for _ in range(MAX_LOADS - TRUSTED_LOADS):
        log.record("small", "cpu", {8: 3.0})
    assert log.of("cpu")["large"] == Passes(1000.0, TRUSTED_LOADS)
    log.record("small", "cpu", {8: 3.0})
    assert log.of("cpu")["large"].num_loads < TRUSTED_LOADS
    assert log.of("battery") == {"large": Passes(2000.0, 1)}


def test_passes_too_narrow_to_judge_by_are_left_out(log: PassLog) -> None:
    log.record("small", "cpu", {1: 2.0, 4: 3.0})
    assert log.of("cpu") == {}


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"loads": 3}', '{"loads": [[1, 2, 3]]}', '{"loads": [["a", "b", NaN]]}'],
)
def test_a_damaged_memory_is_none_and_is_written_anew(log: PassLog, tmp_path: Path, content: str) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / FILE_NAME).write_text(content)
    assert log.of("cpu") == {}
    log.record("small", "cpu", {8: 3.0})
    assert log.of("cpu") == {"small": Passes(3.0, 1)}


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file")
    log = PassLog(tmp_path / "models")
    log.record("small", "cpu", {8: 3.0})
    assert log.of("cpu") == {}


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


def test_three_loads_that_never_ended_are_enough(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path)
    for refused in ([], [], ["large"]):
        load_and_die(tmp_path)
        assert list(attempts.refused(["small", "large"])) == refused


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


def test_marks_in_a_folder_that_cannot_be_written_are_no_error(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path / "missing")
    with attempts.of("large"):
        pass
    assert attempts.refused(["large"]) == {}
