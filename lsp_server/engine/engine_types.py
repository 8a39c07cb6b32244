"""The values that enter and leave the engine's thread: jobs, users, states, and its view of the engine.

Has no access to threads, the event loop or the protocol.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.request import Cancellation, CompletionRequest, Progress
from completion_engine.stats import Completion, CompletionStats
from lsp_server.workspace.folder_worker import TokenSource
from lsp_server.workspace.settings import Settings

EngineState = Literal["loading", "ready", "error"]


class Completer(Protocol):
    """The interface of an engine; all of it is called on the engine's thread only."""

    def complete(self, request: CompletionRequest) -> Completion:
        """One completion; raises CancelledError when its cancellation is set."""
        ...

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """Predict a request. `idle` prepares for it, and if `writes`, writes its text."""
        ...

    def idle(self, cancellation: Cancellation) -> bool:
        """One unit of background work; False when there is none."""
        ...

    def open(self, language: str) -> None:
        """A document of this language is open."""
        ...

    def forget(self, document: str) -> None:
        """The document is closed."""
        ...

    def describe(self) -> dict[str, Any]:
        """Target, device, memory and the like."""
        ...


@runtime_checkable
class Closable(Protocol):
    """An engine that holds more than memory."""

    def close(self) -> None:
        """Let go of it."""
        ...


@runtime_checkable
class EditCompleter(Protocol):
    """An engine that proposes edits too."""

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        """Return one edit or none; raises CancelledError when the request's cancellation is set."""
        ...


class NoEngineError(Exception):
    """The engine that was asked is given up, and none could be loaded in its place."""


Load = Callable[[Progress, Callable[[], bool]], Completer]
OnTokens = Callable[[TokenSource], None]

# A way to load the engine that the settings ask for; it reports the engine's tokens as soon as they are
# known.
LoadFor = Callable[[Settings, OnTokens], Load]

_PLACES = {"GPU kernels": "the GPU", "GPU torch": "the GPU through plain torch", "CPU": "the CPU"}


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The engine's state as others see it; `done` of `total` units of `message` while it loads."""

    state: EngineState = "loading"
    message: str = ""
    advice: str = ""
    done: int = 0
    total: int = 0
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def refusal(self) -> str:
        """The rule by which no request is worked on in this state; empty where requests are."""
        return "" if self.state == "ready" else f"engine-{self.state}"

    def with_details(self, **more: Any) -> EngineStatus:
        """The same state, with further details."""
        return replace(self, details={**self.details, **more})


def empty(rule: str) -> Completion:
    """No suggestion, and why."""
    return Completion("", 0, CompletionStats(), rule=rule)


def ready_status(details: dict[str, Any]) -> EngineStatus:
    """Return the state of an engine that describes itself so; it says why a GPU is not used, or not fully."""
    reason = details.get("rung_reason", "")
    message = f"Ready. The model runs on {_PLACES[details['rung']]}. {reason}" if reason else ""
    return EngineStatus("ready", message, details=details)


def failed_status(error: BaseException) -> EngineStatus:
    """The state of an engine that a bug of ours or of a library ended; the log has the traceback."""
    return EngineStatus("error", f"The engine failed: {error!r}.", "The traceback is in the log.")


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for people about the engine that they use."""

    message: str
    is_problem: bool = False


def _ignore(_value: object) -> None:
    return


@dataclass(frozen=True, slots=True, eq=False)
class EngineUser:
    """A user of an engine, which may have others. All methods are called on any thread and must not wait.

    `on_status` receives each change of the engine's state, `on_failure` errors that are bugs, `on_notice`
    messages for the user.
    """

    on_status: Callable[[EngineStatus], None] = _ignore
    on_failure: Callable[[BaseException], None] = _ignore
    on_notice: Callable[[Notice], None] = _ignore


@dataclass(slots=True)
class EngineJob:
    """A user's request on its way through the thread; the functions are called on any thread."""

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


@dataclass(slots=True)
class EditJob:
    """A user's request for the next edit; `resolve` is called on any thread."""

    request: EditRequest
    user: EngineUser
    resolve: Callable[[EditAnswer | BaseException], None]

    def cancel(self) -> None:
        """Ask the engine to stop at its next step."""
        self.request.cancellation.cancel()
