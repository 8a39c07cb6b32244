"""An engine with the target `auto` moves to a larger model only between two requests, and at most once."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from completion_engine.choice.choice import Choice
from completion_engine.errors import DataError, MachineError
from completion_engine.request import (
    Cancellation,
    CancelledError,
    Completion,
    CompletionRequest,
    CompletionStats,
    Progress,
)
from lsp_server.engine.auto_target import AutoTarget
from lsp_server.engine.engine_types import CompletionJob, EngineUser, Load, Notice, OnTokens
from lsp_server.engine.pool import MAX_ENGINES, EnginePool
from lsp_server.engine.scheduler import Scheduler
from lsp_server.engine.thread import EngineThread
from lsp_server.sharing.supervision import MAX_CRASHES
from lsp_server.workspace.measurements import Measurements
from lsp_server.workspace.settings import Settings
from ngram_cache.overlays import TokenSource
from tests.waiting import until
from tests.windows import Panic, QuietEngine

SMALL, LARGE = "small", "large"
PATIENCE_S = 60.0


@dataclass
class Machine:
    """Scripted models; the larger is wanted once the small one runs. `log` records the actions."""

    start: str = SMALL
    log: list[str] = field(default_factory=list)
    engines: list[weakref.ref[Scripted]] = field(default_factory=list)
    problems: dict[str, BaseException] = field(default_factory=dict)
    no_network: BaseException | None = None
    keeps_small: bool = False
    is_warm: bool = True
    num_steps: int = 2
    may_fetch: threading.Event = field(default_factory=threading.Event)
    may_answer: threading.Event = field(default_factory=threading.Event)
    may_prepare: threading.Event = field(default_factory=threading.Event)

    def choose(self, settings: Settings, running: str, refused: Mapping[str, str]) -> Choice:
        assert settings.target == "auto"
        target = SMALL if LARGE in refused else LARGE
        return Choice(
            target,
            running or (SMALL if LARGE in refused else self.start),
            "; ".join(refused.values()),
            beside=SMALL if self.keeps_small else "",
        )

    def fetch(self, target: str, report: Progress, should_stop: Callable[[], bool]) -> None:
        self.log.append(f"fetch {target}")
        for done in range(self.num_steps):
            report("downloading", done, self.num_steps)
        while not self.may_fetch.wait(0.005):
            if should_stop():
                self.log.append("fetching ends")
                raise CancelledError
        if self.no_network:
            raise self.no_network

    def load_for(self, settings: Settings, on_tokens: OnTokens) -> Load:
        def load(report: Progress, should_stop: Callable[[], bool]) -> Scripted:
            self.log.append(f"load {settings.target}")
            on_tokens(TokenSource(settings.target, lambda texts: [[] for _ in texts]))
            if settings.target in self.problems:
                raise self.problems[settings.target]
            self.engines.append(weakref.ref(engine := Scripted(settings.target, self)))
            return engine

        return load


@dataclass
class Scripted(QuietEngine):
    """Answers when it may; prepares for predicted requests when it may."""

    target: str
    machine: Machine
    expected: str = ""

    def complete(self, request: CompletionRequest) -> Completion:
        while not self.machine.may_answer.wait(0.005):
            if request.cancellation.is_cancelled:
                raise CancelledError
        return Completion(f"{request.prefix} by {self.target}", 0, CompletionStats())

    def is_in_time(self, request: CompletionRequest) -> bool:
        return self.machine.is_warm

    def share_recent(self, other: Scripted) -> None:
        pass

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        self.expected = request.prefix

    def idle(self, cancellation: Cancellation) -> bool:
        if not self.expected:
            return False
        while not self.machine.may_prepare.wait(0.005):
            if cancellation.is_cancelled:
                return True
        self.machine.log.append(f"{self.target} prepares {self.expected}")
        self.expected = ""
        return False

    def take_grown(self) -> CompletionRequest | None:
        return None

    def describe(self) -> dict[str, Any]:
        return {"target": self.target}


@dataclass
class Window:
    scheduler: Scheduler
    notices: list[Notice]
    tokens: list[str]

    async def begin(self, target: str = "auto") -> None:
        self.scheduler.use(Settings(target=target))
        await until(lambda: self.scheduler.status.state in {"ready", "error"})

    async def ask(self, prefix: str) -> str:
        completion = await self.scheduler.complete(CompletionRequest(prefix, "", deadline_ms=0))
        return completion.text or completion.rule

    @property
    def automatic(self) -> Any:
        return self.scheduler.status.details["auto"]


@dataclass
class Bench:
    machine: Machine
    pool: EnginePool

    def window(self) -> Window:
        notices: list[Notice] = []
        tokens: list[str] = []
        user = EngineUser(
            on_notice=notices.append, on_tokens=lambda source: tokens.append(source.fingerprint)
        )
        return Window(Scheduler(Measurements(), self.pool, user), notices, tokens)

    @property
    def target(self) -> object:
        return self.pool.describe()[0]["target"]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    machine = Machine()
    machine.may_answer.set()
    machine.may_prepare.set()
    pool = EnginePool(machine.load_for, PATIENCE_S, machine)
    yield Bench(machine, pool)
    assert await asyncio.to_thread(pool.stop, PATIENCE_S)


async def test_nothing_moves_while_a_suggestion_is_on_its_way(bench: Bench) -> None:
    machine, window = bench.machine, bench.window()
    await window.begin()
    await until(lambda: f"fetch {LARGE}" in machine.log)
    machine.may_answer.clear()
    answer = asyncio.create_task(window.ask("x"))
    await until(lambda: bench.pool.is_busy)
    machine.may_fetch.set()
    await until(lambda: f"load {LARGE}" in machine.log)
    assert bench.target == SMALL
    machine.may_answer.set()
    assert await answer == "x by small"
    await until(lambda: bench.target == LARGE)
    assert await window.ask("y") == "y by large"


async def test_the_larger_one_prepares_where_people_are_as_soon_as_it_takes_over(bench: Bench) -> None:
    machine, window = bench.machine, bench.window()
    await window.begin()
    await until(lambda: f"fetch {LARGE}" in machine.log)
    assert await window.ask("here") == "here by small"
    machine.may_fetch.set()
    await until(lambda: "large prepares here" in machine.log)
    await until(lambda: bench.target == LARGE)
    assert window.automatic["step"] == ""


async def test_the_larger_one_is_not_prepared_where_somebody_was_that_has_gone(bench: Bench) -> None:
    machine, stays, goes = bench.machine, bench.window(), bench.window()
    await stays.begin()
    await goes.begin()
    await until(lambda: f"fetch {LARGE}" in machine.log)
    assert await goes.ask("there") == "there by small"
    goes.scheduler.close()
    machine.may_fetch.set()
    await until(lambda: bench.target == LARGE)
    assert await stays.ask("here") == "here by large"
    assert "large prepares there" not in machine.log


@pytest.mark.parametrize("start", [SMALL, LARGE])
async def test_the_small_one_stays_for_places_where_the_larger_one_is_cold(bench: Bench, start: str) -> None:
    machine, window = bench.machine, bench.window()
    machine.keeps_small, machine.start = True, start
    machine.may_fetch.set()
    await window.begin()
    await until(lambda: bench.target == LARGE)
    assert window.tokens[-1] == LARGE
    machine.is_warm = False
    assert await window.ask("cold") == "cold by small"
    machine.is_warm = True
    assert await window.ask("warm") == "warm by large"


async def test_all_windows_move_together_and_are_told_once(bench: Bench) -> None:
    machine, windows = bench.machine, [bench.window() for _ in range(3)]
    for window in windows:
        await window.begin()
    machine.may_fetch.set()
    await until(lambda: bench.target == LARGE)
    assert [await window.ask("x") for window in windows] == ["x by large"] * 3
    await until(lambda: all(window.notices for window in windows))
    assert [(len(window.notices), window.notices[0].is_problem) for window in windows] == [(1, False)] * 3
    assert [window.tokens for window in windows] == [[SMALL, LARGE]] * 3
    assert [(one["setting"], one["num_users"]) for one in bench.pool.describe()] == [("auto", 3)]
    assert machine.log.count(f"load {LARGE}") == 1


async def test_a_model_that_cannot_be_fetched_is_no_news_and_not_tried_again(bench: Bench) -> None:
    machine, window = bench.machine, bench.window()
    machine.no_network = MachineError("There is no network.")
    machine.may_fetch.set()
    await window.begin()
    await until(lambda: "There is no network." in window.automatic["reason"])
    late = bench.window()
    await late.begin()
    assert [await one.ask("x") for one in (window, late)] == ["x by small"] * 2
    assert window.notices == late.notices == []
    assert machine.log == ["load small", "fetch large"]


@pytest.mark.parametrize("error", [DataError("It is damaged."), MemoryError(), ZeroDivisionError()])
async def test_a_model_that_cannot_be_loaded_is_told_once_and_not_tried_again(
    bench: Bench, error: BaseException
) -> None:
    machine, window = bench.machine, bench.window()
    machine.problems[LARGE] = error
    machine.may_fetch.set()
    await window.begin()
    await until(lambda: window.notices)
    late = bench.window()
    await late.begin()
    assert [await one.ask("x") for one in (window, late)] == ["x by small"] * 2
    assert [(one.is_problem, "small stays in use" in one.message) for one in window.notices] == [(True, True)]
    assert late.notices == []
    assert machine.log == ["load small", "fetch large", "load large"]


async def test_where_no_choice_can_be_made_after_that_it_is_not_tried_again_either(bench: Bench) -> None:
    machine, window, choose = bench.machine, bench.window(), bench.machine.choose

    def fail(settings: Settings, running: str, refused: Mapping[str, str]) -> Choice:
        if refused:
            raise OSError("The disk is gone.")
        return choose(settings, running, refused)

    machine.choose = fail  # type: ignore[method-assign]
    machine.problems[LARGE] = MemoryError()
    machine.may_fetch.set()
    await window.begin()
    await until(lambda: window.notices)
    for prefix in "xyz":
        assert await window.ask(prefix) == f"{prefix} by small"
        await until(lambda: window.scheduler.is_quiet)
    assert window.automatic["step"] == ""
    assert machine.log == ["load small", "fetch large", "load large"]


async def test_a_start_with_a_model_that_cannot_be_loaded_is_one_with_the_smaller(bench: Bench) -> None:
    machine, window = bench.machine, bench.window()
    machine.start, machine.problems[LARGE] = LARGE, MemoryError()
    await window.begin()
    assert await window.ask("x") == "x by small"
    await until(lambda: window.notices)
    assert [one.is_problem for one in window.notices] == [True]
    assert machine.log == ["load large", "load small"]


async def test_without_any_model_the_start_fails_with_the_reason(bench: Bench) -> None:
    machine, window = bench.machine, bench.window()
    machine.problems[SMALL] = DataError("It is damaged.")
    await window.begin()
    assert (window.scheduler.status.state, window.scheduler.status.message) == ("error", "It is damaged.")
    assert machine.log == ["load small"]


async def test_a_long_download_seldom_interrupts_other_work(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    wake = EngineThread.wake

    def count(thread: EngineThread, **details: object) -> None:
        calls.append("")
        wake(thread, **details)

    monkeypatch.setattr(EngineThread, "wake", count)
    bench.machine.num_steps = 1000
    bench.machine.may_fetch.set()
    await bench.window().begin()
    await until(lambda: bench.target == LARGE)
    assert 10 <= len(calls) <= 20


async def test_one_who_leaves_ends_the_fetching(bench: Bench) -> None:
    machine, window = bench.machine, bench.window()
    await window.begin()
    await until(lambda: f"fetch {LARGE}" in machine.log)
    await window.begin("other")
    await until(lambda: "fetching ends" in machine.log)
    assert [one["setting"] for one in bench.pool.describe()] == ["other"]


async def test_after_the_last_crash_of_its_thread_a_new_load_ends_the_fetching(bench: Bench) -> None:
    machine = bench.machine
    thread = EngineThread()

    def crash(_answer: object) -> None:
        raise Panic

    user, load = EngineUser(), AutoTarget(Settings(), machine, machine.load_for, thread).load
    thread.join_in(user)
    thread.load(load)
    await until(lambda: f"fetch {LARGE}" in machine.log)
    while thread.status.state != "error":
        thread.submit(CompletionJob(CompletionRequest("x", ""), user, crash, lambda _ms: None))
        await asyncio.sleep(0.01)
    thread.load(load)
    await until(lambda: "fetching ends" in machine.log)
    thread.stop()
    assert await asyncio.to_thread(thread.join, PATIENCE_S)


@pytest.mark.parametrize("has_moved", [False, True])
async def test_one_who_leaves_leaves_no_model_in_memory(bench: Bench, *, has_moved: bool) -> None:
    machine, window = bench.machine, bench.window()
    gc.disable()  # a collection may be far away, and the next model needs the memory now
    try:
        await window.begin()
        await until(lambda: f"fetch {LARGE}" in machine.log)
        if has_moved:
            machine.may_fetch.set()
            await until(lambda: bench.target == LARGE)
        await window.begin("other")
        assert [engine.target for kept in machine.engines if (engine := kept())] == ["other"]
    finally:
        gc.enable()


async def test_a_loading_that_ends_while_the_engine_looks_is_not_begun_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine, looks = Machine(), vars(AutoTarget)["next_target"].fget
    auto_target = AutoTarget(Settings(target="auto"), machine, machine.load_for, EngineThread())
    engine = auto_target.load(lambda *_: None, lambda: False)

    def look(auto_target: AutoTarget) -> Any:
        if threading.current_thread() is threading.main_thread() and f"fetch {LARGE}" in machine.log:
            machine.may_fetch.set()
            engine._loader.join(PATIENCE_S)
        return looks(auto_target)

    monkeypatch.setattr(AutoTarget, "next_target", property(look))
    engine.idle(Cancellation())
    await until(lambda: f"fetch {LARGE}" in machine.log)
    engine.idle(Cancellation())
    machine.may_fetch.set()
    engine.close()
    assert machine.log == ["load small", "fetch large", "load large"]


async def test_a_larger_one_needs_no_other_engine_to_go(bench: Bench) -> None:
    machine, window = bench.machine, bench.window()
    others = [bench.window() for _ in range(MAX_ENGINES - 1)]
    await window.begin()
    for number, other in enumerate(others):
        await other.begin(f"target {number}")
    machine.may_fetch.set()
    await until(lambda: bench.target == LARGE)
    assert await window.ask("x") == "x by large"
    assert [await other.ask("x") for other in others] == [f"x by target {n}" for n in range(len(others))]


async def test_after_a_move_a_failing_reload_gives_back_the_larger_ones_place(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, window = bench.machine, bench.window()
    machine.may_fetch.set()
    await window.begin()
    await until(lambda: bench.target == LARGE)

    def fail(*_arguments: object) -> object:
        raise ZeroDivisionError("in our own loop")

    with monkeypatch.context() as patch:
        patch.setattr(EngineThread, "_do_complete", fail)
        for _ in range(MAX_CRASHES):
            await window.ask("x")
        await until(lambda: window.scheduler.status.state == "error")
    machine.problems = {SMALL: MemoryError(), LARGE: MemoryError()}
    await bench.window().begin()  # and the engine is loaded again, which fails
    await until(lambda: "MemoryError" in window.scheduler.status.message)
    others = [bench.window() for _ in range(MAX_ENGINES)]
    for number, other in enumerate(others):
        await other.begin(f"target {number}")
    assert [await other.ask("x") for other in others] == [f"x by target {n}" for n in range(MAX_ENGINES)]


async def test_one_who_types_without_a_pause_has_the_larger_one_in_time(bench: Bench) -> None:
    machine, window = bench.machine, bench.window()
    await window.begin()
    machine.may_fetch.set()
    answers: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        while not answers or not answers[-1].endswith(LARGE):
            answers.append(await window.ask("x"))
    assert await window.ask("y") == "y by large"
    await until(lambda: bench.target == LARGE)
