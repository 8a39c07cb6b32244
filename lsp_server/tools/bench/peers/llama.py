"""llama.cpp as a peer, through llama-cpp-python in a worker process, on the model store's own GGUF file.

llama-cpp-python is no dependency: any interpreter that has it serves. Knows the worker's messages.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from completion_engine.errors import MachineError, UserError
from completion_engine.models import ModelStore
from completion_engine.models.catalogue import CATALOGUE
from completion_engine.models.paths import path_of
from lsp_server.tools.bench.peers.runs import Absent, Peer, PeerTask, Run

_PLAIN = "llama.cpp"
_LOOKUP = "llama.cpp prompt lookup"
_NOT_INSTALLED = "llama-cpp-python is not installed here; name an interpreter that has it with --llama-python"


class LlamaWorker:
    """A running worker. One question at a time."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process = process
        self._errors = errors
        self.version = str(self._answer()["version"])

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one message. Raises MachineError when there is none, or it is an error."""
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - opened as a pipe
        try:
            stdin.write(json.dumps(message) + "\n")
            stdin.flush()
        except OSError as error:
            with suppress(OSError):
                stdin.close()  # what it could not write is not to be tried again at the end
            raise self._died() from error
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101 - opened as a pipe
        line = stdout.readline()
        if not line:
            raise self._died()
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise MachineError(
                f"It answers {line.strip()[:60]!r}.", advice="Check --llama-python."
            ) from error
        if "error" in answer:
            raise MachineError(f"llama.cpp: {answer['error']}", advice="Check --llama-python.")
        return answer

    def _died(self) -> MachineError:
        code = self._process.wait()
        self._errors.seek(0)
        last = (self._errors.read().strip().splitlines() or ["it said nothing"])[-1]
        return MachineError(
            f"The llama.cpp process ended with code {code}: {last}", advice="Check --llama-python."
        )


@contextmanager
def llama_worker(python: Path | None) -> Iterator[LlamaWorker | Absent]:
    """A worker on the interpreter `python`, on this one where it has llama_cpp, or why there is none.

    Raises UserError when the interpreter that was named does not have it.
    """
    if python is None and importlib.util.find_spec("llama_cpp") is None:
        yield Absent(_PLAIN, _NOT_INSTALLED)
        return
    program = [str(python or sys.executable), str(Path(__file__).with_name("llama_worker.py"))]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                program, stdin=pipe, stdout=pipe, stderr=errors, encoding="utf-8", errors="replace"
            )
        except OSError as error:
            raise UserError(
                f"{python} cannot be started ({error.strerror}).", advice="Name a Python interpreter."
            ) from error
        with process:
            try:
                yield _started(process, errors, python)
            finally:
                process.kill()


def _started(process: subprocess.Popen[str], errors: IO[str], python: Path | None) -> LlamaWorker | Absent:
    try:
        return LlamaWorker(process, errors)
    except MachineError as error:
        if python is None:
            return Absent(_PLAIN, error.message)
        raise UserError(
            f"{python} cannot run llama.cpp. {error.message}",
            advice="Name an interpreter that has llama-cpp-python.",
        ) from error


@dataclass(frozen=True, slots=True)
class LlamaPeer:
    """One model that the worker has loaded."""

    name: str
    worker: LlamaWorker
    end_ids: frozenset[int]

    def write(self, task: PeerTask, max_tokens: int) -> Run:
        """See `Peer.write`. Timed inside the worker."""
        message = {"op": "write", "name": self.name, "tokens": task.tokens, "max_tokens": max_tokens}
        return Run.from_json(self.worker.ask(message | {"end_ids": sorted(self.end_ids)}))


def num_threads() -> int:
    """Threads that llama.cpp gets: every core, as torch takes by itself."""
    return os.cpu_count() or 1


def lookup_tokens(*, on_gpu: bool) -> int:
    """Tokens that its prompt lookup drafts: what the binding's own documentation advises."""
    return 10 if on_gpu else 2


def gguf_of(target: str, store: ModelStore | None = None) -> Path | str:
    """The GGUF file that the target was made from, or why there is none."""
    path = path_of(target)
    if path is not None and path.suffix == ".gguf":
        return path
    if target not in CATALOGUE:
        return f"{target} was not made from a GGUF file, and llama.cpp is to run the very same model"
    try:
        return (store or ModelStore()).path(target)
    except UserError as error:
        return error.message


def llama_peers(
    worker: LlamaWorker | Absent, target: str, num_positions: int, end_ids: frozenset[int], *, on_gpu: bool
) -> list[Peer | Absent]:
    """llama.cpp greedy and with its prompt lookup, each with a context of `num_positions`."""
    gguf = gguf_of(target)
    why = worker.reason if isinstance(worker, Absent) else gguf
    if isinstance(worker, Absent) or isinstance(why, str):
        return [Absent(name, str(why)) for name in (_PLAIN, _LOOKUP)]
    found: list[Peer | Absent] = []
    for name, num_lookup_tokens in ((_PLAIN, 0), (_LOOKUP, lookup_tokens(on_gpu=on_gpu))):
        message = {"op": "load", "name": name, "path": str(gguf), "num_lookup_tokens": num_lookup_tokens}
        sizes = {"num_positions": num_positions, "num_threads": num_threads(), "on_gpu": on_gpu}
        try:
            worker.ask(message | sizes)
            found.append(LlamaPeer(name, worker, end_ids))
        except MachineError as error:
            found.append(Absent(name, error.message))
    return found
