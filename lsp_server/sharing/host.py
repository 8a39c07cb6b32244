"""The host: accepts windows, serves each separately, and ends after some time without windows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from typing import Any, BinaryIO, Protocol

import psutil

from lsp_server.sharing import watchdog
from lsp_server.sharing.host_connection import NUM_WORD_BYTES, STATUS, WELCOME, WINDOW, BlockWriter
from lsp_server.sharing.listener import HostListener, is_ours, receive
from lsp_server.sharing.supervision import WINDOW_NUMBER, on_own_thread
from lsp_server.sharing.system import on_terminate

logger = logging.getLogger(__name__)

# A client must send its greeting within this time.
GREETING_S = 10.0
# The exit code is sent within this time, if the client still reads.
GOODBYE_S = 1.0
# Windows have this much time to end.
END_S = 8.0
# Without free file descriptors no client can be accepted; trying again at once would only keep the loop busy.
ACCEPT_PAUSE_S = 0.5


class Service(Protocol):
    """Serves the windows that the host accepts."""

    @property
    def is_sick(self) -> bool:
        """Whether new windows need a new host process."""
        ...

    def describe(self) -> dict[str, Any]:
        """Describe the host for people, as plain JSON values."""
        ...

    async def serve(self, stdin: BinaryIO, stdout: BlockWriter, window: int) -> int:
        """Serve one window until it goes; returns its exit code."""
        ...


class Host:
    """The host process; runs until SIGTERM, or until there was no window for `linger_s`."""

    def __init__(self, listener: HostListener, service: Service, linger_s: float) -> None:
        self._listener = listener
        self._service = service
        self._linger_s = linger_s
        self._stopping = asyncio.Event()
        self._visits: set[asyncio.Task[None]] = set()
        self._windows: dict[int, socket.socket] = {}
        self._num_windows = 0
        self._is_retired = False
        self._timer: asyncio.TimerHandle | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._problem = ""

    async def run(self) -> None:
        """Serve to the end. Afterwards the listener is closed and every window was notified."""
        on_terminate(asyncio.get_running_loop(), self._stopping.set)
        self._start_accepting()
        self._rest()
        beating = asyncio.create_task(self._beat())
        await self._stopping.wait()
        self._close_listener()
        for connection in self._windows.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        if self._visits:
            await asyncio.wait(self._visits, timeout=END_S)
        beating.cancel()

    async def _beat(self) -> None:
        """Send a heartbeat to the watchdog and renew the listener, as long as the host runs."""
        while True:
            watchdog.beat()
            if self._accepting is not None:
                try:
                    self._renew_listener()
                except OSError as error:
                    self._say_once(f"The listener cannot be made again: {error}")
            await asyncio.sleep(watchdog.BEAT_S)

    def _renew_listener(self) -> None:
        """Create the host's files again if they were removed, so that windows find it. Raises OSError."""
        old = self._listener.socket
        match self._listener.renew():
            case "renewed":
                logger.warning("The socket was removed by another program, and is made again")
                self._stop_accepting(old)
                self._start_accepting()
                with old, contextlib.suppress(OSError):
                    while True:  # clients that connected before the socket was removed
                        self._visit(old.accept()[0])
            case "lost":
                self._retire("Another process is the host now, or the socket's folder is open to others")

    def _start_accepting(self) -> None:
        self._listener.socket.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(self._listener.socket))

    def _stop_accepting(self, listener: socket.socket) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            self._accepting = None
            # Before its number can be reused for another file.
            asyncio.get_running_loop().remove_reader(listener)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                logger.warning("No client can be accepted: %s", error)
                await asyncio.sleep(ACCEPT_PAUSE_S)
                continue
            self._visit(connection)

    def _visit(self, connection: socket.socket) -> None:
        visit = asyncio.create_task(self._receive(connection))
        self._visits.add(visit)
        visit.add_done_callback(self._visits.discard)

    async def _receive(self, connection: socket.socket) -> None:
        """Read a client's greeting and serve it."""
        with connection:
            try:
                wanted = await _greeting(connection)
                if wanted == WINDOW:
                    await self._let_in(connection)
                elif wanted == STATUS:
                    connection.sendall(json.dumps(self._describe()).encode())
                elif wanted:
                    logger.warning("A client sent an unknown greeting of %d bytes", len(wanted))
            except OSError as error:
                logger.info("A client disconnected before it was served: %s", error)

    async def _let_in(self, connection: socket.socket) -> None:
        """Serve a window. A sick host closes its listener instead, so that a new host starts."""
        if self._is_retired or self._stopping.is_set():
            return
        if self._service.is_sick:
            self._retire("An engine does not recover: new windows get a new process")
            return
        connection.sendall(WELCOME)
        self._num_windows += 1
        window = self._num_windows
        self._windows[window] = connection
        WINDOW_NUMBER.set(window)
        self._wake()
        stdout = BlockWriter(connection)
        try:
            code = await self._service.serve(connection.makefile("rb"), stdout, window)
            await on_own_thread(stdout.end, code, GOODBYE_S)
        except Exception:
            logger.exception("The window cannot be served")
        finally:
            # This wakes threads that still wait on it.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            del self._windows[window]
            self._rest()

    def _retire(self, reason: str) -> None:
        """Leave new windows to a new host, and end with the last window of this one."""
        logger.error("%s", reason)
        self._is_retired = True
        self._close_listener()
        self._rest()

    def _close_listener(self) -> None:
        """Accept no more clients."""
        if self._accepting is not None:
            self._stop_accepting(self._listener.socket)
            self._listener.close()

    def _say_once(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            logger.error("%s", problem)

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _rest(self) -> None:
        """End after a while, if no window connects."""
        if not self._windows:
            wait_s = 0.0 if self._is_retired else self._linger_s
            self._wake()
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._stopping.set)

    def _describe(self) -> dict[str, Any]:
        process = psutil.Process()
        facts = {"pid": process.pid, "num_memory_bytes": process.memory_info().rss}
        return {**facts, "num_windows": len(self._windows), **self._service.describe()}


async def _greeting(connection: socket.socket) -> bytes:
    """Return the first word of a window of this user; empty if it is another user's, or late.

    The connection is blocking afterwards.
    """
    connection.setblocking(False)
    word = b""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GREETING_S):
            if await is_ours(connection):
                word = await receive(connection, NUM_WORD_BYTES)
    connection.setblocking(True)
    return word
