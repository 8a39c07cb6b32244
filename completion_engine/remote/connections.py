"""Open connections to a team's servers over HTTP/1.1, TLS included, for one request at a time each.

Owns the sockets that no request uses, and the errors of connecting. Safe on any thread. Does not depend on
the meaning of requests.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

from completion_engine.errors import RemoteError
from completion_engine.remote.endpoint import Endpoint

CONNECT_S = 5.0  # for all addresses of the host together
TIMEOUT_S = 600.0  # for one read; a reader gives up long before
IDLE_S = 20.0  # routers and servers forget a connection that was quiet for long
_MAX_ADDRESSES, _MAX_IDLE = 4, 2
_ELSEWHERE = frozenset({"unreachable", "silent"})  # another address of the host may work
_UNREACHABLE = "Check remote.url and the network. Meanwhile, Slipstream uses the model of this machine."
_Address = tuple[int, tuple[Any, ...]]  # a family, and its form of an address


class Connections:
    """Connections to `endpoint`. `changed` guards them, and the answers that arrive on them."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.changed = threading.Condition()
        self.num_opened = 0
        self._idle: list[tuple[HTTPConnection, float]] = []
        self._addresses: list[_Address] = []
        self._is_opening = self._is_closed = False

    def wake(self) -> None:
        """Make each waiting thread look again at what it waits for."""
        with self.changed:
            self.changed.notify_all()

    def take(self, is_left: Callable[[], bool] = lambda: False) -> HTTPConnection | None:
        """Return an open connection, a new one if need be; None once `is_left`. Raises RemoteError.

        One is opened at a time: requests that are cancelled with each key must not pile up connections to
        servers that are slow to accept them.
        """
        with self.changed:
            self.changed.wait_for(lambda: self._idle or not self._is_opening or is_left())
            if is_left():
                return None
            while self._idle:
                connection, since_s = self._idle.pop()
                if time.perf_counter() - since_s < IDLE_S and _is_quiet(connection.sock):
                    return connection
                connection.close()
            self._is_opening = True
        try:
            return self._open()
        finally:
            with self.changed:
                self._is_opening = False
                self.changed.notify_all()

    def give(self, connection: HTTPConnection) -> None:
        """Keep an open connection for a later request."""
        with self.changed:
            self._idle.append((connection, time.perf_counter()))
            while len(self._idle) > (0 if self._is_closed else _MAX_IDLE):
                self._idle.pop(0)[0].close()
            self.changed.notify_all()

    def prepare(self) -> None:
        """Have a connection ready for the next request: an answer that is cut short takes its own along."""
        with self.changed:
            if not (self._idle or self._is_opening or self._is_closed):
                threading.Thread(target=self._open_spare, name="remote-spare", daemon=True).start()

    def close(self) -> None:
        """Close the connections that no request uses, now and later."""
        with self.changed:
            self._is_closed = True
            while self._idle:
                self._idle.pop()[0].close()

    def _open_spare(self) -> None:
        try:
            if (connection := self.take(lambda: bool(self._idle) or self._is_closed)) is not None:
                self.give(connection)
        except RemoteError:
            pass  # the next request gets the error

    def _open(self) -> HTTPConnection:
        """Connect to the first address that works, which comes first from then on."""
        if not self._addresses:
            self._addresses = addresses_of(self.endpoint)
        timeout_s = CONNECT_S / len(self._addresses)
        for num_others in reversed(range(len(self._addresses))):
            try:
                connection = open_connection(self.endpoint, self._addresses[0], timeout_s)
            except RemoteError as error:
                self._addresses = [*self._addresses[1:], *self._addresses[:1]]
                if not num_others or error.kind not in _ELSEWHERE:
                    raise
            else:
                self.num_opened += 1
                return connection
        raise AssertionError("a name has an address")


def open_connection(endpoint: Endpoint, address: _Address, timeout_s: float) -> HTTPConnection:
    """Connect and shake hands. Raises RemoteError."""
    authority, opened = endpoint.authority, None
    try:
        opened = socket.socket(address[0], socket.SOCK_STREAM)
        opened.settimeout(timeout_s)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.connect(address[1])
        if endpoint.tls is not None:
            opened = endpoint.tls.wrap_socket(opened, server_hostname=endpoint.host)
    except OSError as error:
        if opened is not None:
            opened.close()
        if isinstance(error, ssl.SSLCertVerificationError):
            raise RemoteError(
                "certificate",
                f"The certificate of {authority} is not trusted: {error.verify_message}.",
                advice="Set remote.caFile to your team's certificates, and check the name in remote.url.",
            ) from error
        if isinstance(error, TimeoutError):
            raise silent(authority) from error
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise RemoteError(
            "unreachable", f"{authority} cannot be reached: {reason}.", advice=_UNREACHABLE
        ) from error
    opened.settimeout(TIMEOUT_S)
    connection = HTTPConnection(endpoint.host, endpoint.port)
    connection.sock, connection.auto_open = opened, 0
    return connection


def addresses_of(endpoint: Endpoint) -> list[_Address]:
    """Resolve the host. Blocks as long as the system's resolver does. Raises RemoteError."""
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise RemoteError(
            "unreachable",
            f"There is no server called {endpoint.host}: {getattr(error, 'strerror', None) or error}.",
            advice=_UNREACHABLE,
        ) from error
    return [(family, address) for family, _, _, _, address in found[:_MAX_ADDRESSES]]


def silent(authority: str) -> RemoteError:
    """Return the error for a server that does not answer in time."""
    return RemoteError(
        "silent",
        f"{authority} does not answer.",
        advice="Check the network and the servers. Meanwhile, Slipstream uses the model of this machine.",
    )


def _is_quiet(opened: socket.socket) -> bool:
    """Whether an unused connection is open: the server has neither closed it nor sent anything."""
    try:
        opened.settimeout(0.0)
        opened.recv(1)  # TLS takes in what is not data, such as tickets
    except (BlockingIOError, ssl.SSLWantReadError):
        opened.settimeout(TIMEOUT_S)
        return True
    except OSError:
        pass
    return False
