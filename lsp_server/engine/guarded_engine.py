"""An engine that never raises: each error is counted, answered and reported to the affected users.

Holds the engine from loading to the end. Used on one thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from completion_engine.errors import RemoteError, SlipstreamError
from completion_engine.next_edit.edits import EditAnswer
from completion_engine.request import Cancellation, CancelledError, Completion, Progress
from lsp_server.engine.engine_types import (
    Closable,
    Completer,
    EditCompleter,
    EditJob,
    EngineJob,
    EngineStatus,
    EngineUser,
    GrowingCompleter,
    Load,
    NoEngineError,
    failed_status,
)

logger = logging.getLogger(__name__)

MAX_FAILURES = 3  # failures in a row after which an engine will not recover


class GuardedEngine:
    """At most one engine. `tell_all` receives errors that no request caused.

    Every exception of the engine counts as its error, BaseException included, because libraries raise panics
    that are not an Exception.
    """

    def __init__(self, tell_all: Callable[[BaseException], None]) -> None:
        self._tell_all = tell_all
        self._engine: Completer | None = None
        self._answered: EngineJob | None = None  # the last request that was answered
        self._num_failures = 0

    @property
    def is_there(self) -> bool:
        """Whether an engine is loaded."""
        return self._engine is not None

    @property
    def fails_always(self) -> bool:
        """Whether only a new process would help. May be read from any thread."""
        return self._num_failures >= MAX_FAILURES

    def load(self, load: Load, report: Progress, is_outdated: Callable[[], bool]) -> EngineStatus | None:
        """Load an engine if there is none.

        Return the state after a failure; None if no user needs to receive it.
        """
        self._num_failures = 0
        try:
            self._engine = load(report, is_outdated)
        except CancelledError:
            return None
        except SlipstreamError as error:
            return EngineStatus("error", error.message, error.advice)
        except BaseException as error:
            logger.exception("The engine cannot be loaded")
            return failed_status(error)
        return None

    def unload(self) -> None:
        """Drop the engine; there is none until another one is loaded."""
        engine, self._engine = self._engine, None
        if isinstance(engine, Closable):
            engine.close()

    def give_up(self) -> None:
        """Drop the engine without closing it, after its thread failed; from now on `fails_always` is true."""
        self._engine, self._num_failures = None, MAX_FAILURES

    def complete(self, job: EngineJob) -> Completion | BaseException:
        """Return the answer to a request; its statistics include the time that it waited."""
        if self._engine is None:
            return NoEngineError()
        if job.request.cancellation.is_cancelled:
            return CancelledError()
        queue_ms = (time.perf_counter() - job.submitted_s) * 1000
        try:
            completion = self._engine.complete(replace(job.request, waited_ms=queue_ms))
        except (CancelledError, RemoteError) as error:
            return error
        except BaseException as error:
            self._num_failures += 1
            job.user.on_failure(error)
            return error
        self._num_failures = 0
        self._answered = job
        completion.stats.ms["queue"] = queue_ms
        completion.stats.ms["total"] += queue_ms
        return completion

    def propose_edit(self, job: EditJob, cancellation: Cancellation) -> EditAnswer | BaseException:
        """Return the answer to a request for an edit; `cancellation` replaces the request's own."""
        if not isinstance(self._engine, EditCompleter):
            return EditAnswer(rule="edit-needs-local-model")
        try:
            return self._engine.propose_edit(replace(job.request, cancellation=cancellation))
        except CancelledError as error:
            return error
        except BaseException as error:
            job.user.on_failure(error)
            return error

    def idle(self, cancellation: Cancellation) -> bool:
        """Run one step of background work; return False if there is none.

        If the last answer would show more after it, its user is notified.
        """
        more = self.call(lambda engine: engine.idle(cancellation))
        grown = self._engine.take_grown() if isinstance(self._engine, GrowingCompleter) else None
        answered = self._answered
        if grown is not None and answered is not None and grown.is_at(answered.request):
            answered.user.on_grown(grown)
        return bool(more)

    def leave(self, user: EngineUser) -> None:
        """Drop the last answer if it was this user's. Safe on any thread."""
        if self._answered is not None and self._answered.user is user:
            self._answered = None

    def call(self, function: Callable[[Completer], Any]) -> Any:
        """Return the function's result; None if it was interrupted, or failed and was reported."""
        if self._engine is None:
            return None
        try:
            return function(self._engine)
        except CancelledError:
            return None
        except BaseException as error:
            self._tell_all(error)
            return None
