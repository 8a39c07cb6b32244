"""A llama-server process, started as the manual of llama.vim says, and its /infill endpoint.

Owns the process and its port. Has no access to what an editor sends.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from completion_engine.errors import MachineError
from tests.parts import ROOT, Parts

PEERS = Parts(ROOT / ".peers", "llama-server")
PART, PROGRAM, AVX2_PROGRAM = "llama-server", "llama-server", "llama-server-avx2"
BENCH, AVX2_BENCH = "llama-bench", "llama-bench-avx2"
# From "How to start the server" in llama.vim's manual, without what concerns a GPU. One editor
# needs one slot.
RECOMMENDED = ("--ubatch-size", "512", "--batch-size", "1024", "--ctx-size", "0", "--cache-reuse", "256")
_ONE_EDITOR = ("--parallel", "1", "--no-ui")
_LOADING_S = 180.0
_ANSWER_S = 300.0


class LlamaServer:
    """A server that answers on this machine."""

    def __init__(self, port: int, version: str) -> None:
        self.version = version
        self._port = port

    @property
    def infill_url(self) -> str:
        """The address that `infill` sends its requests to."""
        return f"http://127.0.0.1:{self._port}/infill"

    def infill(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request. Raises MachineError when it is not one."""
        try:
            with closing(
                http.client.HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER_S)
            ) as connection:
                connection.request("POST", "/infill", json.dumps(body), {"Content-Type": "application/json"})
                response = connection.getresponse()
                text = response.read()
            if response.status != http.client.OK:
                raise MachineError(f"llama-server answered {response.status}: {text[:300]!r}")
            return dict(json.loads(text))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise MachineError(f"llama-server did not answer: {error}") from error

    def wait_idle(self) -> None:
        """Wait until it computes nothing. Raises MachineError when it does not answer or never ends."""
        deadline = time.monotonic() + _ANSWER_S
        while any(slot["is_processing"] for slot in self._slots()):
            if time.monotonic() > deadline:
                raise MachineError("llama-server did not end its work.")
            time.sleep(0.1)

    def _slots(self) -> list[dict[str, Any]]:
        try:
            with self._connection(5.0) as connection:
                connection.request("GET", "/slots")
                return list(json.loads(connection.getresponse().read()))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise MachineError(f"llama-server did not answer: {error}") from error

    def is_ready(self) -> bool:
        """Whether the model is loaded."""
        try:
            with self._connection(5.0) as connection:
                connection.request("GET", "/health")
                return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False

    def _connection(self, timeout_s: float) -> closing[http.client.HTTPConnection]:
        return closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=timeout_s))


@contextmanager
def running_llama_server(program: Path, model: Path) -> Iterator[LlamaServer]:
    """A server of a GGUF file that has answered one request; it ends with the block. Raises MachineError."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(program), "-m", str(model), "--host", "127.0.0.1", "--port", str(port)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, *RECOMMENDED, *_ONE_EDITOR],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            server = LlamaServer(port, version_of(program))
            deadline = time.monotonic() + _LOADING_S
            while not server.is_ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise MachineError(f"{program} did not start: {_last_line(log.fileno())}")
                time.sleep(0.1)
            server.infill({"input_prefix": "def add(a, b):\n", "input_suffix": "\n", "n_predict": 8})
            yield server
        finally:
            process.terminate()
            process.wait()


def version_of(program: Path) -> str:
    """What `--version` prints first."""
    done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False)
    return ((done.stdout + done.stderr).strip().splitlines() or ["unknown"])[0].removeprefix("version: ")


def _last_line(log: int) -> str:
    size = os.fstat(log).st_size
    lines = os.pread(log, 2000, max(0, size - 2000)).decode(errors="replace").strip().splitlines()
    return (lines or ["it printed nothing"])[-1]
