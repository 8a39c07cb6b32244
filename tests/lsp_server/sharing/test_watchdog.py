"""A host that hangs is ended and leaves its traceback; one that is stopped, or only slow, is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

HOST = """
import re, sys, threading, time
from lsp_server.sharing import watchdog
watchdog.BEAT_S, watchdog.BUSY_CPU_S, watchdog.SILENT_BEATS = 0.05, 0.5, int(sys.argv[2])
watchdog.start()
def hang():
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


def start(work: str, num_silent_beats: int = 100_000) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", HOST, work, str(num_silent_beats)]
    host = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert host.stdout is not None
    assert host.stdout.readline() == "beats\n"
    return host


@pytest.mark.parametrize(("work", "num_silent_beats"), [("hang", 100_000), ("wait", 20)])
def test_a_host_that_hangs_is_ended_and_says_where(work: str, num_silent_beats: int) -> None:
    host = start(work, num_silent_beats)
    _, said = host.communicate(timeout=300)
    assert host.returncode == -signal.SIGKILL
    assert f"in {work}" in said
    assert "CRITICAL: the host hung" in said


def test_a_host_that_was_stopped_for_long_goes_on() -> None:
    host = start("nothing", 20)
    os.kill(host.pid, signal.SIGSTOP)
    time.sleep(3)  # three times what it may be silent for
    os.kill(host.pid, signal.SIGCONT)
    with pytest.raises(subprocess.TimeoutExpired):
        host.wait(1)
    host.kill()
    host.communicate()


def test_a_host_that_works_hard_and_beats_goes_on() -> None:
    host = start("burn_beside")
    with pytest.raises(subprocess.TimeoutExpired):
        host.wait(3)
    host.kill()
    host.communicate()


def test_the_watchdog_ends_with_its_host() -> None:
    import psutil

    host = start("nothing")
    (watchdog,) = psutil.Process(host.pid).children()
    host.kill()
    host.communicate()  # its end of the pipe is closed when the watchdog has ended too
    watchdog.wait(10)
