"""The connection of a window to its host, the proof of the same user, and the reports of hosts.

It is a Unix socket if the system has them: its folder admits one user, and the system reports the peer's
user. Other systems use a port of the loopback, to which any process can connect. The port is in a file that
only the user can read, with a secret. Both sides prove that they have the secret (HMAC-SHA256 over numbers
used once, the host first), so neither it nor the editor's text goes to another user. Imported by the relay,
so it imports nothing heavy.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lsp_server.sharing.address import LOOPBACK_SUFFIX, sockets
from lsp_server.sharing.system import uid_of_peer, user_id
from lsp_server.sharing.wire import STATUS, read_word

LOOPBACK = "127.0.0.1"

NUM_NONCE_BYTES = 32
NUM_PROOF_BYTES = 32
STATUS_S = 3.0
_MAX_FILE_BYTES = 1024


class StrangerError(ConnectionError):
    """The process at the other end does not belong to this user."""


def connect(path: str, timeout_s: float) -> socket.socket:
    """Connect to the host of this socket or file; each wait ends after `timeout_s`.

    Raises OSError: FileNotFoundError or ConnectionError without a host, StrangerError if it is another
    user's, BlockingIOError if its queue is full, TimeoutError if it does not answer.
    """
    if path.endswith(LOOPBACK_SUFFIX) or sys.platform == "win32":
        return _connect_to_port(Path(path), timeout_s)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _closed_on_error(connection):
        connection.settimeout(timeout_s)
        connection.connect(path)
        if uid_of_peer(connection) not in {None, user_id()}:
            raise StrangerError("the other side is another user's")
    return connection


def _connect_to_port(path: Path, timeout_s: float) -> socket.socket:
    port, secret = _read(path)
    connection = socket.create_connection((LOOPBACK, port), timeout_s)
    with _closed_on_error(connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ours = os.urandom(NUM_NONCE_BYTES)
        connection.sendall(ours)
        answer = read_word(connection, NUM_NONCE_BYTES + NUM_PROOF_BYTES)
        theirs, proof = answer[:NUM_NONCE_BYTES], answer[NUM_NONCE_BYTES:]
        if not hmac.compare_digest(proof, proof_of(secret, b"host", ours, theirs)):
            raise ConnectionRefusedError("somebody else has the port of a host that is gone")
        connection.sendall(proof_of(secret, b"window", ours, theirs))
    return connection


@contextlib.contextmanager
def _closed_on_error(connection: socket.socket) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _read(path: Path) -> tuple[int, bytes]:
    """Read port and secret from a file. Raises FileNotFoundError, and ConnectionError for invalid content."""
    try:
        with path.open("rb") as file:
            told = json.loads(file.read(_MAX_FILE_BYTES))
        port, secret = int(told["port"]), bytes.fromhex(told["secret"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConnectionRefusedError(f"{path} names no port") from error
    if not 0 < port < 1 << 16:
        raise ConnectionRefusedError(f"{path} names no port")
    return port, secret


def is_listening(path: str, timeout_s: float) -> bool:
    """Return whether a process listens at a host's socket or port."""
    try:
        if path.endswith(LOOPBACK_SUFFIX) or sys.platform == "win32":
            socket.create_connection((LOOPBACK, _read(Path(path))[0]), timeout_s).close()
            return True
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            probe.connect(path)
    except BlockingIOError:
        return True  # its queue is full
    except OSError:
        return False
    return True


def proof_of(secret: bytes, side: bytes, window_nonce: bytes, host_nonce: bytes) -> bytes:
    """Return the proof of `side`, host or window, that it has the secret; valid for this connection only."""
    return hmac.digest(secret, side + window_nonce + host_nonce, "sha256")


def running_hosts(environment: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Describe each host that answers: `socket`, `pid`, `num_windows`, `engines`, `num_memory_bytes`."""
    for path in sockets(environment):
        with contextlib.suppress(OSError, ValueError), connect(path, STATUS_S) as connection:
            connection.sendall(STATUS)
            with connection.makefile("rb") as stream:
                yield {"socket": path, **json.loads(stream.read())}
