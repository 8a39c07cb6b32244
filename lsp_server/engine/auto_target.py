"""The target `auto` of one engine: its current model, failed attempts, and a small model that answers first.

Loads and engines run on engine threads. Does not use the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from completion_engine.choice.choice import Choice
from completion_engine.config import AUTO
from completion_engine.errors import MachineError, SlipstreamError
from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.request import Cancellation, CancelledError, Completion, CompletionRequest, Progress
from lsp_server.engine.engine_types import Completer, GrowingCompleter, Load, LoadFor, Notice, OnTokens
from lsp_server.workspace.settings import Settings

logger = logging.getLogger(__name__)
_MEMORY = ("num_weight_bytes", "num_cache_bytes", "num_drafter_bytes")


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

    def load_next(self, target: str, on_tokens: OnTokens, with_place: Callable[[Load], Load]) -> Load:
        """Return a load of the larger model, which is downloaded first, while the present one answers.

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


class TimedCompleter(Completer, Protocol):
    """An engine that reports whether it is warm."""

    def is_in_time(self, request: CompletionRequest) -> bool:
        """Return whether the request can be answered within its deadline."""
        ...

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        """See `EditCompleter`."""
        ...

    def idle(self, cancellation: Cancellation, *, is_late: bool = False) -> bool:
        """Run one step of background work; with `is_late`, another engine answers requests meanwhile."""
        ...

    def share_recent(self, other: Any) -> None:
        """Draft from the recent completions of both engines if they have the same tokens."""
        ...


@dataclass(slots=True)
class SmallFirst:
    """Answers by `large` if it is in time, otherwise by `small`. Used on the engine's thread only.

    The statistics of an answer name the engine that wrote it. Once `large` is warm where `small` answered, it
    writes its own answer in the background, for the next keystroke; what `small` wrote is a draft of it.
    """

    small: Completer
    large: TimedCompleter
    _is_small_behind: bool = (
        False  # the smaller engine has background work, which runs before the larger one's
    )
    _to_prefetch: CompletionRequest | None = None  # the request that the larger engine is to prepare
    _prepared: CompletionRequest | None = (
        None  # the request that it prepares, and could not answer in time yet
    )
    _is_awaited: bool = False  # the smaller engine wrote an answer to that request

    def complete(self, request: CompletionRequest) -> Completion:
        """See `Completer`."""
        self._to_prefetch, self._prepared, self._is_awaited = None, None, False
        if self.large.is_in_time(request):
            return self.large.complete(request)
        self._to_prefetch, self._is_small_behind = request, True
        completion = self.small.complete(request)
        self._is_small_behind, self._is_awaited = completion.stats.is_unfinished, True
        completion.stats.is_provisional = True
        return completion

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """See `Completer`; who would answer is ready first."""
        if writes and self.large.is_in_time(request):
            self._to_prefetch, self._prepared, self._is_small_behind = None, None, False
            self.large.prefetch(request, writes=True)
            return
        self.small.prefetch(request, writes=writes)
        self._to_prefetch, self._is_small_behind, self._is_awaited = request, True, writes

    def idle(self, cancellation: Cancellation) -> bool:
        """See `Completer`; the larger one's work begins once the smaller one is ready for the same place."""
        if cancellation.is_cancelled:
            return False
        if self._is_small_behind:
            self._is_small_behind = self.small.idle(cancellation)
            return True
        if self._to_prefetch is not None:
            self._prepared, self._to_prefetch = self._to_prefetch, None
            self.large.prefetch(self._prepared)
        self._write_where_warm()
        goes_on = self.large.idle(cancellation, is_late=self._prepared is not None)
        return goes_on or self._write_where_warm() or self.small.idle(cancellation)

    def take_grown(self) -> CompletionRequest | None:
        """See `GrowingCompleter`."""
        found = [one.take_grown() for one in (self.large, self.small) if isinstance(one, GrowingCompleter)]
        return next((grown for grown in found if grown is not None), None)

    def _write_where_warm(self) -> bool:
        """Let the larger engine write once it is warm where the smaller one wrote. Return whether it does."""
        if self._prepared is None or not self.large.is_in_time(self._prepared):
            return False
        prepared, self._prepared = self._prepared, None
        if self._is_awaited:
            self.large.prefetch(prepared, writes=True)
        return self._is_awaited

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        """See `EditCompleter`; the larger one decides, because no user waits for a key."""
        return self.large.propose_edit(request)

    def forget(self, document: str) -> None:
        """See `Completer`."""
        if self._to_prefetch is not None and self._to_prefetch.document == document:
            self._to_prefetch = None
        if self._prepared is not None and self._prepared.document == document:
            self._prepared = None
        self.small.forget(document)
        self.large.forget(document)

    def describe(self) -> dict[str, Any]:
        """Return the larger engine's facts with the memory of both, and the smaller one's under `small`."""
        large, small = self.large.describe(), self.small.describe()
        together = {name: large[name] + small[name] for name in _MEMORY if name in large and name in small}
        return {**large, **together, "small": small}


def small_first(load_small: Load, load_large: Load) -> Load:
    """Return a load of both engines; only the larger one if the smaller one cannot be loaded."""

    def load(report: Progress, should_stop: Callable[[], bool]) -> Completer:
        large = load_large(report, should_stop)
        try:
            small = load_small(report, should_stop)
        except SlipstreamError as error:
            logger.warning("No smaller model answers at cold places: %s", error)
            return large
        both = SmallFirst(small, large)  # type: ignore[arg-type]  # engines know whether they are warm
        both.large.share_recent(small)
        return both

    return load
