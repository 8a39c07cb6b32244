"""Bytes to one server and back: a socket, TLS over it, and waits that end in time.

Cancelling ends waits too, except while data is sent: half a frame is invalid. Owns the socket. Does not
depend on HTTP. Used on one thread; `Waker.wake` is safe on any.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from completion_engine.errors import RemoteError
from completion_engine.remote.endpoint import Endpoint
from completion_engine.request import Cancellation, CancelledError, ShouldStop

CONNECT_S = 5.0
_MAX_RECEIVED = 64 << 10
_MAX_ADDRESSES = 4
_UNREACHABLE = "Check remote.url and the network. Meanwhile, Slipstream uses the model of this machine."
_POLL_S, _LONGEST_S = 0.1, 3600.0
Address = tuple[int, tuple[Any, ...]]  # a family, and its form of an address
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


@dataclass(frozen=True, slots=True)
class Wait:
    """The end of a wait in `time.perf_counter()` seconds, and the ways to end it earlier.

    A cancellation that wakes the waker ends it at once, `should_stop` within a tenth of a second.
    """

    until_s: float
    cancellation: Cancellation = field(default_factory=Cancellation)
    should_stop: ShouldStop | None = None

    @classmethod
    def seconds(
        cls,
        seconds: float,
        cancellation: Cancellation | None = None,
        should_stop: ShouldStop | None = None,
    ) -> Wait:
        """Return a wait of this length from now on."""
        return cls(time.perf_counter() + seconds, cancellation or Cancellation(), should_stop)

    def at_most(self, until_s: float) -> Wait:
        """Return the same wait, but no longer than `until_s`."""
        return replace(self, until_s=min(self.until_s, until_s))

    def check(self) -> None:
        """Check whether to go on. Raises CancelledError once the wait is cancelled."""
        self.cancellation.check()
        if self.should_stop is not None and self.should_stop():
            raise CancelledError

    @property
    def left_s(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self.until_s - time.perf_counter())

    @property
    def is_over(self) -> bool:
        """Whether time is up."""
        return time.perf_counter() >= self.until_s


class Waker:
    """Ends a wait from any thread."""

    def __init__(self) -> None:
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""
        return self._receiver.fileno()

    def wake(self) -> None:
        """End the wait under way, or the next one."""
        with contextlib.suppress(OSError):  # full, or closed meanwhile
            self._sender.send(b"\0")

    def rest(self) -> None:
        """Forget past wake-ups."""
        with contextlib.suppress(OSError):
            self._receiver.recv(4096)

    def close(self) -> None:
        """Close it."""
        self._receiver.close()
        self._sender.close()


@contextlib.contextmanager
def woken_by(waker: Waker, cancellation: Cancellation) -> Iterator[None]:
    """End waits in the block at once on a cancellation."""
    remove = cancellation.when_cancelled(waker.wake)
    try:
        yield
    finally:
        remove()


class Transport:
    """One connection of bytes. `open` can be called again after a cancellation, and continues."""

    def __init__(self, endpoint: Endpoint, address: Address, waker: Waker) -> None:
        """Begin to connect to `address`. Raises RemoteError."""
        self._endpoint, self._waker = endpoint, waker
        self._deadline_s = time.perf_counter() + CONNECT_S
        self._is_connected = self._has_begun = False
        self.is_open = False
        with self._faults():
            self._socket: socket.socket | ssl.SSLSocket = socket.socket(address[0], socket.SOCK_STREAM)
        self._selector = selectors.DefaultSelector()
        self._socket.setblocking(False)
        self._selector.register(self._socket, _READ)
        self._selector.register(waker.fileno(), _READ)
        self._address = address[1]

    @property
    def is_late(self) -> bool:
        """Whether connecting has taken too long to go on."""
        return not self.is_open and time.perf_counter() >= self._deadline_s

    def open(self, wait: Wait) -> None:
        """Connect and shake hands. Raises RemoteError; CancelledError, after which a call continues."""
        wait = wait.at_most(self._deadline_s)
        with self._faults():
            if not self._has_begun:
                self._has_begun = True
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with contextlib.suppress(BlockingIOError):
                    self._socket.connect(self._address)
            while not self._is_connected:
                self._wait(_WRITE, wait)
                if error := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(error, "cannot connect")
                self._is_connected = self._is_writable()
            if self._endpoint.tls is not None:
                self._shake_hands(self._endpoint.tls, wait)
        self.is_open = True

    def send(self, data: bytes, wait: Wait) -> None:
        """Send all data. A cancellation waits until that is done: half a frame is invalid."""
        sent, view = 0, memoryview(data)
        patient = Wait(wait.until_s)
        with self._faults():
            while sent < len(view):
                try:
                    sent += self._socket.send(view[sent : sent + _MAX_RECEIVED])
                except (BlockingIOError, ssl.SSLWantWriteError):
                    self._wait(_WRITE, patient)
                except ssl.SSLWantReadError:
                    self._wait(_READ, patient)

    def receive(self, wait: Wait) -> bytes | None:
        """Return the data that has arrived; empty at the end, None when time is up."""
        with self._faults():
            while True:
                wait.check()
                try:
                    return self._socket.recv(_MAX_RECEIVED)
                except (BlockingIOError, ssl.SSLWantReadError):
                    mask = _READ
                except ssl.SSLWantWriteError:
                    mask = _WRITE
                if wait.is_over:
                    return None
                self._select(mask, wait)

    def close(self) -> None:
        """Close it."""
        self.is_open = False
        self._selector.close()
        self._socket.close()

    def _is_writable(self) -> bool:
        try:
            self._socket.getpeername()
        except OSError:
            return False
        return True

    def _shake_hands(self, tls: ssl.SSLContext, wait: Wait) -> None:
        if not isinstance(self._socket, ssl.SSLSocket):
            self._selector.unregister(self._socket)
            self._socket = tls.wrap_socket(
                self._socket, server_hostname=self._endpoint.host, do_handshake_on_connect=False
            )
            self._selector.register(self._socket, _READ)
        while True:
            try:
                self._socket.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._wait(_READ, wait)
            except ssl.SSLWantWriteError:
                self._wait(_WRITE, wait)
        if self._socket.selected_alpn_protocol() != "h2":
            raise RemoteError(
                "rubbish",
                f"{self._endpoint.authority} does not speak HTTP/2.",
                advice="The servers must offer h2 by ALPN. Ask their administrator.",
            )

    def _wait(self, mask: int, wait: Wait) -> None:
        """Wait until the socket is ready. Raises RemoteError when time is up."""
        wait.check()
        if wait.is_over:
            raise silent(self._endpoint.authority)
        self._select(mask, wait)
        wait.check()

    def _select(self, mask: int, wait: Wait) -> None:
        self._selector.modify(self._socket, mask)
        longest_s = _POLL_S if wait.should_stop else _LONGEST_S
        for key, _ in self._selector.select(min(wait.left_s, longest_s)):
            if key.fd == self._waker.fileno():
                self._waker.rest()

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        """Translate the errors of libraries."""
        authority = self._endpoint.authority
        try:
            yield
        except RemoteError:
            self.is_open = False
            raise
        except ssl.SSLCertVerificationError as error:
            self.is_open = False
            raise RemoteError(
                "certificate",
                f"The certificate of {authority} is not trusted: {error.verify_message}.",
                advice="Set remote.caFile to your team's certificates, and check the name in remote.url.",
            ) from error
        except OSError as error:
            self.is_open = False
            reason = getattr(error, "reason", None) or error.strerror or str(error)
            raise RemoteError(
                "unreachable",
                f"{authority} cannot be reached: {reason}.",
                advice=_UNREACHABLE,
            ) from error


def silent(authority: str) -> RemoteError:
    """Return the error for a server that does not answer in time."""
    return RemoteError(
        "silent",
        f"{authority} does not answer.",
        advice="Check the network and the servers. Meanwhile, Slipstream uses the model of this machine.",
    )


def addresses_of(endpoint: Endpoint) -> list[Address]:
    """Resolve the host. Blocks as long as the system's resolver does. Raises RemoteError."""
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise RemoteError(
            "unreachable",
            f"There is no server called {endpoint.host}: {getattr(error, 'strerror', None) or error}.",
            advice=_UNREACHABLE,
        ) from error
    places: list[Address] = [(family, place) for family, _, _, _, place in found]
    return places[:_MAX_ADDRESSES]
