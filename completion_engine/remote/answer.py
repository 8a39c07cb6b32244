"""One request to a team's servers and its answer as far as it has arrived.

A thread of each request sends it and receives; the reader waits for that as long as it likes, and leaves at
once. Closing the connection is what stops a server. The server is hostile: the standard library bounds lines
and the number of headers, and the body is counted.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, IncompleteRead

from completion_engine.errors import RemoteError
from completion_engine.remote.connections import Connections, silent
from completion_engine.request import Cancellation, CancelledError, ShouldStop

MAX_BODY_BYTES = 4 << 20
_AT_ONCE = 64 << 10
_TAIL_S = 1.0  # for what follows an answer's last event
_POLL_S, _LONGEST_S = 0.1, 3600.0


@dataclass(frozen=True, slots=True)
class Wait:
    """The end of a wait in `time.perf_counter()` seconds, and the ways to end it earlier.

    A cancellation ends it at once, `should_stop` within a tenth of a second.
    """

    until_s: float
    cancellation: Cancellation = field(default_factory=Cancellation)
    should_stop: ShouldStop | None = None

    @classmethod
    def seconds(cls, seconds: float, *, should_stop: ShouldStop | None = None) -> Wait:
        """Return a wait of this length from now on."""
        return cls(time.perf_counter() + seconds, should_stop=should_stop)

    def check(self) -> None:
        """Check whether to go on. Raises CancelledError once the wait is cancelled."""
        self.cancellation.check()
        if self.should_stop is not None and self.should_stop():
            raise CancelledError

    @property
    def left_s(self) -> float:
        """Seconds until the next look, at least 0."""
        longest_s = _POLL_S if self.should_stop else _LONGEST_S
        return max(0.0, min(self.until_s - time.perf_counter(), longest_s))

    @property
    def is_over(self) -> bool:
        """Whether time is up."""
        return time.perf_counter() >= self.until_s


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it is sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


class Answer:
    """The answer to one request, which is sent at once. `status` is 0 before its headers."""

    def __init__(self, connections: Connections, request: Request) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.has_ended = False
        self._connections, self._changed = connections, connections.changed
        self._authority = connections.endpoint.authority
        self._data = bytearray()
        self._num_bytes = 0
        self._fault: RemoteError | None = None
        self._socket: socket.socket | None = None  # while this request uses it
        self._is_closed = False
        threading.Thread(target=self._run, args=(request,), name="remote-answer", daemon=True).start()

    def wait_for_status(self, wait: Wait) -> int:
        """Return the answer's status; 0 when time is up. Raises RemoteError, CancelledError."""
        self._wait(lambda: bool(self.status or self._fault), wait)
        if not self.status and self._fault is not None:
            raise self._fault
        return self.status

    def read(self, wait: Wait) -> bytes | None:
        """Return what has arrived of the body; empty at its end, None when time is up.

        Data that has arrived is returned even when time is up. Raises RemoteError, CancelledError.
        """
        self._wait(lambda: bool(self._data or self.has_ended or self._fault), wait)
        with self._changed:
            data, self._data = bytes(self._data), bytearray()
            if data or self.has_ended:
                return data
        if self._fault is not None:
            raise self._fault
        return None

    def whole(self, wait: Wait, max_bytes: int) -> bytes:
        """Return all of the body. Raises RemoteError if it is too long, breaks off, or takes too long."""
        body = bytearray()
        while (data := self.read(wait)) and not wait.is_over:
            body += data
            if len(body) > max_bytes:
                self.close()
                raise invalid_answer(self._authority, "it does not end")
        if data != b"":
            self.close()
            raise silent(self._authority)
        return bytes(body)

    def finish(self) -> None:
        """Let the last bytes come, so that the connection can be used again; but not for long."""
        if not self.has_ended:
            timer = threading.Timer(_TAIL_S, self.close)
            timer.daemon = True
            timer.start()

    def close(self) -> None:
        """Stop the server, unless the whole answer has arrived."""
        with self._changed:
            self._is_closed = True
            if self._socket is not None:
                # Ends the other thread's wait for data and the server's connection; that thread closes it.
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # not TLS's own, which it uses
            self._changed.notify_all()

    def _wait(self, is_ready: Callable[[], bool], wait: Wait) -> None:
        """Wait until something is ready or time is up. Raises CancelledError."""
        no_more = wait.cancellation.when_cancelled(self._connections.wake)
        try:
            with self._changed:
                wait.check()
                while not is_ready() and not wait.is_over:
                    self._changed.wait(wait.left_s)
                    wait.check()
        finally:
            no_more()

    def _run(self, request: Request) -> None:
        """Send the request and receive the answer, on a thread of its own."""
        fault: RemoteError | None = None
        try:
            connection = self._connections.take(lambda: self._is_closed)
            if connection is not None:
                self._use(connection, request)
        except RemoteError as error:
            fault = error
        except (OSError, HTTPException, ValueError) as error:
            fault = _fault_of(self._authority, error)
        with self._changed:
            self._fault, self.has_ended = fault, fault is None
            self._changed.notify_all()

    def _use(self, connection: HTTPConnection, request: Request) -> None:
        """Exchange request and answer on a connection, which is kept if it can be used again."""
        is_kept = True
        try:
            if self._hold(connection.sock):
                is_kept = False
                is_kept = self._receive(connection, request)
        finally:
            self._hold(None)
            if is_kept:
                self._connections.give(connection)
            else:
                connection.close()

    def _receive(self, connection: HTTPConnection, request: Request) -> bool:
        """Return whether the connection can be used again."""
        headers = {"Host": self._authority, **request.headers}
        with contextlib.suppress(OSError):  # a server may answer before it has the whole body
            connection.request(request.method, request.path, request.body or None, headers)
        response = connection.getresponse()
        with response:
            with self._changed:
                self.headers = {name.lower(): value for name, value in response.getheaders()}
                self.status = response.status
                self._changed.notify_all()
            self._connections.prepare()
            while data := response.read1(_AT_ONCE):
                with self._changed:
                    self._data += data
                    self._num_bytes += len(data)
                    self._changed.notify_all()
                if self._num_bytes > MAX_BODY_BYTES:
                    raise invalid_answer(self._authority, "it does not end")
            if response.length:
                raise IncompleteRead(b"")
            return not response.will_close

    def _hold(self, opened: socket.socket | None) -> bool:
        """Note the socket that `close` hangs up; return False if it has been called already."""
        with self._changed:
            self._socket = None if self._is_closed else opened
            return not self._is_closed


def _fault_of(authority: str, error: Exception) -> RemoteError:
    """Translate an error of the library."""
    if isinstance(error, TimeoutError):
        return silent(authority)
    if isinstance(error, OSError | IncompleteRead):
        return truncated(authority)
    return invalid_answer(authority, f"it is not HTTP/1.1 ({type(error).__name__})")


def truncated(authority: str, reason: str = "") -> RemoteError:
    """Return the error for an answer that ended early."""
    return RemoteError(
        "truncated",
        f"{authority} stopped in the middle of an answer{reason and ': '}{reason}.",
        advice="Slipstream requests the rest.",
    )


def invalid_answer(authority: str, what: str) -> RemoteError:
    """Return the error for data that is not an answer."""
    return RemoteError(
        "invalid",
        f"{authority} sent an answer that is not valid: {what}.",
        advice="Check that remote.url names a vLLM server or its proxy.",
    )
