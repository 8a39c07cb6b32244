"""The one thread that owns an engine: loads it, serves requests, does background work when idle, and ends.

Holds the engine's state and chooses the thread's next step.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from completion_engine.request import Cancellation, CancelledError, Completion, CompletionRequest
from completion_engine.runtime import give_back
from lsp_server.engine.engine_types import (
    Completer,
    CompletionJob,
    EditJob,
    EngineStatus,
    EngineUser,
    GuardedEngine,
    Job,
    Load,
    PrefetchJob,
    failed_status,
    ready_status,
)
from lsp_server.engine.request_queue import RequestQueue
from lsp_server.sharing.supervision import SupervisedThread
from ngram_cache.overlays import TokenSource

# Background work waits this long after the last completion, because a keystroke often follows soon.
IDLE_PAUSE_S = 0.05
READING_PAUSE_S = 0.25  # after a complete suggestion, which the user then probably reads and may accept
STUCK_S = 30.0  # an engine that does not stop within this time after a cancellation will not recover
MAX_FAILURES = 3  # failures in a row after which an engine will not recover


class EngineThread:
    """Runs one thing at a time, in this order: stop, load, forget, complete, edit, background work.

    Users receive the tokenizer and each state; an error in a completion goes to the user that requested it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.tokens: TokenSource | None = None
        self.users: tuple[EngineUser, ...] = ()
        self._queue = RequestQueue()
        self._load: Load | None = None
        self._guard = GuardedEngine()
        self._num_failures = 0
        self._job: CompletionJob | None = None
        self._answered: CompletionJob | None = None  # the last request that was answered
        self._edit_job: EditJob | None = None
        self._interrupt = Cancellation()
        self._may_idle, self._idle_from_s = False, 0.0
        self.is_stopping = False
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
            is_working = self.is_busy or self._may_idle or self._queue.next_prefetch
            return self.status.state == "ready" and not is_working

    @property
    def is_sick(self) -> bool:
        """Whether only a new process would help: the engine fails every time, or does not return."""
        cancelled_s = (job.cancelled_s if (job := self._job) else None) or float("inf")
        return self._num_failures >= MAX_FAILURES or time.perf_counter() - cancelled_s > STUCK_S

    def set_tokens(self, tokens: TokenSource) -> None:
        """Store the loaded tokenizer, and give it to the users. May be called on any thread."""
        with self._changed:
            self.tokens, users = tokens, self.users
        for user in users:
            user.on_tokens(tokens)

    def wake(self, **details: object) -> None:
        """Let the engine do background work and be described again. May be called on any thread."""
        with self._changed:
            self.status = self.status.with_details(**details)
            self._may_idle = True
            self._interrupt.cancel()
            self._changed.notify()

    def join_in(self, user: EngineUser) -> None:
        """Add a user of the engine, which receives its tokenizer, if there is one, and its current state."""
        with self._changed:
            self.users = (*self.users, user)
            if self.tokens is not None:
                user.on_tokens(self.tokens)
            user.on_status(self.status)

    def leave(self, user: EngineUser) -> None:
        """Remove a user of the engine: its requests are dropped, and its documents are closed."""
        with self._changed:
            self.users = tuple(other for other in self.users if other is not user)
            self._queue.leave(user)
            if self._answered is not None and self._answered.user is user:
                self._answered = None
            self._changed.notify()

    def load(self, load: Load) -> None:
        """Drop the present engine, or cancel its loading, and load another.

        Raises RuntimeError if the system cannot start the thread.
        """
        with self._changed:
            self._load = load
            self._publish(EngineStatus())
            self.wake()
            if not self.is_stopping:
                self._thread.start()  # for the first time, or after too many crashes

    def submit(self, job: Job) -> None:
        """Add a job; `RequestQueue` decides which earlier one of its user it replaces.

        Background work yields to all that a user waits for, and a running completion to another user's.
        """
        with self._changed:
            self._queue.submit(job)
            match job:
                case CompletionJob():
                    if self._job is not None and self._job.user is not job.user:
                        self._job.request.cancellation.give_way()
                    self._interrupt.cancel(job.request)
                case PrefetchJob(writes=True):  # the user pressed a key
                    self._interrupt.cancel(job.request)
                case EditJob():
                    self._interrupt.cancel()
            self._changed.notify()

    def stop(self) -> None:
        """Ask the thread to end and to release the engine; see `join`."""
        with self._changed:
            self.is_stopping = True
            self.wake()

    def join(self, timeout_s: float) -> bool:
        """Return whether the thread ends within `timeout_s`."""
        return self._thread.join(timeout_s)

    def _run(self) -> None:
        while (task := self._next()) is not None:
            task()
        self._guard.unload()
        give_back()

    def _on_crash(self, error: BaseException, is_final: bool) -> None:
        """Handle a crash of the thread outside of the engine: all waiting requests are answered."""
        with self._changed:
            held = [*filter(None, (self._job, self._edit_job)), *(self._queue.take_all() if is_final else ())]
            self._job = self._edit_job = None
            if is_final:  # a later load closes the engine
                self._num_failures = MAX_FAILURES
            if is_final or (self.status.state == "loading" and self._load is None):
                self._publish(failed_status(error), is_final=is_final)
        for job in held:
            with contextlib.suppress(Exception):  # the crash may have been in answering
                job.resolve(error)
        self._report(error)

    def _next(self) -> Callable[[], object] | None:
        """Wait for the next thing to do and return it; None at the end."""
        with self._changed:
            while True:
                if self.is_stopping:
                    return None
                if (load := self._load) is not None:
                    self._load = None
                    return partial(self._do_load, load)
                if (document := self._queue.take_closed()) is not None:
                    return partial(self._guard.call, lambda engine: engine.forget(document), self._report)
                if (job := self._queue.take_job()) is not None:
                    self._job = job
                    job.request.cancellation.give_way(must=self._queue.has_jobs)
                    return partial(self._do_complete, job)
                if self._queue.has_edits:
                    self._edit_job = self._queue.take_edit()
                    self._interrupt = Cancellation()
                    return partial(self._do_edit, self._edit_job)
                pause_s = self._pause_s()
                if pause_s is not None and pause_s <= 0:
                    self._interrupt = Cancellation()
                    self._interrupt.give_way(must=self._queue.is_shared)
                    self._may_idle, self._idle_from_s = True, 0.0  # until a step finds that nothing is left
                    return partial(self._do_idle, self._queue.take_prefetch())
                self._changed.wait(pause_s)

    def _pause_s(self) -> float | None:
        """Seconds until background work begins or continues; None without any."""
        prefetch = self._queue.next_prefetch
        if self._guard.engine is None or not (prefetch or self._may_idle):
            return None
        if prefetch is None:
            return self._idle_from_s - time.perf_counter()
        return prefetch.submitted_s + (0.0 if prefetch.writes else IDLE_PAUSE_S) - time.perf_counter()

    def _do_load(self, load: Load) -> None:
        self._may_idle, self._num_failures = False, 0

        def is_outdated() -> bool:
            return self.is_stopping or self._load is not None

        def report(message: str, done: int, total: int) -> None:
            if not is_outdated():
                self._publish(EngineStatus(message=message, done=done, total=total))

        failure = self._guard.load(load, report, is_outdated)
        if self._guard.engine is not None:
            self._may_idle = True
            self.refresh()
        elif failure is not None and not is_outdated():
            self._publish(failure)

    def _do_complete(self, job: CompletionJob) -> None:
        queue_ms = (time.perf_counter() - job.submitted_s) * 1000
        request = replace(job.request, waited_ms=queue_ms)

        def complete(engine: Completer) -> Completion:
            request.cancellation.check()
            return engine.complete(request)

        def fail(error: BaseException) -> None:
            self._num_failures += 1
            job.user.on_failure(error)

        answer = self._guard.call(complete, fail)
        if isinstance(answer, Completion):
            self._num_failures = 0
            answer.stats.ms["queue"] = queue_ms
            answer.stats.ms["total"] += queue_ms
        with self._changed:
            self._job = None
            if isinstance(answer, Completion) and job.user in self.users:
                self._answered = job
            if job.needs_another_turn(answer):
                self._queue.submit_again(job)
                return
        job.answer(answer)
        self._may_idle = True
        may_read = isinstance(answer, Completion) and not answer.stats.is_unfinished
        self._idle_from_s = time.perf_counter() + (READING_PAUSE_S if may_read else IDLE_PAUSE_S)

    def _do_edit(self, job: EditJob) -> None:
        """Answer an edit request. If other work interrupts it, it waits again."""
        interrupt, cancellation = self._interrupt, job.request.cancellation
        unregister = cancellation.when_cancelled(interrupt.cancel)
        request = replace(job.request, cancellation=interrupt)
        answer = self._guard.call(lambda engine: engine.propose_edit(request), job.user.on_failure)
        unregister()
        is_interrupted = isinstance(answer, CancelledError) and not cancellation.is_cancelled
        with self._changed:
            self._edit_job = None
            if is_interrupted:
                self._queue.put_back(job)
        if not is_interrupted:
            job.resolve(answer)

    def _do_idle(self, prefetch: PrefetchJob | None) -> None:
        """Run one step of background work. If the last answer would show more after it, notify its user."""
        if prefetch is not None:
            self._guard.call(
                lambda engine: engine.prefetch(prefetch.request, writes=prefetch.writes), self._report
            )
        more = self._guard.call(lambda engine: engine.idle(self._interrupt), self._report) is True
        grown = self._guard.call(lambda engine: engine.take_grown(), self._report)
        answered = self._answered
        if isinstance(grown, CompletionRequest) and answered and grown.is_at(answered.request):
            answered.user.on_grown(grown)
        with self._changed:  # or a call of `wake` could be lost
            self._may_idle = more or self._interrupt.is_cancelled
        if not self._may_idle:
            self.refresh()

    def refresh(self) -> None:
        """Publish the engine's description of itself. For this thread only."""
        details = self._guard.call(lambda engine: engine.describe(), self._report)
        self._publish(ready_status(details if isinstance(details, dict) else {}))

    def _publish(self, status: EngineStatus, *, is_final: bool = False) -> None:
        """Set the state, under the lock, so that a new user receives the states in their order."""
        with self._changed:
            if is_final or self._load is None or status.state == "loading":
                self.status = status
                for user in self.users:
                    user.on_status(status)

    def _report(self, error: BaseException) -> None:
        for user in self.users:
            user.on_failure(error)
