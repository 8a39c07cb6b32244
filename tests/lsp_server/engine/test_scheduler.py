"""The newest request wins, a cancelled one frees the engine within a step, and no failure ends the server."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from completion_engine.errors import DataError, UserError
from completion_engine.request import (
    Cancellation,
    CancelledError,
    Completion,
    CompletionRequest,
    CompletionStats,
    Progress,
)
from lsp_server.engine.engine_types import EngineStatus, EngineUser, Load, OnTokens
from lsp_server.engine.pool import EnginePool
from lsp_server.engine.scheduler import Scheduler, SupersededError
from lsp_server.engine.thread import EngineThread
from lsp_server.protocol.lsp_conversion import unknown
from lsp_server.workspace.measurements import Measurements
from lsp_server.workspace.settings import Settings
from tests.waiting import until
from tests.windows import QuietEngine

STEP_S = 0.01
ENDLESS = 10**9


@dataclass
class ScriptedEngine(QuietEngine):
    """Takes `num_steps` steps for each completion, as a model does, and records them.

    It takes none while `may_step` is not set.
    """

    num_steps: int = 1
    failure: Exception | None = None
    num_idle_steps: int = 0
    log: list[str] = field(default_factory=list)
    times_ms: list[tuple[float, float]] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    may_step: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_step.set()

    def complete(self, request: CompletionRequest) -> Completion:
        self.threads.add(threading.current_thread().name)
        self.log.append(f"begin {request.prefix}")
        self.times_ms.append((request.deadline_ms, request.waited_ms))
        for _ in range(self.num_steps):
            assert self.may_step.wait(60)
            time.sleep(STEP_S)
            if request.cancellation.is_cancelled:
                self.log.append(f"cancelled {request.prefix}")
                raise CancelledError
        if self.failure:
            raise self.failure
        self.log.append(f"end {request.prefix}")
        return Completion(f"{request.prefix}!", 0, CompletionStats())

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        self.log.append(f"{'write' if writes else 'expect'} {request.prefix}")

    def idle(self, cancellation: Cancellation) -> bool:
        self.threads.add(threading.current_thread().name)
        if self.num_idle_steps == 0:
            return False
        self.num_idle_steps -= 1
        while not cancellation.is_cancelled and self.num_idle_steps == 0:
            time.sleep(STEP_S / 10)
        self.log.append("idle")
        return True

    def forget(self, document: str) -> None:
        self.log.append(f"forget {document}")

    def describe(self) -> dict[str, Any]:
        return {"state": "ready", "device": "cpu"}


@dataclass
class Workplace:
    """A scheduler and all that it said; `loads` by the target that they are for."""

    measurements: Measurements
    engines: EnginePool
    scheduler: Scheduler
    loads: dict[str, Load]
    statuses: list[EngineStatus]
    failures: list[BaseException]

    def begin(self, load: Load) -> None:
        target = f"target {len(self.loads)}"
        self.loads[target] = load
        self.scheduler.use(Settings(target=target))

    async def load(self, engine: ScriptedEngine) -> None:
        self.begin(lambda _report, _should_stop: engine)
        await until(lambda: self.scheduler.status.state == "ready")


@pytest.fixture
async def workplace() -> AsyncIterator[Workplace]:
    loads: dict[str, Load] = {}
    statuses: list[EngineStatus] = []
    failures: list[BaseException] = []

    def load_for(settings: Settings, _on_tokens: OnTokens) -> Load:
        return loads[settings.target]

    measurements, engines = Measurements(), EnginePool(load_for)
    window = EngineUser(statuses.append, failures.append)
    scheduler = Scheduler(measurements, engines, window)
    yield Workplace(measurements, engines, scheduler, loads, statuses, failures)
    scheduler.close()
    assert await asyncio.to_thread(engines.stop, 60.0)


def request(prefix: str, **limits: Any) -> CompletionRequest:
    return CompletionRequest(prefix=prefix, suffix="", **limits)


async def test_the_newest_request_wins_and_older_ones_are_answered_at_once(workplace: Workplace) -> None:
    engine = ScriptedEngine(num_steps=5)
    await workplace.load(engine)
    engine.may_step.clear()
    tasks = [asyncio.create_task(workplace.scheduler.complete(request(name))) for name in "abc"]
    await until(lambda: workplace.measurements.num_superseded == 2)
    engine.may_step.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [SupersededError, SupersededError, Completion]
    assert "end c" in engine.log
    assert "end a" not in engine.log
    assert "begin b" not in engine.log
    await until(lambda: not workplace.engines.is_busy)


async def test_a_request_that_was_longer_on_its_way_does_not_supersede_a_newer_one(
    workplace: Workplace,
) -> None:
    engine = ScriptedEngine()
    await workplace.load(engine)
    engine.may_step.clear()
    turn = workplace.scheduler.take_turn()
    newer = asyncio.create_task(workplace.scheduler.complete(request("newer")))
    await until(lambda: engine.log == ["begin newer"])
    with pytest.raises(SupersededError):
        await workplace.scheduler.complete(request("older"), turn)
    engine.may_step.set()
    assert (await newer).text == "newer!"
    assert workplace.measurements.num_superseded == 1


async def test_a_cancelled_request_frees_the_engine_within_a_step(workplace: Workplace) -> None:
    engine = ScriptedEngine(num_steps=ENDLESS)
    await workplace.load(engine)
    task = asyncio.create_task(workplace.scheduler.complete(request("slow")))
    await until(lambda: "begin slow" in engine.log)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: len(workplace.measurements.cancel_to_idle_ms) == 1)
    assert engine.log == ["begin slow", "cancelled slow"]
    assert workplace.measurements.num_cancelled == 1


async def test_a_request_cancelled_before_its_turn_never_runs(workplace: Workplace) -> None:
    engine = ScriptedEngine(num_steps=5)
    await workplace.load(engine)
    engine.may_step.clear()
    first = asyncio.create_task(workplace.scheduler.complete(request("first")))
    await until(lambda: "begin first" in engine.log)
    second = asyncio.create_task(workplace.scheduler.complete(request("second")))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    engine.may_step.set()
    await asyncio.gather(first, second, return_exceptions=True)
    third = await workplace.scheduler.complete(request("third"))
    assert third.text == "third!"
    assert "begin second" not in engine.log


async def test_waiting_in_the_queue_is_measured_and_told_to_the_engine(workplace: Workplace) -> None:
    engine = ScriptedEngine(num_steps=3)
    await workplace.load(engine)
    first = asyncio.create_task(workplace.scheduler.complete(request("first")))
    await until(lambda: "begin first" in engine.log)
    second = await workplace.scheduler.complete(request("second", deadline_ms=60_000.0))
    await asyncio.gather(first, return_exceptions=True)
    queue_ms = second.stats.ms["queue"]
    assert 0 < queue_ms <= second.stats.ms["total"]
    assert engine.times_ms[1] == (60_000.0, pytest.approx(queue_ms))


async def test_without_an_engine_the_answer_is_empty_and_says_why(workplace: Workplace) -> None:
    completion = await workplace.scheduler.complete(request("x"))
    assert (completion.text, completion.rule) == ("", "engine-loading")


async def test_an_engine_that_becomes_ready_while_it_is_asked_is_one_or_the_other(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's thread publishes a new state between any two looks at it."""
    await workplace.load(ScriptedEngine())
    looks = itertools.count()

    def status(_thread: EngineThread) -> EngineStatus:
        return EngineStatus("ready" if next(looks) else "loading")

    with monkeypatch.context() as patch:
        patch.setattr(EngineThread, "status", property(status, lambda *_: None), raising=False)
        completion = await workplace.scheduler.complete(request("x"))
    assert completion.rule == "engine-loading"
    assert unknown(completion.rule)["reason"]


async def test_a_failed_load_is_a_state_with_advice_and_another_load_heals_it(workplace: Workplace) -> None:
    def fail(_report: Progress, _should_stop: Callable[[], bool]) -> ScriptedEngine:
        raise UserError("There is no such model.", advice="Choose another.")

    workplace.begin(fail)
    await until(lambda: workplace.scheduler.status.state == "error")
    status = workplace.scheduler.status
    assert (status.message, status.advice) == ("There is no such model.", "Choose another.")
    assert (await workplace.scheduler.complete(request("x"))).rule == "engine-error"
    await workplace.load(ScriptedEngine())
    assert (await workplace.scheduler.complete(request("x"))).text == "x!"


async def test_a_new_load_gives_up_the_one_under_way(workplace: Workplace) -> None:
    has_begun = threading.Event()

    def endless(_report: Progress, should_stop: Callable[[], bool]) -> ScriptedEngine:
        has_begun.set()
        while not should_stop():
            time.sleep(STEP_S / 10)
        raise CancelledError

    workplace.begin(endless)
    await until(has_begun.is_set)
    await workplace.load(ScriptedEngine())
    assert "error" not in [status.state for status in workplace.statuses]


async def test_loading_reports_what_it_does(workplace: Workplace) -> None:
    is_shown = threading.Event()

    def load(report: Progress, _should_stop: Callable[[], bool]) -> ScriptedEngine:
        report("Downloading", 3, 10)
        is_shown.wait(300)
        return ScriptedEngine()

    workplace.begin(load)
    await until(lambda: EngineStatus("loading", "Downloading", done=3, total=10) in workplace.statuses)
    is_shown.set()
    await until(lambda: workplace.scheduler.status.state == "ready")


@pytest.mark.parametrize(
    ("failure", "rule"), [(ZeroDivisionError("bug"), "engine-failed"), (DataError("bad"), "engine-error")]
)
async def test_an_error_in_the_engine_is_reported_and_the_next_request_is_answered(
    workplace: Workplace, failure: Exception, rule: str
) -> None:
    engine = ScriptedEngine(failure=failure)
    await workplace.load(engine)
    assert (await workplace.scheduler.complete(request("x"))).rule == rule
    assert workplace.failures == [failure]
    engine.failure = None
    assert (await workplace.scheduler.complete(request("y"))).text == "y!"


async def test_an_idle_engine_works_ahead_until_a_request_comes(workplace: Workplace) -> None:
    engine = ScriptedEngine(num_idle_steps=3)
    await workplace.load(engine)
    await until(lambda: engine.log.count("idle") == 2)
    completion = await workplace.scheduler.complete(request("x"))
    assert completion.text == "x!"
    assert engine.log == ["idle", "idle", "idle", "begin x", "end x"]


async def test_one_thread_alone_touches_the_engine(workplace: Workplace) -> None:
    engine = ScriptedEngine(num_idle_steps=2)
    await workplace.load(engine)
    await workplace.scheduler.complete(request("x", document="file:///a"))
    workplace.scheduler.forget("file:///a")
    await until(lambda: "forget file:///a" in engine.log)
    assert engine.threads == {"engine"}


async def test_stopping_ends_the_thread_in_the_middle_of_a_completion(workplace: Workplace) -> None:
    engine = ScriptedEngine(num_steps=ENDLESS)
    await workplace.load(engine)
    task = asyncio.create_task(workplace.scheduler.complete(request("slow")))
    await until(lambda: "begin slow" in engine.log)
    workplace.scheduler.close()
    with pytest.raises(SupersededError):
        await task
    assert await asyncio.to_thread(workplace.engines.stop, 60.0)


async def test_of_places_that_were_looked_at_only_the_last_is_prepared_for(workplace: Workplace) -> None:
    engine = ScriptedEngine()
    await workplace.load(engine)
    engine.may_step.clear()
    task = asyncio.create_task(workplace.scheduler.complete(request("typed")))
    await until(lambda: engine.log == ["begin typed"])
    for place in "abc":
        workplace.scheduler.prefetch(request(place))
    engine.may_step.set()
    await task
    await until(lambda: len(engine.log) > 2)
    assert engine.log == ["begin typed", "end typed", "expect c"]


async def test_what_will_be_asked_for_in_a_moment_is_begun_at_once(workplace: Workplace) -> None:
    engine = ScriptedEngine()
    await workplace.load(engine)
    workplace.scheduler.prefetch(request("typed"), writes=True)
    await until(lambda: engine.log == ["write typed"])


async def test_a_place_looked_at_while_the_engine_loads_is_prepared_for_when_it_is_ready(
    workplace: Workplace,
) -> None:
    engine, may_load = ScriptedEngine(), threading.Event()

    def load(_report: Progress, _should_stop: Callable[[], bool]) -> ScriptedEngine:
        may_load.wait(60)
        return engine

    workplace.begin(load)
    workplace.scheduler.prefetch(request("early"))
    may_load.set()
    await until(lambda: engine.log == ["expect early"])


async def test_a_request_makes_what_was_expected_before_it_worthless(workplace: Workplace) -> None:
    engine = ScriptedEngine()
    await workplace.load(engine)
    engine.may_step.clear()
    tasks = [asyncio.create_task(workplace.scheduler.complete(request("before")))]
    await until(lambda: engine.log == ["begin before"])
    workplace.scheduler.prefetch(request("looked at"))
    engine.num_idle_steps = 2
    tasks.append(asyncio.create_task(workplace.scheduler.complete(request("typed"))))
    await until(lambda: workplace.measurements.num_superseded == 1)
    engine.may_step.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    await until(lambda: "idle" in engine.log)
    assert engine.log == ["begin before", "cancelled before", "begin typed", "end typed", "idle"]


async def test_a_closed_document_wants_nothing_any_more(workplace: Workplace) -> None:
    engine = ScriptedEngine()
    await workplace.load(engine)
    engine.may_step.clear()
    task = asyncio.ensure_future(workplace.scheduler.complete(request("x", document="a.py")))
    await asyncio.sleep(0)
    workplace.scheduler.forget("b.py")
    assert not task.done()
    workplace.scheduler.forget("a.py")
    engine.may_step.set()
    with pytest.raises(SupersededError):
        await task
