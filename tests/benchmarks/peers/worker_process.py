"""Another program's engine in a process of its own, on an interpreter of its own: started, asked, ended.

The dependencies of such an engine are not Slipstream's: any interpreter that has it serves. Owns the process
and the messages to it; `worker_program` is what runs there.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from completion_engine.errors import MachineError, UserError
from tests.benchmarks.peers.runs import Absent, PeerTask, Run


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that runs in a worker: its name in tables, and its source.

    `module` is imported there by the program's part `backend`; `package` brings it; `option` of the command
    line names an interpreter that has it.
    """

    name: str
    module: str
    package: str
    option: str
    backend: str

    @property
    def not_installed(self) -> str:
        """Why it is absent where no interpreter was named and this one does not have it."""
        return f"{self.package} is not installed here; name an interpreter that has it with {self.option}"


class Worker:
    """A running worker. One question at a time."""

    def __init__(self, engine: Engine, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self.engine = engine
        self._process = process
        self._errors = errors
        self.version = str(self._answer()["version"])

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one message. Raises MachineError when there is none, or it is an error."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(message) + "\n")
            stdin.flush()
        except OSError as error:
            with suppress(OSError):
                stdin.close()  # unwritten data must not be tried again at the end
            raise self._died() from error
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None
        line = stdout.readline()
        if not line:
            raise self._died()
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise self._wrong(f"It answers {line.strip()[:60]!r}.") from error
        if "error" in answer:
            raise self._wrong(f"{self.engine.name}: {answer['error']}")
        return answer

    def _died(self) -> MachineError:
        code = self._process.wait()
        self._errors.seek(0)
        last = (self._errors.read().strip().splitlines() or ["it said nothing"])[-1]
        return self._wrong(f"The {self.engine.name} process ended with code {code}: {last}")

    def _wrong(self, message: str) -> MachineError:
        return MachineError(message, advice=f"Check {self.engine.option}.")


@contextmanager
def running_worker(engine: Engine, python: Path | None) -> Iterator[Worker | Absent]:
    """A worker on the interpreter `python`, on this one where it has the module, or why there is none.

    Raises UserError when the interpreter that was named does not have it.
    """
    if python is None and importlib.util.find_spec(engine.module) is None:
        yield Absent(engine.name, engine.not_installed)
        return
    program = Path(__file__).with_name("worker_program.py")
    command = [str(python or sys.executable), str(program), engine.backend]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=errors, encoding="utf-8", errors="replace"
            )
        except OSError as error:
            raise UserError(
                f"{python} cannot be started ({error.strerror}).", advice="Name a Python interpreter."
            ) from error
        with process:
            try:
                yield _started(engine, process, errors, python)
            finally:
                process.kill()


def _started(
    engine: Engine, process: subprocess.Popen[str], errors: IO[str], python: Path | None
) -> Worker | Absent:
    try:
        return Worker(engine, process, errors)
    except MachineError as error:
        if python is None:
            return Absent(engine.name, error.message)
        raise UserError(
            f"{python} cannot run {engine.name}. {error.message}",
            advice=f"Name an interpreter that has {engine.package}.",
        ) from error


@dataclass(frozen=True, slots=True)
class WorkerPeer:
    """One model that a worker has loaded."""

    name: str
    worker: Worker
    end_ids: frozenset[int]

    def write(self, task: PeerTask, max_tokens: int) -> Run:
        """See `Peer.write`. Timed inside the worker."""
        message = {"op": "write", "name": self.name, "tokens": task.tokens, "max_tokens": max_tokens}
        return Run.from_json(self.worker.ask(message | {"end_ids": sorted(self.end_ids)}))
