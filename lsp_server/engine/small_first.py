"""Two engines as one: the smaller model answers at a position until the larger one is warm there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from completion_engine.errors import SlipstreamError
from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.request import Cancellation, Completion, CompletionRequest, Progress
from lsp_server.engine.engine_types import Completer, GrowingCompleter, Load

_MEMORY = ("num_weight_bytes", "num_cache_bytes", "num_drafter_bytes")

logger = logging.getLogger(__name__)


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

    def open(self, language: str) -> None:
        """See `Completer`."""
        self.small.open(language)
        self.large.open(language)

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
