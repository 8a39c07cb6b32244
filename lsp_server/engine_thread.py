"""The one thread that owns the engine: loads it, completes, works ahead when idle, and ends.

Owns the engine and its state. Must not know the event loop, the protocol, nor which request is the newest.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from completion_engine.errors import SlipstreamError
from completion_engine.request import Cancellation, CancelledError, CompletionRequest
from completion_engine.stats import Completion

logger = logging.getLogger(__name__)

State = Literal["loading", "warming", "ready", "error"]

# Background work waits this long after the last completion, so that it does not meet the next keystroke.
IDLE_PAUSE_S = 0.05

# How often an engine that warms up is asked whether it is warm.
WARMING_POLL_S = 0.5


class Completer(Protocol):
    """What the thread needs of an engine; all of it is called on this thread only."""

    def complete(self, request: CompletionRequest) -> Completion:
        """One completion; raises CancelledError when its cancellation is set."""
        ...

    def idle(self, cancellation: Cancellation) -> bool:
        """One unit of background work; False when there is none."""
        ...

    def forget(self, document: str) -> None:
        """The document is closed."""
        ...

    def describe(self) -> dict[str, Any]:
        """Target, device, memory and the like."""
        ...


Report = Callable[[str, int, int], None]
Load = Callable[[Report, Callable[[], bool]], Completer]


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The engine's state as others see it; `done` of `total` units of `message` while it loads."""

    state: State = "loading"
    message: str = ""
    advice: str = ""
    done: int = 0
    total: int = 0
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Job:
    """A request on its way through the thread; the last three are called or set from any thread."""

    request: CompletionRequest
    resolve: Callable[[Completion | BaseException], None]
    on_idle_after_cancel: Callable[[float], None]
    submitted_s: float = field(default_factory=time.perf_counter)
    cancelled_s: float | None = None

    def cancel(self) -> None:
        """Ask the engine to stop at its next step."""
        if self.cancelled_s is None:
            self.cancelled_s = time.perf_counter()
        self.request.cancellation.cancel()


class EngineThread:
    """Runs one thing at a time, in this order: stop, load, forget, complete, work ahead.

    `on_status` and `on_failure` (an error that is a bug of ours) are called on this thread.
    """

    def __init__(
        self, on_status: Callable[[EngineStatus], None], on_failure: Callable[[BaseException], None]
    ) -> None:
        self._on_status = on_status
        self._on_failure = on_failure
        self._changed = threading.Condition()
        self._load: Load | None = None
        self._pending: Job | None = None
        self._forgotten: deque[str] = deque()
        self._interrupt = Cancellation()
        self._may_idle = False
        self._idle_from_s = 0.0
        self._stopping = False
        self._engine: Completer | None = None
        self.status = EngineStatus()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    @property
    def can_complete(self) -> bool:
        """Whether a request would be worked on now."""
        return self.status.state in {"warming", "ready"}

    def start(self) -> None:
        """Start the thread; it waits for `load`."""
        self._thread.start()

    def load(self, load: Load) -> None:
        """Give up the present engine, or the present loading, and load another."""
        with self._changed:
            self._load = load
            self._wake()
            self.status = EngineStatus()

    def submit(self, job: Job) -> None:
        """Take `job` as the next one, in place of one that still waits; nobody hears of that one again."""
        with self._changed:
            self._pending = job
            self._wake()

    def forget(self, document: str) -> None:
        """Tell the engine, when it has a moment, that a document is closed."""
        with self._changed:
            self._forgotten.append(document)
            self._changed.notify()

    def stop(self, timeout_s: float) -> bool:
        """End the thread. True when it has ended within `timeout_s`."""
        with self._changed:
            self._stopping = True
            self._wake()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _wake(self) -> None:
        self._interrupt.cancel()
        self._changed.notify()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            task()

    def _next(self) -> Callable[[], None] | None:
        """The next thing to do; waits for one, and returns None at the end."""
        with self._changed:
            while True:
                if self._stopping:
                    return None
                if (load := self._load) is not None:
                    self._load = None
                    return lambda: self._do_load(load)
                if self._forgotten:
                    return self._do_forget
                if (job := self._pending) is not None:
                    self._pending = None
                    return lambda: self._do_complete(job)
                pause_s = self._idle_from_s - time.perf_counter() if self._may_idle else None
                if pause_s is not None and pause_s <= 0:
                    self._interrupt = Cancellation()
                    return self._do_idle
                if pause_s is None and self.status.state == "warming":
                    pause_s = WARMING_POLL_S
                if not self._changed.wait(pause_s) and self.status.state == "warming":
                    return self._refresh

    def _do_load(self, load: Load) -> None:
        self._engine = None
        self._may_idle = False
        self._publish(EngineStatus())

        def is_outdated() -> bool:
            return self._stopping or self._load is not None

        def report(message: str, done: int, total: int) -> None:
            if not is_outdated():
                self._publish(EngineStatus(message=message, done=done, total=total))

        try:
            self._engine = load(report, is_outdated)
        except CancelledError:
            return
        except SlipstreamError as error:
            failure = EngineStatus("error", error.message, error.advice)
        except Exception as error:
            logger.exception("The engine cannot be loaded")
            failure = EngineStatus("error", f"The engine cannot be loaded: {error!r}.", "See the log.")
        else:
            self._may_idle = True
            self._refresh()
            return
        if not is_outdated():
            self._publish(failure)

    def _do_forget(self) -> None:
        document = self._forgotten.popleft()
        if self._engine is not None:
            self._guarded(lambda engine: engine.forget(document))

    def _do_complete(self, job: Job) -> None:
        try:
            job.resolve(self._answer(job))
        finally:
            if job.cancelled_s is not None:
                job.on_idle_after_cancel((time.perf_counter() - job.cancelled_s) * 1000)
        self._may_idle = True
        self._idle_from_s = time.perf_counter() + IDLE_PAUSE_S

    def _answer(self, job: Job) -> Completion | BaseException:
        if self._engine is None:
            return CancelledError()
        if job.request.cancellation.is_cancelled:
            return CancelledError()
        queue_ms = (time.perf_counter() - job.submitted_s) * 1000
        request = job.request
        if request.deadline_ms > 0:
            # The deadline is the client's: waiting for the step that was under way counts.
            request = replace(request, deadline_ms=max(1.0, request.deadline_ms - queue_ms))
        try:
            completion = self._engine.complete(request)
        except CancelledError as error:
            return error
        except Exception as error:
            self._on_failure(error)
            return error
        completion.stats.ms["queue"] = queue_ms
        completion.stats.ms["total"] += queue_ms
        return completion

    def _do_idle(self) -> None:
        more = self._guarded(lambda engine: engine.idle(self._interrupt))
        self._may_idle = bool(more) or self._interrupt.is_cancelled
        if not self._may_idle:
            self._refresh()

    def _guarded(self, call: Callable[[Completer], Any]) -> Any:
        """The call's result; None when it was interrupted, or failed and that was reported."""
        if self._engine is None:
            return None
        try:
            return call(self._engine)
        except CancelledError:
            return None
        except Exception as error:
            self._on_failure(error)
            return None

    def _refresh(self) -> None:
        """Publish what the engine says of itself."""
        details = self._guarded(lambda engine: engine.describe()) or {}
        state: State = "warming" if details.get("state") == "warming" else "ready"
        self._publish(EngineStatus(state, details=details))

    def _publish(self, status: EngineStatus) -> None:
        with self._changed:
            if self._load is not None and status.state != "loading":
                return
            self.status = status
        self._on_status(status)
