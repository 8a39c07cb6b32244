"""The target `auto` of one engine: its current model, its first model, and failed attempts.

Owns that state. Its loads are called on engines' threads. Does not use the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from completion_engine.choice.choice import Choice
from completion_engine.config import AUTO
from completion_engine.errors import MachineError, SlipstreamError
from completion_engine.request import CancelledError, Progress
from lsp_server.engine.engine_types import Completer, Load, LoadFor, Notice, OnTokens
from lsp_server.engine.small_first import small_first
from lsp_server.workspace.settings import Settings

logger = logging.getLogger(__name__)


class Chooser(Protocol):
    """What `auto` means on this machine; see `completion_engine.choice`. Called on engines' threads."""

    def choose(self, settings: Settings, running: str, refused: Mapping[str, str]) -> Choice:
        """The choice for these settings."""
        ...

    def fetch(self, target: str, report: Progress, should_stop: Callable[[], bool]) -> None:
        """Have the model in the store."""
        ...


class AutoTarget:
    """Chooses at a start, and again once passes are measured.

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
        """The larger model that is to take over; empty where there is none."""
        chosen = self.choice.target if self.choice and self.running else ""
        return "" if chosen == self.running else chosen

    def load_first(self, on_tokens: OnTokens) -> Load:
        """A load of the model to begin with; if it fails, of a smaller one."""

        def load(report: Progress, should_stop: Callable[[], bool]) -> Completer:
            self.running, engine = "", None
            while engine is None:
                target = self._choose("").start
                engine = self._load_or_refuse(target, self._load(target, on_tokens), report, should_stop)
            self._choose(target)  # now that its passes are known
            self.running = target
            return engine

        return load

    def load_next(self, target: str, on_tokens: OnTokens, with_place: Callable[[Load], Load]) -> Load:
        """A load of the larger model, downloaded first, beside the one that runs.

        A failed download is not reported to the user; a failed load of a downloaded model is.
        """

        def load(report: Progress, should_stop: Callable[[], bool]) -> Completer:
            running, may_load = self.running, False
            try:
                self._chooser.fetch(target, report, should_stop)
                self._check_again(target)
                may_load = True
                engine = with_place(self._load(target, on_tokens))(report, should_stop)
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
        """From now on the larger model answers."""
        self.running, self.choice = target, self._after_move
        reason = self.choice.reason if self.choice else target
        self.notice = Notice(
            f"Suggestions now come from a larger model: {reason}. Set target to keep one model."
        )

    def take_notice(self) -> Notice | None:
        """Take the notice for the users, once."""
        notice, self.notice = self.notice, None
        return notice

    def describe(self, step: str) -> dict[str, Any]:
        """For `slipstream/stats`; `step` is what is being done for the larger model."""
        if self.choice is None:
            return {}
        return {"setting": AUTO, **self.choice.as_dict(), "running": self.running, "step": step}

    def _choose(self, running: str) -> Choice:
        self.choice = self._chooser.choose(self._settings, running, self._refused)
        return self.choice

    def _load(self, target: str, on_tokens: OnTokens) -> Load:
        """A load of a model, beside the smaller one that answers until it is warm at a place."""

        def of(model: str, hears: OnTokens) -> Load:
            return self._load_for(self._settings.model_copy(update={"target": model}), hears)

        load, beside = of(target, on_tokens), self.choice.beside if self.choice else ""
        return small_first(of(beside, lambda _tokens: None), load) if beside not in {"", target} else load

    def _load_or_refuse(
        self, target: str, load: Load, report: Progress, should_stop: Callable[[], bool]
    ) -> Completer | None:
        """The engine; None where it cannot be loaded and a smaller model is left to try."""
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
            return None  # and what was loaded of it goes, with the error's traceback

    def _check_again(self, target: str) -> None:
        """Check the resources again, which may have been used up since the model was chosen."""
        choice = self._choose(self.running)
        if choice.target != target:
            raise MachineError("; ".join(choice.next_up.obstacles) if choice.next_up else choice.reason)

    def _refuse(self, target: str, error: BaseException) -> None:
        logger.warning("%s cannot be the target now", target, exc_info=error)
        self._refused[target] = _said(error)


def _cannot(target: str, running: str, error: BaseException) -> Notice:
    return Notice(f"{target} cannot be loaded, so {running} stays in use: {_said(error)}", is_problem=True)


def _said(error: BaseException) -> str:
    """What went wrong, in words; the log has the traceback of what is a bug."""
    return str(error) if isinstance(error, SlipstreamError) else f"the engine failed: {error!r}"
