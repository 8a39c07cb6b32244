"""The slots for engines in memory, and the threads that may hold an engine."""

from __future__ import annotations

import math
import threading
import time

from completion_engine.request import CancelledError, Progress, ShouldStop
from lsp_server.engine.engine_types import Completer, Load
from lsp_server.engine.thread import EngineThread

# A new engine waits this long for those that are ending to release their memory.
MAX_WAIT_S = 20.0
WAIT_STEP_S = 0.05

# Further configurations wait until a window with one of these goes: each engine takes a model's memory.
MAX_ENGINES = 3
# A load that waits for a slot asks more often than this.
WANTED_S = 2.0


class EngineSlots:
    """The threads of a process that may hold an engine, and the slots for engines in memory.

    A thread that is stopped keeps its slot until it ends. Used on any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: list[EngineThread] = []
        self._holders: list[EngineThread] = []
        self._missed_s = -math.inf

    @property
    def is_wanted(self) -> bool:
        """Whether a thread waits for a slot."""
        return time.monotonic() - self._missed_s < WANTED_S

    def new_thread(self) -> EngineThread:
        """Return a new thread, for `join`."""
        thread = EngineThread()
        with self._lock:
            self._threads = [*(it for it in self._threads if not it.join(0)), thread]
        return thread

    def join(self, timeout_s: float) -> bool:
        """Return whether all threads end within `timeout_s`."""
        until = time.monotonic() + timeout_s
        return all(thread.join(max(0.0, until - time.monotonic())) for thread in self._threads)

    def in_slot(self, thread: EngineThread, load: Load) -> Load:
        """Return a load that first waits for a slot, and for engines that are ending to release theirs."""

        def wait_and_load(report: Progress, should_stop: ShouldStop) -> Completer:
            while not self._take(thread):
                report(f"Waiting: {MAX_ENGINES} other models are in memory for other windows", 0, 0)
                if should_stop():
                    raise CancelledError
                time.sleep(WAIT_STEP_S)
            try:
                until = time.monotonic() + MAX_WAIT_S
                for other in [it for it in self._holders if it.is_stopping and it is not thread]:
                    while not other.join(WAIT_STEP_S) and time.monotonic() < until and not should_stop():
                        pass
                return load(report, should_stop)
            except BaseException:
                with self._lock:
                    self._holders = [holder for holder in self._holders if holder is not thread]
                raise

        return wait_and_load

    def _take(self, thread: EngineThread) -> bool:
        """Return whether the thread got a slot, or has one already."""
        with self._lock:
            self._holders = [it for it in self._holders if it is thread or not it.join(0)]
            if thread not in self._holders:
                if len(self._holders) >= MAX_ENGINES:
                    self._missed_s = time.monotonic()
                    return False
                self._holders.append(thread)
            return True
