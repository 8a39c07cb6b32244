"""Messages over two byte streams without ever blocking the event loop: one thread reads, one writes.

Owns the two threads and the `Content-Length` frame on the way in. Must not know what a message means.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, Protocol

from lsp_server.framing import MAX_MESSAGE_BYTES

logger = logging.getLogger(__name__)

MAX_HEADER_BYTES = 4096


class FrameError(Exception):
    """What comes in is no framed message; nothing after it can be understood."""


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next message's body, or None at the end of the stream. Raises FrameError."""
    num_bytes: int | None = None
    while line := stream.readline(MAX_HEADER_BYTES):
        if not line.strip():
            if num_bytes is None:
                raise FrameError("a message has no Content-Length")
            body = stream.read(num_bytes)
            return body if len(body) == num_bytes else None
        name, colon, value = line.partition(b":")
        if not colon:
            raise FrameError(f"this is no message header: {line[:80]!r}")
        if name.strip().lower() == b"content-length":
            num_bytes = _length(value.strip())
    return None


def _length(digits: bytes) -> int:
    if not digits.isdigit() or int(digits) > MAX_MESSAGE_BYTES:
        raise FrameError(f"a message cannot have the length {digits[:40]!r}")
    return int(digits)


def start_reader(stream: BinaryIO, deliver: Callable[[bytes | None], None]) -> threading.Thread:
    """Deliver each message's body from a thread of its own; None once, at the end of the stream."""

    def run() -> None:
        try:
            while (body := read_frame(stream)) is not None:
                deliver(body)
        except (FrameError, OSError, ValueError) as error:
            logger.warning("The client does not speak the protocol: %s", error)
        deliver(None)

    thread = threading.Thread(target=run, name="reader", daemon=True)
    thread.start()
    return thread


class ByteSink(Protocol):
    """Where messages go to; both raise OSError or ValueError when nobody is there any more."""

    def write(self, data: bytes, /) -> object:
        """Take all of `data`."""
        ...

    def flush(self) -> object:
        """Pass on what was taken."""
        ...


class Writer:
    """Writes in the order of the calls, on its own thread: a client that does not read blocks nobody."""

    def __init__(self, stream: ByteSink, on_broken: Callable[[], None]) -> None:
        self._stream = stream
        self._on_broken = on_broken
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Queue whole messages. May be called from any thread."""
        self._queue.put(data)

    def close(self, timeout_s: float = 2.0) -> None:
        """Wait until everything is written, but no longer than `timeout_s`."""
        self._queue.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while (data := self._queue.get()) is not None:
                self._stream.write(data)
                self._stream.flush()
        except (OSError, ValueError) as error:
            logger.info("The client is gone: %s", error)
            self._on_broken()


def claim_stdio() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for the protocol alone.

    Whatever else prints, in Python or below, prints to standard error from now on, and child processes
    find an empty standard input.
    """
    sys.stdout.flush()
    protocol_in, protocol_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return os.fdopen(protocol_in, "rb"), os.fdopen(protocol_out, "wb")
