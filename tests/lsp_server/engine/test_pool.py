"""Windows with the same settings share one engine, receive its state, and lose nothing to each other."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from completion_engine.errors import MachineError
from completion_engine.request import (
    CancelledError,
    Completion,
    CompletionRequest,
    CompletionStats,
    Progress,
)
from lsp_server.engine import thread as engine_thread
from lsp_server.engine.engine_types import EngineStatus, EngineUser, Load, Notice, OnTokens
from lsp_server.engine.pool import MAX_ENGINES, EnginePool, EngineSlots, engine_config
from lsp_server.engine.scheduler import Scheduler, SupersededError
from lsp_server.engine.thread import MAX_FAILURES, EngineThread
from lsp_server.sharing.supervision import MAX_CRASHES
from lsp_server.workspace.measurements import Measurements
from lsp_server.workspace.settings import Settings
from ngram_cache.overlays import TokenSource
from tests.clock import Clock
from tests.waiting import until
from tests.windows import QuietEngine

STEP_S = 0.005
PATIENCE_S = 60.0  # longest time of a busy machine
LINGER_S = 600.0


@dataclass
class ScriptedEngine(QuietEngine):
    """Answers after `num_steps` steps, or fails; if it ignores cancellation, it never ends."""

    target: str
    num_steps: int = 1
    failure: BaseException | None = None
    is_deaf: bool = False
    num_begun: int = 0
    forgotten: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def complete(self, request: CompletionRequest) -> Completion:
        self.num_begun += 1
        self.asked.append(request.prefix)
        steps = 0
        while steps < self.num_steps or self.is_deaf:
            time.sleep(STEP_S)
            steps += 1
            if request.cancellation.is_cancelled and not self.is_deaf:
                raise CancelledError
        if self.failure:
            raise self.failure
        return Completion(f"{request.prefix} by {self.target}", 0, CompletionStats())

    def forget(self, document: str) -> None:
        self.forgotten.append(document)

    def describe(self) -> dict[str, Any]:
        return {"target": self.target}


@dataclass
class Window:
    """One scheduler and all that it received."""

    scheduler: Scheduler
    statuses: list[EngineStatus]
    failures: list[BaseException]
    notices: list[Notice]
    tokens: list[TokenSource]

    async def use(self, target: str, *, waits: bool = True) -> None:
        self.scheduler.use(Settings(target=target))
        if waits:
            await until(lambda: self.scheduler.status.state in {"ready", "error"})

    async def ask(self, prefix: str) -> str:
        completion = await self.scheduler.complete(CompletionRequest(prefix, "", deadline_ms=0))
        return completion.text or completion.rule


@dataclass
class Host:
    """A pool that loads scripted engines; `problems` are what loading a target raises."""

    pool: EnginePool = field(init=False)
    engines: list[ScriptedEngine] = field(default_factory=list)
    problems: dict[str, BaseException] = field(default_factory=dict)
    alive: list[int] = field(default_factory=list)
    may_load: threading.Event = field(default_factory=threading.Event)

    def load_for(self, settings: Settings, on_tokens: OnTokens) -> Load:
        def load(report: Progress, should_stop: Callable[[], bool]) -> ScriptedEngine:
            on_tokens(TokenSource(settings.target, lambda texts: [[] for _ in texts]))
            report("Half", 1, 2)
            self.alive.append(sum(thread.name == "engine" for thread in threading.enumerate()))
            assert self.may_load.wait(60)
            if settings.target in self.problems:
                raise self.problems[settings.target]
            self.engines.append(ScriptedEngine(settings.target))
            return self.engines[-1]

        return load

    def window(self) -> Window:
        statuses: list[EngineStatus] = []
        failures: list[BaseException] = []
        notices: list[Notice] = []
        tokens: list[TokenSource] = []
        user = EngineUser(statuses.append, failures.append, notices.append, on_tokens=tokens.append)
        scheduler = Scheduler(Measurements(), self.pool, user)
        return Window(scheduler, statuses, failures, notices, tokens)


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    host = Host()
    host.may_load.set()
    host.pool = EnginePool(host.load_for, LINGER_S)
    yield host
    for engine in host.engines:
        engine.is_deaf = False
    assert await asyncio.to_thread(host.pool.stop, PATIENCE_S)


async def test_windows_with_the_same_settings_share_an_engine(host: Host) -> None:
    one, other = host.window(), host.window()
    await one.use("a")
    await other.use("a")
    assert await asyncio.gather(one.ask("x"), other.ask("y")) == ["x by a", "y by a"]
    assert len(host.engines) == 1
    assert host.pool.describe() == [{"setting": "a", "target": "a", "state": "ready", "num_users": 2}]


async def test_who_comes_late_hears_the_state_and_the_tokens_as_they_are(host: Host) -> None:
    host.may_load.clear()
    early, late = host.window(), host.window()
    await early.use("a", waits=False)
    await until(lambda: early.scheduler.status.message == "Half")
    await late.use("a", waits=False)
    await until(lambda: bool(late.statuses))
    assert late.statuses[0] == EngineStatus("loading", "Half", done=1, total=2)
    host.may_load.set()
    await until(lambda: late.statuses[-1].state == "ready")
    last = host.window()
    await last.use("a")
    await until(lambda: bool(last.statuses))
    assert [status.state for status in last.statuses] == ["ready"]
    for window in (early, late, last):
        assert [tokens.fingerprint for tokens in window.tokens] == ["a"]


async def test_other_settings_are_another_engine_and_the_old_one_is_given_up_first(host: Host) -> None:
    one, other = host.window(), host.window()
    await one.use("a")
    await other.use("b")
    assert await asyncio.gather(one.ask("x"), other.ask("y")) == ["x by a", "y by b"]
    await one.use("b")
    assert await one.ask("z") == "z by b"
    await one.use("c")
    assert [found["target"] for found in host.pool.describe()] == ["b", "c"]
    assert host.alive == [1, 2, 2]  # when c was loaded, a had ended


async def test_who_keeps_another_window_waiting_is_asked_to_give_way(host: Host) -> None:
    slow, other = host.window(), host.window()
    await slow.use("a")
    await other.use("a")
    host.engines[0].is_deaf = True
    asked = [CompletionRequest(name, "", deadline_ms=0) for name in ("slow", "slower", "other")]
    first = asyncio.create_task(slow.scheduler.complete(asked[0]))
    await until(lambda: host.engines[0].asked == ["slow"])
    again = asyncio.create_task(slow.scheduler.complete(asked[1]))
    await asyncio.sleep(0)
    assert not asked[0].cancellation.gives_way, "its own window's next request is no reason"
    waiting = asyncio.create_task(other.scheduler.complete(asked[2]))
    await until(lambda: asked[0].cancellation.gives_way)
    host.engines[0].is_deaf = False
    await asyncio.gather(first, again, waiting, return_exceptions=True)
    assert host.engines[0].asked == ["slow", "slower", "other"]
    assert asked[1].cancellation.gives_way, "one still waited"
    assert not asked[2].cancellation.gives_way, "nobody waited any more"


@pytest.mark.parametrize("is_first", [True, False], ids=["under way", "waiting"])
async def test_typing_in_one_window_leaves_the_others_request_alone(host: Host, is_first: bool) -> None:
    typing, waiting = host.window(), host.window()
    await typing.use("a")
    await waiting.use("a")
    host.engines[0].is_deaf = True  # so that all of this happens while one completion is made
    if is_first:
        answer = asyncio.create_task(waiting.ask("patient"))
        await until(lambda: host.engines[0].num_begun == 1)
    key = asyncio.create_task(typing.ask("key"))
    await asyncio.sleep(0)
    if not is_first:
        await until(lambda: host.engines[0].num_begun == 1)
        answer = asyncio.create_task(waiting.ask("patient"))
        await asyncio.sleep(0)
    for number in range(3):
        typing.scheduler.prefetch(CompletionRequest("next", ""))
        next_key = asyncio.create_task(typing.ask(f"next key {number}"))
        with pytest.raises(SupersededError):
            await key
        key = next_key
    key.cancel()
    host.engines[0].is_deaf = False
    assert await answer == "patient by a"
    assert waiting.statuses[-1].state == "ready"


@pytest.mark.parametrize("is_moving", [True, False], ids=["to another engine", "for good"])
async def test_who_leaves_an_engine_takes_its_documents_along(host: Host, is_moving: bool) -> None:
    stays, goes = host.window(), host.window()
    await stays.use("a")
    await goes.use("a")
    await goes.scheduler.complete(CompletionRequest("x", "", document="1 asked.py"))
    goes.scheduler.prefetch(CompletionRequest("x", "", document="1 looked at.py"))
    if is_moving:
        await goes.use("b")
    else:
        goes.scheduler.close()
    await until(lambda: len(host.engines[0].forgotten) == 2)
    assert set(host.engines[0].forgotten) == {"1 asked.py", "1 looked at.py"}


async def test_an_error_in_a_completion_is_told_to_the_window_that_asked(host: Host) -> None:
    one, other = host.window(), host.window()
    await one.use("a")
    await other.use("a")
    host.engines[0].failure = ZeroDivisionError("bug")
    assert await one.ask("x") == "engine-failed"
    assert (len(one.failures), len(other.failures)) == (1, 0)


async def test_a_window_that_is_loaded_anew_finds_its_engine_ready(host: Host) -> None:
    window = host.window()
    await window.use("a")
    window.scheduler.close()
    again = host.window()
    await again.use("a", waits=False)
    assert again.scheduler.status.state == "ready"
    assert len(host.engines) == 1
    await Clock().turn(2 * LINGER_S)
    assert await again.ask("x") == "x by a"


async def test_an_engine_that_nobody_uses_is_dropped_in_time(host: Host) -> None:
    window = host.window()
    await window.use("a")
    window.scheduler.close()
    clock = Clock()
    await clock.turn(0.9 * LINGER_S)
    assert len(host.pool.describe()) == 1
    await clock.turn(0.2 * LINGER_S)
    assert host.pool.describe() == []


async def test_an_engine_that_failed_to_load_is_tried_again_for_all(host: Host) -> None:
    host.problems["a"] = MachineError("No network.", advice="Plug it in.")
    first = host.window()
    await first.use("a")
    assert (first.scheduler.status.state, first.scheduler.status.message) == ("error", "No network.")
    host.problems.clear()
    second = host.window()
    await second.use("a", waits=False)
    await until(lambda: first.scheduler.status.state == second.scheduler.status.state == "ready")
    assert await asyncio.gather(first.ask("x"), second.ask("y")) == ["x by a", "y by a"]


async def test_an_engine_that_fails_every_time_is_sick_until_it_does_not(host: Host) -> None:
    window = host.window()
    await window.use("a")
    host.engines[0].failure = RuntimeError("the device is gone")
    for _ in range(MAX_FAILURES):
        assert not host.pool.is_sick
        await window.ask("x")
    assert host.pool.is_sick
    host.engines[0].failure = None
    await window.ask("x")
    assert not host.pool.is_sick


async def test_an_engine_that_does_not_come_back_is_sick(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    window = host.window()
    await window.use("a")
    host.engines[0].is_deaf = True
    task = asyncio.create_task(window.ask("x"))
    await until(lambda: host.engines[0].num_begun == 1)
    monkeypatch.setattr(engine_thread, "STUCK_S", 0.05)
    await asyncio.sleep(0.1)
    assert not host.pool.is_sick  # slow, but no request for its end
    task.cancel()
    await until(lambda: host.pool.is_sick)
    host.engines[0].is_deaf = False
    await until(lambda: not host.pool.is_sick)


class Panic(BaseException):
    """A panic of a library below Python, which is not an Exception."""


async def test_a_panic_in_a_completion_is_an_answer_and_the_next_request_is_served(host: Host) -> None:
    window, other = host.window(), host.window()
    await window.use("a")
    await other.use("a")
    host.engines[0].failure = Panic("in a library")
    async with asyncio.timeout(PATIENCE_S):
        assert await window.ask("x") == "engine-failed"
        host.engines[0].failure = None
        assert await window.ask("y") == "y by a"
        assert await other.ask("z") == "z by a"
    assert [type(error) for error in window.failures] == [Panic]


async def test_a_panic_while_loading_is_an_error_that_windows_see_and_may_try_again(host: Host) -> None:
    host.problems["a"] = Panic("in a library")
    window = host.window()
    await window.use("a")
    assert window.scheduler.status.state == "error"
    assert "Panic" in window.scheduler.status.message
    assert await window.ask("x") == "engine-error"
    host.problems.clear()
    again = host.window()
    await again.use("a", waits=False)
    await until(lambda: window.scheduler.status.state == "ready")
    assert await window.ask("x") == "x by a"


def fail_in_the_loop(*_arguments: object) -> object:
    raise Panic("in our own loop")


async def test_an_error_outside_of_the_engine_answers_who_waits_and_the_thread_goes_on(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = host.window()
    await window.use("a")

    with monkeypatch.context() as patch:
        patch.setattr(EngineThread, "_do_complete", fail_in_the_loop)
        async with asyncio.timeout(PATIENCE_S):
            assert await window.ask("x") == "engine-failed"
    assert await window.ask("y") == "y by a"
    assert [type(error) for error in window.failures] == [Panic]


async def test_a_thread_that_always_fails_is_an_error_and_loading_again_heals_it(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = host.window()
    await window.use("a")

    with monkeypatch.context() as patch:
        patch.setattr(EngineThread, "_do_complete", fail_in_the_loop)
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(MAX_CRASHES):
                await window.ask("x")
            await until(lambda: window.scheduler.status.state == "error")
            assert await window.ask("x") == "engine-error"
    assert host.pool.is_sick
    again = host.window()
    await again.use("a", waits=False)
    await until(lambda: again.scheduler.status.state == "ready")
    assert await again.ask("y") == "y by a"


async def test_who_waited_for_an_engine_that_could_not_be_loaded_is_sent_to_no_traceback(host: Host) -> None:
    window = host.window()
    await window.use("a")
    (entry,) = host.pool._entries.values()
    host.problems["a"] = MachineError("No network.")
    host.engines[0].is_deaf = True  # so that all of this happens while one completion is made
    asking = asyncio.create_task(window.ask("x"))
    await until(lambda: host.engines[0].num_begun == 1)
    other = host.window()
    other.scheduler.use(Settings(target="a"))
    waiting = asyncio.create_task(other.ask("y"))
    await asyncio.sleep(0)
    entry.thread.load(entry.load)
    host.engines[0].is_deaf = False
    assert await waiting == "engine-error"
    assert await asking == "x by a"


async def test_neither_order_nor_repetition_of_drafters_makes_another_engine(host: Host) -> None:
    wanted = [("ngram", "neural"), ("neural", "ngram"), ("ngram", "neural", "ngram")]
    for drafters in wanted:
        host.window().scheduler.use(Settings(target="a", drafters=drafters))
    await until(lambda: [found["state"] for found in host.pool.describe()] == ["ready"])
    assert len(host.engines) == 1
    assert {engine_config(Settings(drafters=drafters)).drafters for drafters in wanted} == {
        ("ngram", "neural")
    }


async def test_so_many_engines_are_in_memory_and_a_further_one_waits_until_one_goes(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = [host.window() for _ in range(MAX_ENGINES)]
    for number, window in enumerate(windows):
        await window.use(f"target {number}")
    late = host.window()
    await late.use("late", waits=False)
    await until(lambda: late.scheduler.status.message.startswith("Waiting"))
    assert (late.scheduler.status.state, len(host.engines)) == ("loading", MAX_ENGINES)
    assert await late.ask("x") == "engine-loading"
    assert await windows[0].ask("y") == "y by target 0"
    monkeypatch.setattr(host.pool, "_linger_s", 1000.0)  # an unused engine ends at once if another one waits
    windows[0].scheduler.close()
    await until(lambda: late.scheduler.status.state == "ready")
    assert await late.ask("x") == "x by late"


async def test_an_engine_for_which_there_is_no_thread_is_tried_again(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    window = host.window()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            window.scheduler.use(Settings(target="a"))
    assert host.pool.describe() == []
    await window.use("a")
    assert await window.ask("x") == "x by a"


async def test_an_engine_that_could_not_be_loaded_takes_no_place(host: Host) -> None:
    for number in range(MAX_ENGINES):
        host.problems[f"target {number}"] = MachineError("No network.")
        await host.window().use(f"target {number}")
    window = host.window()
    await window.use("good")
    assert await window.ask("x") == "x by good"


def test_a_thread_that_is_stopped_while_it_waits_for_others_does_not_wait_for_itself() -> None:
    slots, waiting = EngineSlots(), EngineThread()
    waiting.is_stopping = True

    def load(_report: Progress, _should_stop: Callable[[], bool]) -> ScriptedEngine:
        raise CancelledError

    with pytest.raises(CancelledError), pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "join", threading.current_thread().join)  # an error on the thread itself
        slots.in_slot(waiting, load)(lambda *_: None, lambda: True)
