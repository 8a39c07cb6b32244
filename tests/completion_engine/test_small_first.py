"""Two engines as one: the smaller answers at a place until the larger is warm there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from completion_engine.errors import DataError
from completion_engine.request import (
    Cancellation,
    CancelledError,
    Completion,
    CompletionRequest,
    CompletionStats,
)
from completion_engine.small_first import SmallFirst
from lsp_server.engine.auto_target import small_first
from lsp_server.engine.engine_types import Completer, Load

PREPARES_X, WRITES_X = ["large x", "large x"], ["large x!", "large x!"]


@dataclass
class Scripted:
    """Is warm where it was prepared; takes `num_steps` of idle time for that. `log` is what was done."""

    name: str
    log: list[str]
    num_steps: int = 1
    finish_reason: str = "stop"
    error: BaseException | None = None
    warm: set[str] = field(default_factory=set)
    num_late: int = 0
    _left: tuple[str, int] | None = None

    def is_in_time(self, request: CompletionRequest) -> bool:
        return request.prefix in self.warm

    def complete(self, request: CompletionRequest) -> Completion:
        if self.error:
            raise self.error
        stats = CompletionStats(target=self.name, finish_reason=self.finish_reason)
        if self.finish_reason == "deadline":
            self._left = request.prefix, self.num_steps
        return Completion(f"{request.prefix} by {self.name}", 0, stats)

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        self._left = f"{request.prefix}{'!' if writes else ''}", self.num_steps

    def idle(self, cancellation: Cancellation, *, is_late: bool = False) -> bool:
        if self._left is None:
            return False
        self.num_late += is_late
        prefix, num_left = self._left
        self.log.append(f"{self.name} {prefix}")
        self._left = (prefix, num_left - 1) if num_left > 1 else None
        if self._left is None:
            self.warm.add(prefix)
        return self._left is not None

    def share_recent(self, other: Scripted) -> None:
        self.log.append(f"{self.name} drafts from {other.name}")

    def forget(self, document: str) -> None:
        self.log.append(f"{self.name} forgets {document}")

    def describe(self) -> dict[str, Any]:
        return {"target": self.name, "num_weight_bytes": len(self.name)}


def pair(**small: Any) -> tuple[SmallFirst, list[str]]:
    log: list[str] = []
    return SmallFirst(Scripted("small", log, **small), Scripted("large", log, num_steps=2)), log


def request(prefix: str, document: str = "a") -> CompletionRequest:
    return CompletionRequest(prefix, "", document=document)


def idle(both: SmallFirst) -> None:
    while both.idle(Cancellation()):
        pass


def test_the_small_one_answers_until_the_larger_one_is_warm() -> None:
    both, log = pair()
    first = both.complete(request("x"))
    idle(both)
    later = both.complete(request("x"))
    assert (first.stats.target, first.stats.is_provisional) == ("small", True)
    assert (later.stats.target, later.stats.is_provisional) == ("large", False)
    assert log == PREPARES_X + WRITES_X


def test_who_comes_does_not_wait_for_what_the_larger_one_prepares_but_for_what_it_writes() -> None:
    both, log = pair()
    large = both.large
    assert isinstance(large, Scripted)
    both.complete(request("x"))
    idle(both)
    assert (log, large.num_late) == (PREPARES_X + WRITES_X, 2)
    both.prefetch(request("x"), writes=True)
    idle(both)
    assert (log[4:], large.num_late) == (WRITES_X, 2)


def test_the_larger_one_writes_as_soon_as_it_is_warm_even_with_work_left() -> None:
    both, log = pair()
    large = both.large
    assert isinstance(large, Scripted)
    both.complete(request("x"))
    both.idle(Cancellation())
    large.warm.add("x")
    idle(both)
    assert log == ["large x", *WRITES_X]


def test_a_cut_answer_is_finished_before_the_larger_one_prepares() -> None:
    both, log = pair(finish_reason="deadline", num_steps=3)
    both.complete(request("x"))
    idle(both)
    assert log == ["small x"] * 3 + PREPARES_X + WRITES_X


def test_what_the_small_one_left_waits_for_nobody_who_came_back_to_the_larger_one() -> None:
    both, log = pair(finish_reason="deadline", num_steps=3)
    large = both.large
    assert isinstance(large, Scripted)
    both.complete(request("x"))
    large.warm.add("y")
    large.finish_reason = "deadline"
    both.complete(request("y"))
    both.idle(Cancellation())
    assert log == ["large y"]


def test_a_place_that_is_looked_at_is_prepared_by_both() -> None:
    both, log = pair()
    both.prefetch(request("x"))
    idle(both)
    assert log == ["small x", "large x", "large x"]
    assert both.complete(request("x")).stats.target == "large"


def test_a_newer_place_takes_an_older_ones_turn() -> None:
    both, log = pair()
    both.complete(request("x"))
    both.complete(request("y"))
    idle(both)
    assert log == ["large y", "large y", "large y!", "large y!"]


def test_a_cancelled_request_is_where_the_larger_one_prepares() -> None:
    both, log = pair(error=CancelledError())
    with pytest.raises(CancelledError):
        both.complete(request("x"))
    idle(both)
    assert log == PREPARES_X


def test_nothing_is_prepared_for_a_closed_document() -> None:
    both, log = pair()
    both.complete(request("x"))
    both.forget("a")
    idle(both)
    assert log == ["small forgets a", "large forgets a"]


def test_an_interrupt_ends_idle_work_and_loses_none() -> None:
    both, log = pair()
    both.complete(request("x"))
    stop = Cancellation()
    stop.cancel()
    assert not both.idle(stop)
    idle(both)
    assert log == PREPARES_X + WRITES_X


def loads(engine: Completer | BaseException) -> Load:
    def load(report: Callable[..., None], should_stop: Callable[[], bool]) -> Completer:
        if isinstance(engine, BaseException):
            raise engine
        return engine

    return load


def test_both_are_loaded_and_described() -> None:
    small, large = (Scripted(name, []) for name in ("small", "large"))
    both = small_first(loads(small), loads(large))(lambda *_: None, lambda: False)
    described = {"target": "small", "num_weight_bytes": 5}
    assert both.describe() == {"target": "large", "num_weight_bytes": 10, "small": described}
    assert large.log == ["large drafts from small"]


def test_without_the_small_one_the_larger_answers_alone() -> None:
    large = Scripted("large", [])
    load = small_first(loads(DataError("It is damaged.")), loads(large))
    assert load(lambda *_: None, lambda: False) is large


def test_before_somebody_asks_the_one_that_would_answer_writes() -> None:
    both, log = pair()
    both.prefetch(request("x"), writes=True)
    idle(both)
    assert log == ["small x!", *PREPARES_X, *WRITES_X]
    both.prefetch(request("x"), writes=True)
    idle(both)
    assert log[5:] == WRITES_X
