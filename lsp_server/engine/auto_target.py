"""The target `auto` of one engine: its current model, failed attempts, and the loading of the next one.

Loads and engines run on engine threads. Does not use the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from completion_engine.choice.choice import Choice
from completion_engine.config import AUTO
from completion_engine.errors import MachineError, SlipstreamError
from completion_engine.request import CancelledError, Progress
from completion_engine.small_first import SmallFirst
from lsp_server.engine.engine_types import Completer, Load, LoadFor, Notice, OnTokens
from lsp_server.workspace.settings import Settings

if TYPE_CHECKING:
    from completion_engine.engine import CompletionEngine

logger = logging.getLogger(__name__)


class Chooser(Protocol):
    """Chooses the model for `auto` (see `completion_engine.choice`). Used on engine threads."""

    def choose(self, settings: Settings, running: str, refused: Mapping[str, str]) -> Choice:
        """Return the choice for these settings."""
        ...

    def fetch(self, target: str, report: Progress, should_stop: Callable[[], bool]) -> None:
        """Download the model unless it is in the store."""
        ...


class AutoTarget:
    """Chooses a model at the start, and again once passes are measured.

    A model that could not be loaded is not tried again.
    """

    def __init__(self, settings: Settings, chooser: Chooser, load_for: LoadFor) -> None:
        self._settings = settings
        self._chooser = chooser
        self._load_for = load_for
        self._refused: dict[str, str] = {}
        self._after_move: Choice | None = None
        self.choice: Choice | None = None
        self.running = ""
        self.notice: Notice | None = None

    @property
    def next_target(self) -> str:
        """Return the larger model that is to replace the present one; empty if there is none."""
        chosen = self.choice.target if self.choice and self.running else ""
        return "" if chosen == self.running else chosen

    def load_first(self, on_tokens: OnTokens) -> Load:
        """Return a load of the first model; if it fails, a smaller one is loaded."""

        def load(report: Progress, should_stop: Callable[[], bool]) -> Completer:
            self.running, engine = "", None
            while engine is None:
                target = self._choose("").start
                engine = self._load_or_refuse(target, self._load(target, on_tokens), report, should_stop)
            self._choose(target)  # again, now that its passes are measured
            self.running = target
            return engine

        return load

    def load_next(self, target: str, on_tokens: OnTokens, in_slot: Callable[[Load], Load]) -> Load:
        """Return a load of the larger model, which is downloaded first, while the present one answers.

        A failed download is not reported to the user; a failed load of a downloaded model is.
        """

        def load(report: Progress, should_stop: Callable[[], bool]) -> Completer:
            running, may_load = self.running, False
            try:
                self._chooser.fetch(target, report, should_stop)
                self._check_again(target)
                may_load = True
                engine = in_slot(self._load(target, on_tokens))(report, should_stop)
                self._after_move = self._chooser.choose(self._settings, target, self._refused)
            except CancelledError:
                raise
            except BaseException as error:
                self._refuse(target, error)
                self._choose(running)
                if may_load:
                    self.notice = _cannot(target, running, error)
                raise
            return engine

        return load

    def move(self, target: str) -> None:
        """Make the larger model the one that answers from now on."""
        self.running, self.choice = target, self._after_move
        reason = self.choice.reason if self.choice else target
        self.notice = Notice(
            f"Suggestions now come from a larger model: {reason}. Set target to keep one model."
        )

    def take_notice(self) -> Notice | None:
        """Return the notice for the users, once."""
        notice, self.notice = self.notice, None
        return notice

    def describe(self, step: str) -> dict[str, Any]:
        """Return the facts for `slipstream/stats`; `step` is the present step towards the larger model."""
        if self.choice is None:
            return {}
        return {"setting": AUTO, **self.choice.as_dict(), "running": self.running, "step": step}

    def _choose(self, running: str) -> Choice:
        self.choice = self._chooser.choose(self._settings, running, self._refused)
        return self.choice

    def _load(self, target: str, on_tokens: OnTokens) -> Load:
        """Return a load of a model, with the smaller one that answers until it is warm at a position."""

        def of(model: str, receive_tokens: OnTokens) -> Load:
            return self._load_for(self._settings.model_copy(update={"target": model}), receive_tokens)

        load, beside = of(target, on_tokens), self.choice.beside if self.choice else ""
        return small_first(of(beside, lambda _tokens: None), load) if beside not in {"", target} else load

    def _load_or_refuse(
        self, target: str, load: Load, report: Progress, should_stop: Callable[[], bool]
    ) -> Completer | None:
        """Return the engine; None if it cannot be loaded and a smaller model is left to try."""
        try:
            return load(report, should_stop)
        except CancelledError:
            raise
        except BaseException as error:
            self._refuse(target, error)
            smaller = self._choose("").start
            if smaller == target:
                raise
            self.notice = _cannot(target, smaller, error)
            return None  # its loaded parts are released with the error's traceback

    def _check_again(self, target: str) -> None:
        """Check the resources again, because other programs may have used them up since the choice."""
        choice = self._choose(self.running)
        if choice.target != target:
            raise MachineError("; ".join(choice.next_up.obstacles) if choice.next_up else choice.reason)

    def _refuse(self, target: str, error: BaseException) -> None:
        logger.warning("%s cannot be the target now", target, exc_info=error)
        self._refused[target] = _reason(error)


def _cannot(target: str, running: str, error: BaseException) -> Notice:
    return Notice(f"{target} cannot be loaded, so {running} stays in use: {_reason(error)}", is_problem=True)


def _reason(error: BaseException) -> str:
    """Return the message of an error; the log has the traceback of a bug."""
    return str(error) if isinstance(error, SlipstreamError) else f"the engine failed: {error!r}"


def small_first(load_small: Load, load_large: Load) -> Load:
    """Return a load of both engines; only the larger one if the smaller one cannot be loaded."""

    def load(report: Progress, should_stop: Callable[[], bool]) -> Completer:
        large = cast("CompletionEngine", load_large(report, should_stop))
        try:
            small = cast("CompletionEngine", load_small(report, should_stop))
        except SlipstreamError as error:
            logger.warning("No smaller model answers at cold cursors: %s", error)
            return large
        large.share_recent(small)
        return SmallFirst(small, large)

    return load
