"""Threads with an owner: every failure is reported, and the thread is restarted a bounded number of times.
And the host's log: its path, its size, and the window of each line.

Owns the threads' life, not their work.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import platformdirs

from lsp_server.sharing.system import make_private_folder

logger = logging.getLogger(__name__)

# A thread that ends by an error so often within so long is not started again.
MAX_CRASHES = 3
CRASH_MEMORY_S = 60.0
# A system that has no thread just now may have one after these pauses.
START_PAUSES_S = (0.02, 0.1, 0.4)

AnyResult = TypeVar("AnyResult")


class SupervisedThread:
    """Runs `work` until it returns; after any other end of it, BaseException included, runs it again.

    `on_crash(error, is_final)` is called on the thread before that and answers the pending work. If
    `is_final`, `work` crashed too often and the thread ends; `start` begins anew.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], None],
        on_crash: Callable[[BaseException, bool], None],
        max_crashes: int = MAX_CRASHES,
    ) -> None:
        self._name = name
        self._work = work
        self._on_crash = on_crash
        self._crashes: deque[float] = deque(maxlen=max_crashes)
        self._thread: threading.Thread | None = None
        self._has_given_up = False
        self._starting = threading.Lock()

    @property
    def is_alive(self) -> bool:
        """Whether the work goes on, or will."""
        return self._thread is not None and self._thread.is_alive() and not self._has_given_up

    def start(self) -> None:
        """Start the thread, if it does not run. Raises RuntimeError where the system gives no thread."""
        with self._starting:  # a thread that crashes at once may start the next one before it is stored here
            if not self.is_alive:
                self._crashes.clear()
                self._has_given_up = False
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                thread.start()
                self._thread = thread

    def join(self, timeout_s: float) -> bool:
        """True when the thread has ended within `timeout_s`, or never ran."""
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            try:
                self._work()
            except BaseException as error:
                self._crashes.append(time.monotonic())
                is_full = len(self._crashes) == self._crashes.maxlen
                # Its own, because `start` may begin anew, on another thread, while the crash is handled.
                is_final = is_full and self._crashes[-1] - self._crashes[0] < CRASH_MEMORY_S
                self._has_given_up = is_final
                logger.critical("The thread %s ended by an error", self._name, exc_info=error)
                try:
                    self._on_crash(error, is_final)
                except BaseException:
                    logger.exception("The work of the thread %s could not be answered", self._name)
                if is_final:
                    return
            else:
                return


def on_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: Any) -> None:
    """Call `function` on the loop, from any thread; nothing once the loop has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *arguments)


async def on_own_thread(function: Callable[..., AnyResult], *arguments: Any) -> AnyResult:
    """Run `function(*arguments)` on a new thread, which does not delay the end of the process.

    Threads of a pool are few: some that wait for a window would keep all others' work waiting. Raises
    RuntimeError if the system starts no thread within half a second.
    """
    future: Future[AnyResult] = Future()
    future.set_running_or_notify_cancel()  # the thread goes on if its caller is cancelled

    def run() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))

    thread = threading.Thread(target=run, name=f"own {getattr(function, '__name__', '')}", daemon=True)
    for pause_s in (*START_PAUSES_S, None):
        try:
            thread.start()
            break
        except RuntimeError:
            if pause_s is None:
                raise
            await asyncio.sleep(pause_s)
    return await asyncio.wrap_future(future)


NAME = "host.log"
LINE = "%(asctime)s %(levelname)s %(name)s%(window)s: %(message)s"

# A starting host renames a longer log; a running host begins a new one at the second size.
MAX_KEPT_BYTES = 1_000_000
MAX_BYTES = 8_000_000

# The number of the window that is being served; 0 if none is.
WINDOW_NUMBER: ContextVar[int] = ContextVar("window", default=0)


def log_path() -> Path:
    """Return the path of the log of this user's hosts."""
    return platformdirs.user_log_path("slipstream", appauthor=False) / NAME


def open_log() -> int:
    """Open the log for appending. If that fails, returns the null device, so that the host still starts."""
    try:
        path = log_path()
        make_private_folder(path.parent)
        if path.exists() and path.stat().st_size > MAX_KEPT_BYTES:
            with contextlib.suppress(PermissionError):  # Windows does not move what another host still writes
                path.replace(path.with_suffix(".old.log"))
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return subprocess.DEVNULL


class HostLog(logging.StreamHandler[Any]):
    """Writes to standard error, which is the log's file, and names the window."""

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        number = WINDOW_NUMBER.get()
        record.window = f" [{number}]" if number else ""
        if os.fstat(2).st_size > MAX_BYTES:
            os.ftruncate(2, 0)
        super().emit(record)
