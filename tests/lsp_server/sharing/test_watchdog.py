"""A host that hangs is ended and leaves its traceback; one that is stopped, or only slow, is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_server.sharing import hangs
from lsp_server.sharing.watchdog import NUM_SLOTS, Pulse

HOST = """
import re, sys, threading, time
from lsp_server.sharing import watchdog
watchdog.BEAT_S, watchdog.BUSY_CPU_S, watchdog.SILENT_BEATS = 0.05, 0.5, int(sys.argv[2])
watchdog.start()
def hang():
    watchdog.work_on("/a/folder")
    re.match(r"(a+)+$", "a" * 64 + "b")
def wait():
    time.sleep(1000)
def burn_beside():
    threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
for _ in range(5):
    watchdog.beat()
    time.sleep(0.05)
print("beats", flush=True)
work = globals().get(sys.argv[1])
if work is not None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    if sys.argv[1] == "wait":
        thread.join()
while True:
    watchdog.beat()
    time.sleep(0.05)
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path


def start(work: str, num_silent_beats: int = 100_000) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", HOST, work, str(num_silent_beats)]
    host = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert host.stdout is not None
    assert host.stdout.readline() == "beats\n"
    return host


@pytest.mark.parametrize(("work", "num_silent_beats"), [("hang", 100_000), ("wait", 20)])
def test_a_host_that_hangs_is_ended_and_says_where(state: Path, work: str, num_silent_beats: int) -> None:
    host = start(work, num_silent_beats)
    _, said = host.communicate(timeout=300)
    assert host.returncode == -signal.SIGKILL
    assert f"in {work}" in said
    assert "CRITICAL: the host hung" in said
    assert ("at work on /a/folder" in said) == (work == "hang")
    assert hangs._read().keys() == ({"/a/folder"} if work == "hang" else set())


def test_a_host_that_was_stopped_for_long_goes_on(state: Path) -> None:
    host = start("nothing", 20)
    os.kill(host.pid, signal.SIGSTOP)
    time.sleep(3)  # three times what it may be silent for
    os.kill(host.pid, signal.SIGCONT)
    with pytest.raises(subprocess.TimeoutExpired):
        host.wait(1)
    host.kill()
    host.communicate()


def test_a_host_that_works_hard_and_beats_goes_on(state: Path) -> None:
    host = start("burn_beside")
    with pytest.raises(subprocess.TimeoutExpired):
        host.wait(3)
    host.kill()
    host.communicate()


def test_the_watchdog_ends_with_its_host(state: Path) -> None:
    import psutil

    host = start("nothing")
    (watchdog,) = psutil.Process(host.pid).children()
    host.kill()
    host.communicate()  # its end of the pipe is closed when the watchdog has ended too
    watchdog.wait(10)


def test_a_folder_is_set_aside_by_its_second_hang_and_may_try_again(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_aside in (False, True, True):
        hangs.record("/a")
        assert hangs.is_set_aside("/a") == is_aside
    assert not hangs.is_set_aside("/b")
    now_s = time.time()
    for later_s in (hangs.MEMORY_S + 1, -hangs.MEMORY_S - 1):
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda later_s=later_s: now_s + later_s)
            assert not hangs.is_set_aside("/a")
    hangs.forgive("/a")
    assert not hangs.is_set_aside("/a")


@pytest.mark.parametrize("content", ["", "[1]", '{"/a": 1}', '{"/a": ["x", "y"]}', "[" * 100_000, "\udcff"])
def test_a_damaged_list_of_hangs_is_an_empty_one(state: Path, content: str) -> None:
    hangs.record("/a")
    hangs._path().write_text(content, errors="surrogateescape")
    assert not hangs.is_set_aside("/a")
    hangs.record("/b")
    assert hangs._read().keys() == {"/b"}


def test_no_more_folders_are_kept_than_the_bound(state: Path) -> None:
    for number in range(hangs.MAX_FOLDERS + 3):
        hangs.record(f"/{number}")
    assert len(hangs._read()) == hangs.MAX_FOLDERS


def test_each_living_thread_has_its_subject_and_places_are_used_again() -> None:
    pulse = Pulse()
    for number in range(3 * NUM_SLOTS):
        thread = threading.Thread(target=pulse.work_on, args=(f"/{number}",))
        thread.start()
        thread.join()
    pulse.work_on("/first")
    pulse.work_on("/second" + "x" * 5000)
    assert pulse.subjects()[threading.get_native_id()].startswith("/secondxxx")
