"""The next action of an engine's thread: no pause for prefetched text, nothing for closed documents."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from completion_engine.request import (
    Cancellation,
    CancelledError,
    Completion,
    CompletionRequest,
    CompletionStats,
    Progress,
)
from lsp_server.engine import thread as thread_module
from lsp_server.engine.engine_types import (
    CloseJob,
    CompletionJob,
    EngineStatus,
    EngineUser,
    PrefetchJob,
    ready_status,
)
from lsp_server.engine.thread import EngineThread
from tests.windows import QuietEngine

PATIENCE_S = 60.0


@dataclass
class Engine(QuietEngine):
    """Records its calls. A completion takes until `may_answer`, or its cancellation."""

    may_answer: threading.Event = field(default_factory=threading.Event)
    log: list[str] = field(default_factory=list)
    gives_way: bool = False
    _said: threading.Condition = field(default_factory=threading.Condition)
    _num_steps: int = 0

    def say(self, line: str) -> None:
        with self._said:
            self.log.append(line)
            self._said.notify_all()

    def has_said(self, line: str) -> bool:
        with self._said:
            return self._said.wait_for(lambda: line in self.log, PATIENCE_S)

    def complete(self, request: CompletionRequest) -> Completion:
        self.say(f"begin {request.document}")
        stopped = request.cancellation.when_cancelled(self.may_answer.set)
        assert self.may_answer.wait(PATIENCE_S)
        stopped()
        if request.cancellation.is_cancelled:
            raise CancelledError
        return Completion("x", 0, CompletionStats(finish_reason="stop"))

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        self.say(f"{'write' if writes else 'prepare'} {request.document}")
        self._num_steps = 2

    def idle(self, cancellation: Cancellation) -> bool:
        if not self._num_steps:
            self.say("nothing to do")
            return False
        self._num_steps -= 1
        self.gives_way = cancellation.gives_way
        self.say(f"step, {self._num_steps} left")
        return self._num_steps > 0

    def forget(self, document: str) -> None:
        self.say(f"forget {document}")

    def describe(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def thread(engine: Engine) -> Iterator[EngineThread]:
    """A thread with an engine."""
    is_ready = threading.Event()
    thread = EngineThread()

    def watch(status: EngineStatus) -> None:
        if status.state == "ready":
            is_ready.set()

    thread.join_in(EngineUser(watch))
    thread.load(lambda _report, _should_stop: engine)
    assert is_ready.wait(PATIENCE_S)
    assert engine.has_said("nothing to do")
    engine.log.clear()
    yield thread
    engine.may_answer.set()
    thread.stop()
    assert thread.join(PATIENCE_S)


def request(document: str) -> CompletionRequest:
    return CompletionRequest("", "", document=document)


def job(user: EngineUser, document: str) -> CompletionJob:
    return CompletionJob(request(document), user, lambda _answer: None, lambda _ms: None)


@pytest.fixture
def users(thread: EngineThread) -> list[EngineUser]:
    """Two windows."""
    found = [EngineUser(), EngineUser()]
    for user in found:
        thread.join_in(user)
    return found


@pytest.fixture
def endless_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IDLE_PAUSE_S", "READING_PAUSE_S"):
        monkeypatch.setattr(thread_module, name, 3600.0)


@pytest.mark.usefixtures("endless_pauses")
@pytest.mark.parametrize("is_cancelled", [True, False])
def test_what_is_prefetched_while_a_request_runs_is_written_as_soon_as_that_is_over(
    engine: Engine, thread: EngineThread, users: list[EngineUser], is_cancelled: bool
) -> None:
    under_way = job(users[0], "before")
    thread.submit(under_way)
    assert engine.has_said("begin before")
    thread.submit(PrefetchJob(request("typed"), users[0], writes=True))
    if is_cancelled:
        under_way.cancel()
    engine.may_answer.set()
    assert engine.has_said("step, 0 left")
    assert engine.log == ["begin before", "write typed", "step, 1 left", "step, 0 left"]


@dataclass
class Dreaming(Engine):
    """Does background work until a request arrives, and records the request."""

    def idle(self, cancellation: Cancellation) -> bool:
        if not self._num_steps or cancellation.is_cancelled:
            return super().idle(cancellation)
        come = threading.Event()
        stopped = cancellation.when_cancelled(come.set)
        self.say("dream")
        assert come.wait(PATIENCE_S)
        stopped()
        self._num_steps = 0
        self.say(f"wake for {cancellation.instead.document if cancellation.instead else 'nobody'}")
        return True


@pytest.mark.parametrize("engine", [Dreaming()])
def test_work_ahead_is_told_for_whom_it_is_to_end(
    engine: Dreaming, thread: EngineThread, users: list[EngineUser]
) -> None:
    thread.submit(PrefetchJob(request("typed"), users[0], writes=True))
    assert engine.has_said("dream")
    thread.submit(job(users[0], "come"))
    assert engine.has_said("begin come")
    assert engine.log == ["write typed", "dream", "wake for come", "begin come"]


@pytest.mark.parametrize("engine", [Dreaming()])
def test_work_ahead_gives_way_to_text_that_is_prefetched(
    engine: Dreaming, thread: EngineThread, users: list[EngineUser]
) -> None:
    for user, typed, woken in zip(users, ("one", "two"), ("dream", "wake for two"), strict=True):
        thread.submit(PrefetchJob(request(typed), user, writes=True))
        assert engine.has_said(woken)
    assert engine.has_said("write two")
    thread.submit(job(users[0], "come"))  # which ends what goes on
    assert engine.has_said("begin come")


@pytest.mark.usefixtures("endless_pauses")
def test_neither_anothers_answer_nor_its_focus_delays_what_is_prefetched(
    engine: Engine, thread: EngineThread, users: list[EngineUser]
) -> None:
    thread.submit(job(users[1], "theirs"))
    assert engine.has_said("begin theirs")
    thread.submit(PrefetchJob(request("mine"), users[0], writes=True))
    thread.submit(PrefetchJob(request("their focus"), users[1]))
    engine.may_answer.set()
    assert engine.has_said("step, 0 left")
    assert engine.log == ["begin theirs", "write mine", "step, 1 left", "step, 0 left"]


def test_a_document_that_is_closed_while_the_engine_loads_is_never_prepared(
    engine: Engine, thread: EngineThread, users: list[EngineUser]
) -> None:
    is_loading, may_load = threading.Event(), threading.Event()

    def load(_report: Progress, _should_stop: Callable[[], bool]) -> Engine:
        is_loading.set()
        assert may_load.wait(PATIENCE_S)
        return engine

    thread.load(load)
    assert is_loading.wait(PATIENCE_S)
    thread.submit(PrefetchJob(request("closed"), users[0], writes=True))
    thread.submit(CloseJob("closed"))
    may_load.set()
    assert engine.has_said("nothing to do")  # a prefetch would have come before
    thread.submit(PrefetchJob(request("open"), users[1]))
    assert engine.has_said("prepare open")
    assert "write closed" not in engine.log


@pytest.mark.parametrize("has_left", [True, False])
def test_a_document_that_is_closed_behind_anothers_request_is_never_prepared(
    engine: Engine, thread: EngineThread, users: list[EngineUser], has_left: bool
) -> None:
    thread.submit(job(users[1], "theirs"))
    assert engine.has_said("begin theirs")
    thread.submit(PrefetchJob(request("closed"), users[0], writes=True))
    if has_left:
        thread.leave(users[0])
    else:
        thread.submit(CloseJob("closed"))
    engine.may_answer.set()
    assert engine.has_said("nothing to do")
    assert engine.log == ["begin theirs", "forget closed", "nothing to do"]


@pytest.mark.parametrize("num_askers", [1, 2])
def test_work_ahead_gives_way_where_others_may_ask(
    engine: Engine, thread: EngineThread, users: list[EngineUser], num_askers: int
) -> None:
    engine.may_answer.set()
    for user in users[:num_askers]:
        thread.submit(job(user, "asked"))
    thread.submit(PrefetchJob(request("looked at"), users[0]))
    assert engine.has_said("step, 0 left")
    assert engine.gives_way == (num_askers == 2)


@dataclass
class Slow(Engine):
    """Its first turn ends before it has any text to show, if another window waits."""

    def complete(self, request: CompletionRequest) -> Completion:
        is_first = f"begin {request.document}" not in self.log
        answer = super().complete(request)
        is_cut = is_first and request.cancellation.gives_way and request.document == "first"
        return Completion("", 0, CompletionStats(finish_reason="deadline")) if is_cut else answer


@pytest.mark.parametrize("engine", [Slow()])
@pytest.mark.parametrize(("patience_ms", "num_turns"), [(600_000.0, 2), (0.0, 1)])
def test_a_request_that_gave_way_before_it_had_any_text_gets_another_turn(
    engine: Slow, thread: EngineThread, users: list[EngineUser], patience_ms: float, num_turns: int
) -> None:
    engine.may_answer.clear()
    answers: list[tuple[str, str]] = []
    has_both = threading.Event()

    def ask(user: EngineUser, document: str) -> None:
        def resolve(answer: Completion | BaseException) -> None:
            assert isinstance(answer, Completion)
            answers.append((document, answer.text))
            if len(answers) == 2:
                has_both.set()

        asked = CompletionRequest("", "", document=document, patience_ms=patience_ms)
        thread.submit(CompletionJob(asked, user, resolve, lambda _ms: None))

    ask(users[0], "first")
    assert engine.has_said("begin first")
    ask(users[1], "other")
    engine.may_answer.set()
    assert has_both.wait(PATIENCE_S)
    assert sorted(answers) == [("first", "x" if num_turns == 2 else ""), ("other", "x")]
    assert [line for line in engine.log if line.startswith("begin")] == [
        "begin first", "begin other", "begin first"
    ][: num_turns + 1]  # fmt: skip


def test_a_request_of_a_window_that_has_gone_is_not_kept(
    engine: Engine, thread: EngineThread, users: list[EngineUser]
) -> None:
    asked = job(users[0], "a")
    kept = weakref.ref(asked.resolve)
    thread.submit(asked)
    del asked
    assert engine.has_said("begin a")
    thread.leave(users[0])
    engine.may_answer.set()
    thread.submit(job(users[1], "b"))
    assert engine.has_said("begin b")
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({}, ""),
        ({"backend": "GPU kernels", "backend_reason": ""}, ""),
        (
            {"backend": "CPU", "backend_reason": "The card is full."},
            "Ready. The model runs on the CPU. The card is full.",
        ),
        (
            {"backend": "GPU torch", "backend_reason": "Triton is not installed."},
            "Ready. The model runs on the GPU through plain torch. Triton is not installed.",
        ),
    ],
)
def test_a_ready_engine_says_why_it_does_not_run_on_a_faster_backend(
    details: dict[str, str], message: str
) -> None:
    assert ready_status(details).message == message
