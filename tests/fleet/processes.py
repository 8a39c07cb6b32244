"""A server process of a fleet: started with a log of its own, waited for, and ended for certain.

Owns the process group and the log.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

POLL_S = 0.1
ANSWER_S = 60.0
READY_S = 600.0  # longest time in which a busy machine starts a model


class StartError(Exception):
    """The server did not come up; the message ends with what it said last."""


class ServerProcess:
    """A command that serves HTTP at `url`, with all processes that it starts."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], url: str, log: Path) -> None:
        self.url, self.log = url, log
        self._command, self._env = command, env
        self.start()

    def start(self) -> None:
        """Start it, also once more after `kill`."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                env={**os.environ, **self._env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_ready(self, path: str = "/health") -> None:
        """Until it answers 200 at `path`. Raises StartError."""
        until = time.monotonic() + READY_S
        while not self.answers(path):
            if self._process.poll() is not None or time.monotonic() > until:
                raise StartError(f"{self.url} is not ready:\n{self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(POLL_S)

    def answers(self, path: str) -> bool:
        """Whether there is an answer 200 at `path` now."""
        try:
            return self._get(path)[0] == 200
        except (OSError, HTTPException):
            return False

    def read(self, path: str) -> str:
        """What it says at `path`."""
        return self._get(path)[1]

    def _get(self, path: str) -> tuple[int, str]:
        with closing(HTTPConnection(urlsplit(self.url).netloc, timeout=ANSWER_S)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def kill(self) -> None:
        """As when its machine loses power: no process of it says anything more."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def is_running(self) -> bool:
        """Whether the process that was started still is."""
        return self._process.poll() is None


def free_port() -> int:
    """A free port of the loopback."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
