"""The one thread that owns an engine: loads it, serves requests, does background work when idle, and ends.

Holds the engine's state and chooses the thread's next step. `request_queue` chooses the request, and
`guarded_engine` handles errors.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from completion_engine.request import Cancellation, CancelledError, Completion, CompletionRequest
from completion_engine.runtime import give_back
from lsp_server.engine.engine_types import (
    EditJob,
    EngineJob,
    EngineStatus,
    EngineUser,
    Load,
    failed_status,
    ready_status,
)
from lsp_server.engine.guarded_engine import GuardedEngine
from lsp_server.engine.request_queue import Prefetch, RequestQueue
from lsp_server.sharing.supervision import SupervisedThread

# Background work waits this long after the last completion, because a keystroke often follows soon.
IDLE_PAUSE_S = 0.05
# After a complete suggestion and this long without typing, the user probably reads it and may accept it.
READING_PAUSE_S = 0.25

# An engine that does not stop within this time after a cancellation will not recover.
STUCK_S = 30.0


class EngineThread:
    """Runs one thing at a time, in this order: stop, load, forget, complete, open, edit, background work.

    Every user receives each state; an error in a completion goes to the user that requested it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._users: list[EngineUser] = []
        self._queue = RequestQueue()
        self._load: Load | None = None
        self._job: EngineJob | None = None
        self._edit_job: EditJob | None = None
        self._interrupt = Cancellation()
        self._may_idle = False
        self._idle_from_s = 0.0
        self._stopping = False
        self._engine = GuardedEngine(self._tell_all)
        self.status = EngineStatus()
        self._thread = SupervisedThread("engine", self._run, self._on_crash)

    @property
    def is_busy(self) -> bool:
        """Whether a completion or an edit waits or runs. May be read from any thread."""
        return bool(self._job or self._edit_job) or self._queue.has_jobs or self._queue.has_edits

    @property
    def is_quiet(self) -> bool:
        """Whether the engine is ready and has nothing to do or to prepare."""
        with self._changed:
            is_ready = self.status.state == "ready"
            return is_ready and not (self.is_busy or self._may_idle or self._queue.next_prefetch)

    @property
    def is_sick(self) -> bool:
        """Whether only a new process would help: the engine fails every time, or does not return."""
        cancelled_s = job.cancelled_s if (job := self._job) else None
        is_stuck = cancelled_s is not None and time.perf_counter() - cancelled_s > STUCK_S
        return is_stuck or self._engine.fails_always

    def start(self) -> None:
        """Start the thread; it waits for `load`."""
        self._thread.start()

    def join_in(self, user: EngineUser) -> None:
        """Add a user of the engine, which receives its current state."""
        with self._changed:
            self._users.append(user)
            user.on_status(self.status)

    def leave(self, user: EngineUser) -> None:
        """Remove a user of the engine: its requests are dropped, and its documents are closed."""
        with self._changed:
            self._users = [other for other in self._users if other is not user]
            self._queue.leave(user)
            self._engine.leave(user)
            self._changed.notify()

    def load(self, load: Load) -> None:
        """Drop the present engine, or cancel its loading, and load another."""
        with self._changed:
            self._load = load
            self._wake()
            self.status = EngineStatus()
            if not self._stopping:
                self._thread.start()  # again, if it ended after too many crashes

    def submit(self, job: EngineJob) -> None:
        """Add `job` in place of its user's waiting one, which gets no answer.

        A running job of another user is asked to yield.
        """
        with self._changed:
            self._queue.submit(job)
            if self._job is not None and self._job.user is not job.user:
                self._job.request.cancellation.give_way()
            self._wake(job.request)

    def submit_edit(self, job: EditJob) -> None:
        """Add an edit request in place of its user's waiting one. Completions come first."""
        with self._changed:
            self._queue.submit_edit(job)
            self._interrupt.cancel()
            self._changed.notify()

    def prefetch(self, user: EngineUser, request: CompletionRequest, *, writes: bool = False) -> None:
        """Prepare for a predicted request in the background, after a short pause.

        With `writes`, its completion is written too, as soon as no request runs: the user pressed a key, so
        other background work yields.
        """
        from_s = time.perf_counter() + (0.0 if writes else IDLE_PAUSE_S)
        with self._changed:
            self._queue.prefetch(user, Prefetch(request, writes, from_s))
            if writes:
                self._interrupt.cancel(request)
            self._changed.notify()

    def open(self, language: str) -> None:
        """Notify the engine, when it is idle, that a document of a language is open."""
        with self._changed:
            self._queue.open(language)
            self._changed.notify()

    def forget(self, document: str) -> None:
        """Notify the engine, when it is idle, that a document is closed."""
        with self._changed:
            self._queue.close(document)
            self._changed.notify()

    def stop(self) -> None:
        """Ask the thread to end and to release the engine; see `join`."""
        with self._changed:
            self._stopping = True
            self._wake()

    def join(self, timeout_s: float) -> bool:
        """Return whether the thread ends within `timeout_s`."""
        return self._thread.join(timeout_s)

    def _wake(self, request: CompletionRequest | None = None) -> None:
        self._interrupt.cancel(request)
        self._changed.notify()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            task()
        self._engine.unload()
        give_back()

    def _on_crash(self, error: BaseException, is_final: bool) -> None:
        """Handle a crash of the thread outside of the engine: all waiting requests are answered."""
        with self._changed:
            held = [job for job in (self._job, *(self._queue.take_all() if is_final else ())) if job]
            held_edits = [self._edit_job] if self._edit_job else []
            while is_final and self._queue.has_edits:
                held_edits.append(self._queue.take_edit())
            self._job = self._edit_job = None
            if is_final:
                self._engine.give_up()
            if is_final or (self.status.state == "loading" and self._load is None):
                self._set_status(failed_status(error))
        for job in (*held, *held_edits):
            with contextlib.suppress(Exception):  # the crash may have been in answering
                job.resolve(error)
        self._tell_all(error)

    def _next(self) -> Callable[[], None] | None:  # noqa: PLR0911 - one for each thing that may be next
        """Wait for the next thing to do and return it; None at the end."""
        with self._changed:
            while True:
                if self._stopping:
                    return None
                if (load := self._load) is not None:
                    self._load = None
                    return lambda: self._do_load(load)
                if (document := self._queue.take_closed()) is not None:
                    return lambda: self._engine.call(lambda engine: engine.forget(document))
                if (job := self._queue.take_job()) is not None:
                    self._job = job
                    job.request.cancellation.give_way(must=self._queue.has_jobs)
                    return lambda: self._do_complete(job)
                if self._engine.is_there and (language := self._queue.take_language()) is not None:
                    return lambda: self._engine.call(lambda engine: engine.open(language))
                if self._engine.is_there and self._queue.has_edits:
                    self._edit_job = edit_job = self._queue.take_edit()
                    self._interrupt = Cancellation()
                    return lambda: self._do_edit(edit_job)
                pause_s = self._pause_s()
                if pause_s is not None and pause_s <= 0:
                    return self._idle_task()
                self._changed.wait(pause_s)

    def _pause_s(self) -> float | None:
        """Seconds until background work begins or continues; None without any."""
        prefetch = self._queue.next_prefetch
        if not self._engine.is_there or not (prefetch or self._may_idle):
            return None
        return (prefetch.from_s if prefetch else self._idle_from_s) - time.perf_counter()

    def _idle_task(self) -> Callable[[], None]:
        """Return one step of background work; if a request is predicted, its first step."""
        self._interrupt = Cancellation()
        if self._queue.is_shared:
            self._interrupt.give_way()
        self._may_idle = True  # until a step finds that nothing is left
        prefetch = self._queue.take_prefetch()
        if prefetch is not None:
            self._idle_from_s = prefetch.from_s  # the pause after an answer does not apply to a prefetch
        return lambda: self._do_idle(prefetch)

    def _do_load(self, load: Load) -> None:
        self._engine.unload()
        self._may_idle = False
        self._publish(EngineStatus())

        def is_outdated() -> bool:
            return self._stopping or self._load is not None

        def report(message: str, done: int, total: int) -> None:
            if not is_outdated():
                self._publish(EngineStatus(message=message, done=done, total=total))

        failure = self._engine.load(load, report, is_outdated)
        if self._engine.is_there:
            self._may_idle = True
            self._refresh()
        elif failure is not None and not is_outdated():
            self._publish(failure)

    def _do_complete(self, job: EngineJob) -> None:
        answer = self._engine.complete(job)
        with self._changed:
            self._job = None
            if job.needs_another_turn(answer):
                self._queue.submit_again(job)
                return
        job.settle(answer)
        self._may_idle = True
        may_read = isinstance(answer, Completion) and not answer.stats.is_unfinished
        self._idle_from_s = time.perf_counter() + (READING_PAUSE_S if may_read else IDLE_PAUSE_S)

    def _do_edit(self, job: EditJob) -> None:
        """Answer an edit request. If other work interrupts it, it waits again."""
        interrupt, cancellation = self._interrupt, job.request.cancellation
        unregister = cancellation.when_cancelled(interrupt.cancel)
        answer = self._engine.propose_edit(job, interrupt)
        unregister()
        is_interrupted = isinstance(answer, CancelledError) and not cancellation.is_cancelled
        with self._changed:
            self._edit_job = None
            if is_interrupted:
                self._queue.put_back(job)
        if not is_interrupted:
            job.resolve(answer)

    def _do_idle(self, prefetch: Prefetch | None) -> None:
        if prefetch is not None:
            self._engine.call(lambda engine: engine.prefetch(prefetch.request, writes=prefetch.writes))
        more = self._engine.idle(self._interrupt)
        self._may_idle = more or self._interrupt.is_cancelled
        if not self._may_idle:
            self._refresh()

    def _refresh(self) -> None:
        """Publish the engine's description of itself."""
        details = self._engine.call(lambda engine: engine.describe()) or {}
        self._publish(ready_status(details))

    def _publish(self, status: EngineStatus) -> None:
        with self._changed:
            if self._load is None or status.state == "loading":
                self._set_status(status)

    def _set_status(self, status: EngineStatus) -> None:
        """Set the state, under the lock, so that a new user receives the states in their order."""
        self.status = status
        for user in self._users:
            user.on_status(status)

    def _tell_all(self, error: BaseException) -> None:
        with self._changed:
            for user in self._users:
                user.on_failure(error)
