"""Messages to and from one client without ever blocking the event loop: one thread reads, one writes.

Owns the two threads, the messages that wait between them and the loop, and the watch over the client's
process. Has no access to the meaning of messages.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Generic, Protocol, TypeVar

import psutil

from lsp_server.protocol.framing import MAX_HEADER_BYTES, FrameError, body_length, ends_header
from lsp_server.sharing.supervision import SupervisedThread, on_loop

logger = logging.getLogger(__name__)

# A client that sends faster than it is served is read no further than this.
MAX_MESSAGES = 64

AnyMessage = TypeVar("AnyMessage")

# A client that leaves more than this unread does not read at all: hours of answers are less.
MAX_UNREAD_BYTES = 16 * 1024 * 1024
INTERVAL_S = 5.0


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next message's body, or None at the end of the stream. Raises FrameError."""
    header = b""
    while not ends_header(header):
        line = stream.readline(MAX_HEADER_BYTES)
        header += line
        if not line.endswith(b"\n") and len(header) < MAX_HEADER_BYTES:
            return None
    num_bytes = body_length(header)
    body = stream.read(num_bytes)
    return body if len(body) == num_bytes else None


def start_reader(stream: BinaryIO, deliver: Callable[[bytes], bool], on_end: Callable[[], None]) -> None:
    """Deliver each message's body, on a thread of its own, while `deliver` wants more; then call `on_end`.

    `deliver` may wait: the client is read no faster than it is served.
    """

    def run() -> None:
        try:
            while (body := read_frame(stream)) is not None and deliver(body):
                pass
        except (FrameError, OSError, ValueError) as error:
            logger.warning("The client does not speak the protocol: %s", error)
        on_end()

    # A stream that was read in part cannot be read on: whatever ends the thread ends the conversation.
    SupervisedThread("reader", run, lambda _error, _is_final: on_end(), max_crashes=1).start()


class ByteSink(Protocol):
    """The destination of messages. Both methods raise OSError or ValueError when the reader has gone."""

    def write(self, data: bytes, /) -> object:
        """Take all of `data`."""
        ...

    def flush(self) -> object:
        """Pass on what was taken."""
        ...


class Writer:
    """Writes in the order of the calls, on its own thread: a client that does not read blocks nothing.

    `on_broken` is called once, on any thread, when the client is gone, or has too much unread data and is
    given up.
    """

    def __init__(self, stream: ByteSink, on_broken: Callable[[], None]) -> None:
        self._stream = stream
        self._on_broken = on_broken
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._num_bytes = 0
        self._is_broken = False
        self._thread = SupervisedThread("writer", self._run, self._on_crash, max_crashes=1)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Queue whole messages. May be called from any thread."""
        with self._lock:
            is_too_much = self._num_bytes > MAX_UNREAD_BYTES
            if not self._is_broken and not is_too_much:
                self._num_bytes += len(data)
                self._queue.put(data)
        if is_too_much:
            self._break("it leaves too much unread")

    def close(self, timeout_s: float = 2.0) -> None:
        """Wait until everything is written, but no longer than `timeout_s`. Blocks."""
        self._queue.put(None)
        if not self._is_broken:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while (data := self._queue.get()) is not None:
                if not self._is_broken:
                    self._stream.write(data)
                    self._stream.flush()
                with self._lock:
                    self._num_bytes -= len(data)
        except (OSError, ValueError) as error:
            self._break(str(error))

    def _on_crash(self, error: BaseException, _is_final: bool) -> None:
        self._break(repr(error))

    def _break(self, reason: str) -> None:
        with self._lock:
            was_broken, self._is_broken = self._is_broken, True
        if not was_broken:
            logger.info("The client is given up: %s", reason)
            self._on_broken()


class Inbox(Generic[AnyMessage]):
    """Filled on one thread, emptied on the event loop that it was made on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[AnyMessage | None] = asyncio.Queue()
        self._room = threading.Semaphore(MAX_MESSAGES)
        self._is_closed = False

    def put(self, message: AnyMessage) -> bool:
        """Add a message; waits while there is no room. False after the end."""
        self._room.acquire()
        if not self._is_closed:
            self._add(message)
        return not self._is_closed

    def close(self) -> None:
        """End the queue: pending `put` and `get` calls return. On any thread."""
        if not self._is_closed:
            self._is_closed = True
            self._room.release()
            self._add(None)

    async def get(self) -> AnyMessage | None:
        """The next message; None once all are taken and there comes nothing more."""
        message = await self._queue.get()
        self._room.release()
        return message

    def _add(self, message: AnyMessage | None) -> None:
        on_loop(self._loop, self._queue.put_nowait, message)


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


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """A running process. Its start time distinguishes it from a later one with the same number."""

    pid: int
    started_s: float

    @classmethod
    def find(cls, pid: int) -> ClientProcess | None:
        """The process with this number; None if it cannot be seen from here, as from inside a container."""
        try:
            return cls(pid, psutil.Process(pid).create_time())
        except (psutil.Error, ValueError, OverflowError):
            return None

    def has_ended(self) -> bool:
        """Whether the process is gone, or waits only for its parent to collect it."""
        try:
            process = psutil.Process(self.pid)
            return process.create_time() != self.started_s or process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True
        except psutil.Error:
            return False

    async def wait(self, interval_s: float = INTERVAL_S) -> None:
        """Return once the process has ended, at most `interval_s` later."""
        while not self.has_ended():  # noqa: ASYNC110 - the system has no event for a process that is not a child
            await asyncio.sleep(interval_s)
