"""Two engines as one: a small model answers until the larger one is warm at the cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.request import Cancellation, Completion, CompletionRequest

if TYPE_CHECKING:  # a server starts without torch
    from completion_engine.engine import CompletionEngine

_MEMORY = ("num_weight_bytes", "num_cache_bytes", "num_drafter_bytes")


@dataclass(slots=True)
class SmallFirst:
    """Answers by `large` if it is in time, otherwise by `small`. Used on the engine's thread only.

    The statistics of an answer name the model that wrote it. Once `large` is warm where `small` answered, it
    writes its own answer in the background, for the next keystroke; what `small` wrote is a draft of it.
    """

    small: CompletionEngine
    large: CompletionEngine
    _has_small_work: bool = False  # background work of the smaller engine, which runs before the larger one's
    _to_prefetch: CompletionRequest | None = None  # the request that the larger engine is to prepare
    _prepared: CompletionRequest | None = None  # the one that it prepares, and could not answer in time yet
    _is_awaited: bool = False  # the smaller engine wrote an answer to that request

    def complete(self, request: CompletionRequest) -> Completion:
        """See `CompletionEngine`."""
        self._to_prefetch, self._prepared, self._is_awaited = None, None, False
        if self.large.is_in_time(request):
            self._has_small_work = False
            return self.large.complete(request)
        self._to_prefetch, self._has_small_work = request, True
        completion = self.small.complete(request)
        self._has_small_work, self._is_awaited = completion.stats.is_unfinished, True
        completion.stats.is_provisional = True
        return completion

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """See `CompletionEngine`; the one that would answer is ready first."""
        if writes and self.large.is_in_time(request):
            self._to_prefetch, self._prepared, self._has_small_work = None, None, False
            self.large.prefetch(request, writes=True)
            return
        self.small.prefetch(request, writes=writes)
        self._to_prefetch, self._has_small_work, self._is_awaited = request, True, writes

    def idle(self, cancellation: Cancellation) -> bool:
        """See `CompletionEngine`; the larger one works once the smaller one is ready for the cursor."""
        if cancellation.is_cancelled:
            return False
        if self._has_small_work:
            self._has_small_work = self.small.idle(cancellation)
            return True
        if self._to_prefetch is not None:
            self._prepared, self._to_prefetch = self._to_prefetch, None
            self.large.prefetch(self._prepared)
        self._write_where_warm()
        goes_on = self.large.idle(cancellation, is_late=self._prepared is not None)
        return goes_on or self._write_where_warm() or self.small.idle(cancellation)

    def take_grown(self) -> CompletionRequest | None:
        """See `CompletionEngine`."""
        grown = self.large.take_grown(), self.small.take_grown()
        return grown[0] or grown[1]

    def _write_where_warm(self) -> bool:
        """Let the larger engine write once it is warm where the smaller one wrote. Return whether it does."""
        if self._prepared is None or not self.large.is_in_time(self._prepared):
            return False
        prepared, self._prepared = self._prepared, None
        if self._is_awaited:
            self.large.prefetch(prepared, writes=True)
        return self._is_awaited

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        """Return the larger one's edit, because no user waits for a key."""
        return self.large.propose_edit(request)

    def forget(self, document: str) -> None:
        """See `CompletionEngine`."""
        self._to_prefetch, self._prepared = (
            request if request is not None and request.document != document else None
            for request in (self._to_prefetch, self._prepared)
        )
        for engine in (self.small, self.large):
            engine.forget(document)

    def describe(self) -> dict[str, Any]:
        """Return the larger engine's facts with the memory of both, and the smaller one's under `small`."""
        large, small = self.large.describe(), self.small.describe()
        together = {name: large[name] + small[name] for name in _MEMORY if name in large and name in small}
        return {**large, **together, "small": small}
