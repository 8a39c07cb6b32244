"""The monitor of a long step: progress out, cancellation in; and child programs under it.

Owns child processes, not their work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from completion_engine.request import CancelledError, Progress

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Monitor:
    """One call's `report(what, done, total)` and `should_stop()`."""

    report: Progress = lambda _what, _done, _total: None
    should_stop: Callable[[], bool] = lambda: False

    @classmethod
    def of(cls, report: Progress | None, should_stop: Callable[[], bool] | None) -> Monitor:
        """A monitor of a caller's functions; None reports nothing, or never stops."""
        silent = cls()
        return cls(report or silent.report, should_stop or silent.should_stop)

    def check(self) -> None:
        """Raise CancelledError when the caller does not want the result any more."""
        if self.should_stop():
            raise CancelledError


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """How a program ended. A negative `exit_code` is the signal that ended it."""

    exit_code: int
    stdout: str
    stderr: str
    is_stalled: bool = False


@dataclass(frozen=True, slots=True)
class WorkerProgram:
    """What to run. It is given up when nothing moves for `stall_s` seconds."""

    command: Sequence[str]
    env: Mapping[str, str]
    stall_s: float


def worker(module: str, arguments: Sequence[str], env: Mapping[str, str], stall_s: float) -> WorkerProgram:
    """One of our own modules as a program, found wherever this package was imported from."""
    ours = str(Path(__file__).resolve().parents[2])
    search = os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH", ""))))
    return WorkerProgram(
        command=(*python(), "-m", module, *arguments),
        env={**os.environ, "PYTHONUTF8": "1", **env, "PYTHONPATH": search},
        stall_s=stall_s,
    )


def python() -> tuple[str, str]:
    """This interpreter. -P: a module in the folder the program happens to run in must not be imported."""
    return sys.executable, "-P"


def run_program(
    program: WorkerProgram, work: Path, job: Monitor, measure: Callable[[str], object]
) -> ProgramOutcome:
    """Run a program to its end, or end it when the job is stopped or it stands still.

    `measure` gets stdout so far, ten times a second; as long as its result changes the program is making
    progress. Output goes to files in `work`, so that a talkative program never blocks on a full pipe.
    """
    out, err = work / "stdout", work / "stderr"
    with out.open("wb") as out_file, err.open("wb") as err_file:
        child = subprocess.Popen(
            program.command, stdin=subprocess.DEVNULL, stdout=out_file, stderr=err_file, env=dict(program.env)
        )
        try:
            is_stalled = not _wait(child, lambda: measure(_text(out)), job, program.stall_s)
        finally:
            end_program(child)
    return ProgramOutcome(child.returncode, _text(out), _text(err), is_stalled)


def say(out: TextIO, **message: Any) -> None:
    """Write a worker's message: one JSON object a line."""
    print(json.dumps(message), file=out, flush=True)


def one_line(error: Exception) -> str:
    """Return an error for a message: its kind and its text."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def messages(stdout: str) -> list[dict[str, Any]]:
    """A worker's messages so far: one JSON object a line; the last line may be incomplete."""
    return [json.loads(line) for line in stdout.splitlines(keepends=True) if line.endswith("\n")]


def _wait(
    child: subprocess.Popen[bytes], measure: Callable[[], object], job: Monitor, stall_s: float
) -> bool:
    """Whether the program ended by itself."""
    seen, moved_at = measure(), time.monotonic()
    while child.poll() is None:
        job.check()
        now = measure()
        if now != seen:
            seen, moved_at = now, time.monotonic()
        if time.monotonic() - moved_at > stall_s:
            return False
        time.sleep(_POLL_S)
    return True


def end_program(child: subprocess.Popen[bytes]) -> None:
    """End a program that may have ended already; by force where it does not listen."""
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(timeout=2)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
