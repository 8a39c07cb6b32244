"""An engine with its users; with the target `auto` it moves to a larger model between two requests.

Holds the thread that answers, and the larger model's thread until that takes over. Used on the event loop
only, except where a method says otherwise.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from completion_engine.request import CancelledError, Progress, ShouldStop
from lsp_server.engine.auto_target import AutoTarget
from lsp_server.engine.engine_types import (
    CloseJob,
    Completer,
    CompletionJob,
    EngineStatus,
    EngineUser,
    Job,
    Load,
    OnTokens,
    PrefetchJob,
)
from lsp_server.engine.thread import EngineThread
from lsp_server.sharing.supervision import on_loop

EngineKey = tuple[object, ...]

MOVE_STEP_S = 0.02
# If the user types without a pause, the larger model takes over after this number of steps.
MAX_MOVE_STEPS = 500

# A new engine waits this long for those that are ending to release their memory.
MAX_WAIT_S = 20.0
WAIT_STEP_S = 0.05

# Further configurations wait until a window with one of these goes: each engine takes a model's memory.
MAX_ENGINES = 3
# A load that waits for a slot asks more often than this.
WANTED_S = 2.0


class SharedEngine:
    """The engine of one configuration. With `auto_target`, its model may change for all users at once.

    `thread` answers, and holds the users.
    """

    def __init__(
        self,
        key: EngineKey,
        auto_target: AutoTarget | None,
        slots: EngineSlots,
        *,
        is_remote: bool = False,
    ) -> None:
        self.key = key
        self.is_remote = is_remote
        self.timer: asyncio.TimerHandle | None = None
        self._auto_target = auto_target
        self._slots = slots
        self._loop = asyncio.get_running_loop()
        self.thread = self._new_thread()
        self._load_for: Callable[[OnTokens], Load] | None = None
        self._next: _Successor | None = None
        self._has_stopped = False

    @property
    def target(self) -> object:
        """The model that answers, as far as that is known."""
        if self.is_remote:
            return self.status.details.get("target", self.key[0])
        return (self._auto_target and self._auto_target.running) or self.key[0]

    @property
    def status(self) -> EngineStatus:
        """The engine's present state, with the model that `auto` chose."""
        status = self.thread.status
        if self._auto_target is None or status.state != "ready":
            return status
        step = self._next.step if self._next else ""
        return status.with_details(auto=self._auto_target.describe(step))

    @property
    def refusal(self) -> str:
        """The rule by which requests are refused now; empty if they are accepted."""
        return self.thread.status.refusal

    def start(self, load_for: Callable[[OnTokens], Load]) -> None:
        """Load the engine for the first time. Raises RuntimeError if the system cannot start a thread."""
        self._load_for = load_for
        self.reload()

    def reload(self) -> None:
        """Drop the present engine and load it again, on the same thread."""
        if self._load_for is not None:
            load = self._load_for(self.thread.set_tokens)
            self.thread.load(load if self.is_remote else self._slots.in_slot(self.thread, load))

    def stop(self) -> None:
        """Drop the engine, and the larger model that was being prepared."""
        self._has_stopped = True
        self._give_up_next()
        self.thread.stop()

    def leave(self, user: EngineUser) -> None:
        """Remove a user."""
        self.thread.leave(user)
        if self._next is not None:
            self._next.thread.leave(user)

    def submit(self, job: Job) -> None:
        """See `EngineThread`; a larger model that is about to take over prepares for the same cursors."""
        self.thread.submit(job)
        if self._next is not None and isinstance(job, CompletionJob | PrefetchJob):
            self._next.thread.submit(PrefetchJob(job.request, job.user))
        elif self._next is not None and isinstance(job, CloseJob):
            self._next.thread.submit(job)

    def _new_thread(self) -> EngineThread:
        if self._auto_target is None:
            return self._slots.new_thread(EngineThread())
        return self._slots.new_thread(EngineThread(partial(on_loop, self._loop, self._on_status)))

    def _on_status(self) -> None:
        """Handle a new state: report it, begin with a larger model if there is one, or move to it."""
        if self._auto_target is None or self._has_stopped:
            return
        if self._next is not None and self._next.thread.status.state == "error":
            self._give_up_next()
            self._send_notice()
        elif self._next is not None:
            if self._next.thread.status.state == "ready" and not self._next.is_waiting:
                self._next.is_waiting = True
                self._try_move(0)
        elif self.thread.status.state == "ready":
            self._send_notice()
            if target := self._auto_target.next_target:
                successor = _Successor(target, self._new_thread())
                in_slot = partial(self._slots.in_slot, successor.thread)
                on_tokens = successor.thread.set_tokens
                with suppress(RuntimeError):  # without a thread, the next state tries again
                    successor.thread.load(self._auto_target.load_next(target, on_tokens, in_slot))
                    self._next = successor

    def _try_move(self, num_steps: int) -> None:
        """Move to the larger model if no request runs and it is prepared for the users' cursors."""
        successor = self._next
        if successor is None or self._auto_target is None:
            return
        is_prepared = successor.thread.is_quiet or num_steps >= MAX_MOVE_STEPS
        if self.thread.is_busy or not is_prepared:
            self._loop.call_later(MOVE_STEP_S, self._try_move, num_steps + 1)
            return
        self._auto_target.move(successor.target)
        old, self.thread, self._next = self.thread, successor.thread, None
        for user in old.users:
            self.thread.join_in(user)
            old.leave(user)
        old.stop()
        self._on_status()

    def _give_up_next(self) -> None:
        if self._next is not None:
            self._next.thread.stop()
            self._next = None

    def _send_notice(self) -> None:
        notice = self._auto_target.take_notice() if self._auto_target else None
        if notice is not None:
            for user in self.thread.users:
                user.on_notice(notice)


@dataclass(slots=True)
class _Successor:
    """A larger model that is being prepared, on its own thread, until it may take over."""

    target: str
    thread: EngineThread
    is_waiting: bool = False

    @property
    def step(self) -> str:
        """The present step of its preparation."""
        status = self.thread.status
        if status.state == "ready":
            return "about to take over"
        share = f", {status.done / status.total:.0%}" if status.total else ""
        return f"{status.message}{share}"


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

    def new_thread(self, thread: EngineThread) -> EngineThread:
        """Return a new thread, for `join`."""
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
