"""One request's answer as far as it has arrived, and the reader's interface to its connection.

Owns what waits to be read. Does not depend on frames.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Protocol

from completion_engine.errors import RemoteError
from completion_engine.remote.socket_transport import Wait


class Carrier(Protocol):
    """The connection that a stream belongs to."""

    def pump(self, wait: Wait) -> bool:
        """Read what arrives, for any stream; return False when time is up. Raises RemoteError."""

    def look(self) -> None:
        """Read what has arrived already."""

    def consumed(self, stream: Stream, num_window: int) -> None:
        """Free `num_window` bytes of the window."""

    def reset(self, stream: Stream) -> None:
        """Reset a stream."""


class Stream:
    """One request's answer as far as it has arrived. `status` is 0 before its headers."""

    def __init__(self, connection: Carrier, number: int) -> None:
        self._connection = connection
        self.number = number
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.chunks: deque[tuple[bytes, int]] = deque()  # with the window that each takes
        self.num_bytes = 0
        self.has_ended = False
        self.fault: RemoteError | None = None

    @property
    def has_answered(self) -> bool:
        """Whether the answer has begun to arrive."""
        return bool(self.status or self.has_ended or self.fault)

    def read(self, wait: Wait) -> bytes | None:
        """Return the next part of the body; empty at its end, None when time is up.

        Data that has arrived is returned even when time is up. Raises RemoteError, CancelledError.
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
        """Return the answer's status; 0 when time is up. Raises RemoteError."""
        while not self.status:
            if self.fault is not None:
                raise self.fault
            if not self._connection.pump(wait) or wait.is_over:
                break
        return self.status

    def drop(self) -> int:
        """Drop the unread data, and return the window that it took."""
        num_window = sum(num for _, num in self.chunks)
        self.chunks.clear()
        return num_window

    def reset(self) -> None:
        """Stop the server, and ignore the rest."""
        self._connection.reset(self)

    def close(self) -> None:
        """Do what `reset` does, unless the whole answer has arrived already."""
        self._connection.look()
        self.reset()
