"""The target `auto`: an engine that moves to a larger model between two requests.

Holds the choice, the failed attempts, and the thread that loads the larger model. Does not use the event
loop.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from completion_engine.choice.choice import Choice
from completion_engine.config import AUTO
from completion_engine.errors import MachineError, SlipstreamError
from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.request import (
    Cancellation,
    CancelledError,
    Completion,
    CompletionRequest,
    Progress,
    ShouldStop,
)
from completion_engine.runtime import give_back
from completion_engine.small_first import SmallFirst
from lsp_server.engine.engine_types import Completer, Load, LoadFor, Notice, OnTokens
from lsp_server.engine.thread import EngineThread
from lsp_server.sharing.supervision import SupervisedThread
from lsp_server.workspace.settings import Settings
from ngram_cache.overlays import TokenSource

if TYPE_CHECKING:
    from completion_engine.engine import CompletionEngine

logger = logging.getLogger(__name__)

# After this number of requests without a pause, the larger model takes over without preparing for a cursor.
MAX_KEYS = 20


class Chooser(Protocol):
    """Chooses the model for `auto` (see `completion_engine.choice`). Does not use the event loop."""

    def choose(self, settings: Settings, running: str, refused: Mapping[str, str]) -> Choice:
        """Return the choice for these settings."""
        ...

    def fetch(self, target: str, report: Progress, should_stop: ShouldStop) -> None:
        """Download the model unless it is in the store."""
        ...


class LargerModel(NamedTuple):
    """A larger model that is loaded, its tokenizer if it named one, and the choice once it answers."""

    target: str
    engine: Completer
    tokens: list[TokenSource]
    choice: Choice


class AutoTarget:
    """Chooses a model at the start, and again once passes are measured. `thread` runs its engine.

    A model that could not be loaded is not tried again.
    """

    def __init__(self, settings: Settings, chooser: Chooser, load_for: LoadFor, thread: EngineThread) -> None:
        self._thread = thread
        self._settings = settings
        self._chooser = chooser
        self._load_for = load_for
        self._refused: dict[str, str] = {}
        self.choice: Choice | None = None
        self.running = ""
        self._step = ""

    @property
    def next_target(self) -> str:
        """Return the larger model that is to replace the present one; empty if there is none."""
        chosen = self.choice.target if self.choice and self.running else ""
        return "" if chosen == self.running or chosen in self._refused else chosen

    def load(self, report: Progress, should_stop: ShouldStop) -> AutoEngine:
        """Load the first model; if that fails, a smaller one."""
        self.running, engine = "", None
        while engine is None:
            target = self._choose("").start
            engine = self._load_or_refuse(target, report, should_stop)
        self._choose(target)  # again, now that its passes are measured
        self.running = target
        return AutoEngine(self, engine, self._thread.wake)

    def load_larger(self, should_stop: ShouldStop) -> LargerModel | None:
        """Download and load the larger model while the present one answers; None if there is none by now.

        A failed download is not reported to the user; a failed load of a downloaded model is.
        """
        while (target := self.next_target) and not should_stop():
            running, is_fetched, tokens = self.running, False, list[TokenSource]()
            try:
                self._chooser.fetch(target, self._report, should_stop)
                self._check_again(target)
                is_fetched = True
                engine = self._load(target, tokens.append)(self._report, should_stop)
                choice = self._chooser.choose(self._settings, target, self._refused)
                self._report("about to take over", 0, 0)
                return LargerModel(target, engine, tokens[-1:], choice)
            except CancelledError:
                break
            except BaseException as error:
                self._refuse(target, error)
                if is_fetched:
                    self._tell_users(_cannot(target, running, error))
                self._choose(running)
                self._thread.wake(auto=self.describe())
        self._report("", 0, 0)
        return None

    def move(self, larger: LargerModel) -> None:
        """Record that the larger model answers from now on."""
        self.running, self.choice, self._step = larger.target, larger.choice, ""
        for tokens in larger.tokens:
            self._thread.set_tokens(tokens)
        reason = larger.choice.reason
        message = f"Suggestions now come from a larger model: {reason}. Set target to keep one model."
        self._tell_users(Notice(message))
        self._thread.refresh()

    def describe(self) -> dict[str, Any]:
        """Return the facts for `slipstream/stats`."""
        if self.choice is None:
            return {}
        return {"setting": AUTO, **self.choice.as_dict(), "running": self.running, "step": self._step}

    def _report(self, message: str, done: int, total: int) -> None:
        """Publish the present step towards the larger model. Each tenth interrupts background work once."""
        step = message + (f", {10 * (10 * done // total)} %" if total else "")
        if step != self._step:
            self._step = step
            self._thread.wake(auto=self.describe())

    def _tell_users(self, notice: Notice) -> None:
        for user in self._thread.users:
            user.on_notice(notice)

    def _choose(self, running: str) -> Choice:
        self.choice = self._chooser.choose(self._settings, running, self._refused)
        return self.choice

    def _load(self, target: str, on_tokens: OnTokens) -> Load:
        """Return a load of a model, with the smaller one that answers until it is warm at a position."""

        def of(model: str, receive_tokens: OnTokens) -> Load:
            return self._load_for(self._settings.model_copy(update={"target": model}), receive_tokens)

        load, beside = of(target, on_tokens), self.choice.beside if self.choice else ""
        return small_first(of(beside, lambda _tokens: None), load) if beside not in {"", target} else load

    def _load_or_refuse(self, target: str, report: Progress, should_stop: ShouldStop) -> Completer | None:
        """Return the engine; None if it cannot be loaded and a smaller model is left to try."""
        try:
            return self._load(target, self._thread.set_tokens)(report, should_stop)
        except CancelledError:
            raise
        except BaseException as error:
            self._refuse(target, error)
            smaller = self._choose("").start
            if smaller == target:
                raise
            self._tell_users(_cannot(target, smaller, error))
            return None  # its loaded parts are released with the error's traceback

    def _check_again(self, target: str) -> None:
        """Check the resources again, because other programs may have used them up since the choice."""
        choice = self._choose(self.running)
        if choice.target != target:
            raise MachineError("; ".join(choice.next_up.obstacles) if choice.next_up else choice.reason)

    def _refuse(self, target: str, error: BaseException) -> None:
        logger.warning("%s cannot be the target now", target, exc_info=error)
        self._refused[target], self._step = _reason(error), ""


class AutoEngine:
    """The engine of the model that runs now; see `Completer`. `wake` is called when there is another one.

    A larger model, which another thread loads, takes over in the next idle step; without one, at a key.
    """

    def __init__(self, auto_target: AutoTarget, engine: Completer, wake: Callable[[], None]) -> None:
        self._auto_target, self._engine, self._wake = auto_target, engine, wake
        self._larger: LargerModel | None = None
        self._last: CompletionRequest | None = None
        self._num_keys = 0  # requests since the larger model is loaded
        self._is_closed = False
        self._loader = SupervisedThread("loader", self._load_larger, lambda *_: None, max_crashes=1)

    def complete(self, request: CompletionRequest) -> Completion:
        """See `Completer`."""
        self._last = request
        if self._larger is not None:
            self._num_keys += 1
            if self._num_keys > MAX_KEYS:
                self._take_over(self._larger)
        return self._engine.complete(request)

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """See `Completer`."""
        self._engine.prefetch(request, writes=writes)

    def idle(self, cancellation: Cancellation) -> bool:
        """See `Completer`. Moves to the larger model, or loads it."""
        if self._larger is not None:
            self._take_over(self._larger)
        elif not self._loader.is_alive and self._larger is None and self._auto_target.next_target:
            with suppress(RuntimeError):  # without a thread, the next step tries again
                self._loader.start()
        return self._engine.idle(cancellation)

    def take_grown(self) -> CompletionRequest | None:
        """See `Completer`."""
        return self._engine.take_grown()

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        """See `Completer`."""
        return self._engine.propose_edit(request)

    def forget(self, document: str) -> None:
        """See `Completer`."""
        if self._last is not None and self._last.document == document:
            self._last = None
        self._engine.forget(document)

    def describe(self) -> dict[str, Any]:
        """See `Completer`."""
        return {**self._engine.describe(), "auto": self._auto_target.describe()}

    def close(self) -> None:
        """Wait until the thread that loads has ended; no call may follow."""
        self._is_closed = True
        self._loader.join(threading.TIMEOUT_MAX)
        del self._loader  # it refers back to this: the models would stay until garbage is collected

    def _load_larger(self) -> None:
        self._larger = self._auto_target.load_larger(lambda: self._is_closed)
        self._wake()

    def _take_over(self, larger: LargerModel) -> None:
        self._larger, self._engine, self._num_keys = None, larger.engine, 0
        give_back()
        self._auto_target.move(larger)
        if self._last is not None:
            self._engine.prefetch(replace(self._last, cancellation=Cancellation()))


def _cannot(target: str, running: str, error: BaseException) -> Notice:
    return Notice(f"{target} cannot be loaded, so {running} stays in use: {_reason(error)}", is_problem=True)


def _reason(error: BaseException) -> str:
    """Return the message of an error; the log has the traceback of a bug."""
    return str(error) if isinstance(error, SlipstreamError) else f"the engine failed: {error!r}"


def small_first(load_small: Load, load_large: Load) -> Load:
    """Return a load of both engines; only the larger one if the smaller one cannot be loaded."""

    def load(report: Progress, should_stop: ShouldStop) -> Completer:
        large = cast("CompletionEngine", load_large(report, should_stop))
        try:
            small = cast("CompletionEngine", load_small(report, should_stop))
        except SlipstreamError as error:
            logger.warning("No smaller model answers at cold cursors: %s", error)
            return large
        large.share_recent(small)
        return SmallFirst(small, large)

    return load
