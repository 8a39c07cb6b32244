"""The values that enter and leave an engine thread: jobs, users, states; the interface of engines, and the
guard around one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from completion_engine.errors import RemoteError, SlipstreamError
from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.request import (
    Cancellation,
    CancelledError,
    Completion,
    CompletionRequest,
    CompletionStats,
    Progress,
)
from lsp_server.workspace.settings import Settings
from ngram_cache.overlays import TokenSource

EngineState = Literal["loading", "ready", "error"]


class Completer(Protocol):
    """The interface of an engine. All calls come from the engine's thread."""

    def complete(self, request: CompletionRequest) -> Completion:
        """Return one completion. Raises CancelledError once the request's cancellation is set."""
        ...

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """Predict a request. `idle` then prepares for it, and with `writes` also writes its completion."""
        ...

    def idle(self, cancellation: Cancellation) -> bool:
        """Run one step of background work; return False if there is none."""
        ...

    def take_grown(self) -> CompletionRequest | None:
        """Return the request whose answer would show more by now, once; None without news."""
        ...

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        """Return one edit or none. Raises CancelledError once the request's cancellation is set."""
        ...

    def forget(self, document: str) -> None:
        """Record that the document is closed."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return facts such as target, device and memory."""
        ...


@runtime_checkable
class Closable(Protocol):
    """An engine that holds resources other than memory."""

    def close(self) -> None:
        """Release the resources."""
        ...


class NoEngineError(Exception):
    """The engine was dropped, and no other one could be loaded in its place."""


Load = Callable[[Progress, Callable[[], bool]], Completer]
OnTokens = Callable[[TokenSource], None]

# A way to load the engine that the settings ask for; it reports the engine's tokens as soon as they are
# known.
LoadFor = Callable[[Settings, OnTokens], Load]

_PLACES = {"GPU kernels": "the GPU", "GPU torch": "the GPU through plain torch", "CPU": "the CPU"}


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The published state of an engine; while it loads, `done` of `total` units of `message` are done."""

    state: EngineState = "loading"
    message: str = ""
    advice: str = ""
    done: int = 0
    total: int = 0
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def refusal(self) -> str:
        """The rule by which requests are refused in this state; empty if they are accepted."""
        return "" if self.state == "ready" else f"engine-{self.state}"

    def with_details(self, **more: Any) -> EngineStatus:
        """Return the same state with further details."""
        return replace(self, details={**self.details, **more})


def empty(rule: str) -> Completion:
    """Return an empty completion with the rule that explains it."""
    return Completion("", 0, CompletionStats(), rule=rule)


def ready_status(details: dict[str, Any]) -> EngineStatus:
    """Return the state of a loaded engine, with the reason if its GPU is not used, or not fully."""
    reason = details.get("backend_reason", "")
    message = f"Ready. The model runs on {_PLACES[details['backend']]}. {reason}" if reason else ""
    return EngineStatus("ready", message, details=details)


def failed_status(error: BaseException) -> EngineStatus:
    """Return the state of an engine after a bug; the log has the traceback."""
    return EngineStatus("error", f"The engine failed: {error!r}.", "The traceback is in the log.")


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for users about their engine."""

    message: str
    is_problem: bool = False


def _ignore(_value: object) -> None:
    return


@dataclass(frozen=True, slots=True, eq=False)
class EngineUser:
    """A user of an engine, which other users may share. Methods are called on any thread and must not wait.

    `on_status` receives each change of the engine's state, `on_failure` errors that are bugs, `on_notice`
    messages for the user, `on_grown` requests whose answers would show more by now, `on_tokens` the engine's
    tokenizer.
    """

    on_status: Callable[[EngineStatus], None] = _ignore
    on_failure: Callable[[BaseException], None] = _ignore
    on_notice: Callable[[Notice], None] = _ignore
    on_grown: Callable[[CompletionRequest], None] = _ignore
    on_tokens: OnTokens = _ignore


@dataclass(slots=True)
class CompletionJob:
    """A user's request to an engine thread; its functions are called on any thread."""

    request: CompletionRequest
    user: EngineUser
    resolve: Callable[[Completion | BaseException], None]
    on_idle_after_cancel: Callable[[float], None]
    submitted_s: float = field(default_factory=time.perf_counter)
    cancelled_s: float | None = None

    def cancel(self) -> None:
        """Ask the engine to stop at its next step."""
        if self.cancelled_s is None:
            self.cancelled_s = time.perf_counter()
            self.request.cancellation.cancel()

    def answer(self, answer: Completion | BaseException) -> None:
        """Answer the request; after a cancellation, report how long the engine was still busy with it."""
        try:
            self.resolve(answer)
        finally:
            if self.cancelled_s is not None:
                self.on_idle_after_cancel((time.perf_counter() - self.cancelled_s) * 1000)

    def needs_another_turn(self, answer: Completion | BaseException) -> bool:
        """Return whether another window's request ended this one before it had any text to show.

        An editor sends no further request until the next key, so an empty answer would leave its user without
        a suggestion. The engine keeps what it computed. Within the request's patience it is worth going on.
        """
        if not isinstance(answer, Completion) or answer.text or self.cancelled_s is not None:
            return False
        was_cut_short = answer.stats.finish_reason == "deadline" and self.request.cancellation.gives_way
        return was_cut_short and time.perf_counter() - self.submitted_s < self.request.patience_ms / 1e3


@dataclass(slots=True)
class EditJob:
    """A user's request for the next edit; `resolve` is called on any thread."""

    request: EditRequest
    user: EngineUser
    resolve: Callable[[EditAnswer | BaseException], None]

    def cancel(self) -> None:
        """Ask the engine to stop at its next step."""
        self.request.cancellation.cancel()


@dataclass(frozen=True, slots=True)
class PrefetchJob:
    """A request that a user is likely to make soon. If it `writes`, its completion is written in advance."""

    request: CompletionRequest
    user: EngineUser
    writes: bool = False
    submitted_s: float = field(default_factory=time.perf_counter)


@dataclass(frozen=True, slots=True)
class CloseJob:
    """A document is closed: everything that is held of it goes."""

    document: str


Job = CompletionJob | EditJob | PrefetchJob | CloseJob


logger = logging.getLogger(__name__)

R = TypeVar("R")


class GuardedEngine:
    """At most one engine, `engine`, from its loading to its end. Used on one thread.

    Every exception counts as the engine's error, BaseException included, because libraries raise panics that
    are not an Exception.
    """

    def __init__(self) -> None:
        self.engine: Completer | None = None

    def load(self, load: Load, report: Progress, is_outdated: Callable[[], bool]) -> EngineStatus | None:
        """Load an engine in place of the present one. Return the state after a failure; None if no user needs
        to receive it.
        """
        self.unload()
        try:
            self.engine = load(report, is_outdated)
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
        engine, self.engine = self.engine, None
        if isinstance(engine, Closable):
            engine.close()

    def call(
        self, function: Callable[[Completer], R], on_failure: Callable[[BaseException], None]
    ) -> R | BaseException:
        """Return what a function of the engine returns, or its error; `on_failure` also gets a bug."""
        if self.engine is None:
            return NoEngineError()
        try:
            return function(self.engine)
        except (CancelledError, RemoteError) as error:
            return error
        except BaseException as error:
            on_failure(error)
            return error
