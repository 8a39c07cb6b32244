"""The protocol of relay and host around the editor's bytes: the greeting, blocks, and the exit code.

The window sends a greeting, and the host answers it. Then the editor's bytes go to the host unchanged. The
server's bytes come back in blocks: four bytes of length, then that number of bytes. A block of length 0 is
the last one, and the byte after it is the exit code. Imported by the relay, so it imports nothing heavy.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator

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
