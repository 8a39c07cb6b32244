"""The connection of a window to its host: the protocol, the proof of the same user, the reports of hosts.

It is a Unix socket if the system has them: its folder admits one user, and the system reports the peer's
user. Other systems use a port of the loopback, to which any process can connect. The port is in a file that
only the user can read, with a secret. Both sides prove that they have the secret (HMAC-SHA256 over numbers
used once, the host first), so neither it nor the editor's text goes to another user.

The window sends a greeting, and the host answers it. Then the editor's bytes go to the host unchanged. The
server's bytes come back in blocks: four bytes of length, then that number of bytes. A block of length 0 is
the last one, and the byte after it is the exit code. Imported by the relay, so it imports nothing heavy.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import selectors
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lsp_server.sharing.address import LOOPBACK_SUFFIX, sockets
from lsp_server.sharing.system import uid_of_peer, user_id

LOOPBACK = "127.0.0.1"

NUM_NONCE_BYTES = 32
NUM_PROOF_BYTES = 32
STATUS_S = 3.0
_MAX_FILE_BYTES = 1024
# All words have the same length.
WINDOW = b"slipstream window 1\n"
STATUS = b"slipstream status 1\n"
WELCOME = b"slipstream welcome!\n"
NUM_WORD_BYTES = len(WELCOME)
# One that needs no file descriptor of its own, where there is such a one.
_Selector: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)
_DO_NOT_WAIT: int = getattr(
    socket, "MSG_DONTWAIT", 0
)  # without this flag, a few bytes do not wait if there is room
_END = (0).to_bytes(4, "big")


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
            stored = json.loads(file.read(_MAX_FILE_BYTES))
        port, secret = int(stored["port"]), bytes.fromhex(stored["secret"])
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


def read_word(connection: socket.socket, num_bytes: int = NUM_WORD_BYTES) -> bytes:
    """Return the next `num_bytes` of a connection; fewer if the other side disconnected before.

    Raises OSError, including TimeoutError.
    """
    word = b""
    while len(word) < num_bytes and (more := connection.recv(num_bytes - len(word))):
        word += more
    return word


class BlockWriter:
    """The host's output to a window: each write is one block. May be used on any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        """Send one non-empty block; waits until it is sent. Raises OSError."""
        with self._lock:
            self._connection.sendall(len(data).to_bytes(4, "big") + data)

    def flush(self) -> None:
        """Do nothing, because no data is buffered."""

    def end(self, code: int, timeout_s: float) -> None:
        """Send the exit code, if the other side reads it in time; otherwise it assumes a failure."""
        if not self._lock.acquire(timeout=timeout_s):
            return
        try:
            with contextlib.suppress(OSError), _Selector() as room:
                room.register(self._connection, selectors.EVENT_WRITE)
                if room.select(timeout_s):
                    self._connection.send(_END + bytes([code]), _DO_NOT_WAIT)
        finally:
            self._lock.release()


class BlockReader:
    """The relay's input from the host. `exit_code` is 1 unless the host sent another one at the end.

    `was_told` is True if the host ended the connection, False if it was lost.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._stream = connection.makefile("rb")
        self.exit_code = 1
        self.was_told = False

    def blocks(self) -> Iterator[bytes]:
        """Yield each block once it is complete, until the last."""
        with contextlib.suppress(OSError):
            while len(head := self._stream.read(4)) == 4:
                if head == _END:
                    self.was_told = True
                    self.exit_code = (self._stream.read(1) or b"\1")[0]
                    return
                num_bytes = int.from_bytes(head, "big")
                if len(block := self._stream.read(num_bytes)) < num_bytes:
                    return
                yield block
