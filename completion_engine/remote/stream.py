"""One request's answer, as far as it is here, and what its reader asks of the connection that it comes by.

Owns what waits to be read. Must not know frames.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Protocol

from completion_engine.errors import RemoteError
from completion_engine.remote.socket_transport import Wait


class Carrier(Protocol):
    """The connection that brings it."""

    def pump(self, wait: Wait) -> bool:
        """Take in what comes, for whichever stream; False when time is up. Raises RemoteError."""

    def look(self) -> None:
        """Take in what is here already."""

    def consumed(self, stream: Stream, num_window: int) -> None:
        """So much of the window is free again."""

    def reset(self, stream: Stream) -> None:
        """Nobody wants the rest."""


class Stream:
    """One request's answer, as far as it is here. `status` is 0 until its headers have come."""

    def __init__(self, connection: Carrier, number: int) -> None:
        self._connection = connection
        self.number = number
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.chunks: deque[tuple[bytes, int]] = deque()  # with what each takes of the window
        self.num_bytes = 0
        self.has_ended = False
        self.fault: RemoteError | None = None

    @property
    def has_answered(self) -> bool:
        """Whether anything of the answer is here."""
        return bool(self.status or self.has_ended or self.fault)

    def read(self, wait: Wait) -> bytes | None:
        """What of the body has come; nothing at its end, None when time is up.

        What is here is given also when time is up. Raises RemoteError, CancelledError.
        """
        wait.check()
        while not (self.chunks or self.has_ended or self.fault):
            if not self._connection.pump(wait) or wait.is_over:
                break
        if self.chunks:
            data, num_window = self.chunks.popleft()
            self._connection.consumed(self, num_window)
            return data
        if self.fault is not None:
            raise self.fault
        return b"" if self.has_ended else None

    def wait_for_status(self, wait: Wait) -> int:
        """The answer's status; 0 when time is up. Raises RemoteError."""
        while not self.status:
            if self.fault is not None:
                raise self.fault
            if not self._connection.pump(wait) or wait.is_over:
                break
        return self.status

    def drop(self) -> int:
        """Forget what waits to be read; how much of the window it took."""
        num_window = sum(num for _, num in self.chunks)
        self.chunks.clear()
        return num_window

    def reset(self) -> None:
        """Nobody wants the rest: the server is told so, and nothing that comes counts."""
        self._connection.reset(self)

    def close(self) -> None:
        """As `reset`; nothing is said where all of it is here already."""
        self._connection.look()
        self.reset()
