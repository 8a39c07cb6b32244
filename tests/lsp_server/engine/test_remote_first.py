"""The team's servers come first, the local engine is the fallback, and each window has its own way there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from completion_engine.errors import MachineError, RemoteError
from completion_engine.next_edit.edits import EditRequest
from completion_engine.request import (
    CancelledError,
    Completion,
    CompletionRequest,
    CompletionStats,
    Progress,
)
from lsp_server.engine import remote_first
from lsp_server.engine.engine_types import Completer, EngineStatus, EngineUser, Load, Notice, OnTokens
from lsp_server.engine.pool import EnginePool
from lsp_server.engine.scheduler import Scheduler, SupersededError
from lsp_server.workspace.measurements import Measurements
from lsp_server.workspace.settings import RemoteSettings, Settings
from tests.hosts import PATIENCE_S
from tests.waiting import until
from tests.windows import QuietEngine

REMOTE = Settings(target="small", remote=RemoteSettings(url="https://models.example.org"))
LEAVES = {"servers": "models.example.org", "leaves": "the window"}


@dataclass
class Engine(QuietEngine):
    """Answers by its name, after the faults that are still in its way; `may_go` holds it up."""

    name: str
    faults: list[BaseException]
    may_go: threading.Event
    closed: list[str]
    described: list[str]

    def complete(self, request: CompletionRequest) -> Completion:
        if self.faults:
            raise self.faults.pop(0)
        while not self.may_go.wait(0.005):
            if request.cancellation.is_cancelled:
                raise CancelledError
        return Completion(f"{request.prefix} by {self.name}", 0, CompletionStats())

    def close(self) -> None:
        self.closed.append(self.name)

    def describe(self) -> dict[str, Any]:
        self.described.append(self.name)
        return {"device": self.name, **({"remote": LEAVES} if self.name == "servers" else {})}


@dataclass
class Workplace:
    """Windows on one pool; `faults` of the servers' answers, `refusals` of their loads."""

    faults: list[BaseException] = field(default_factory=list)
    refusals: list[BaseException] = field(default_factory=list)
    local_fault: BaseException | None = None
    may_go: threading.Event = field(default_factory=threading.Event)
    loads: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    described: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    statuses: list[EngineStatus] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    windows: list[Scheduler] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.may_go.set()
        self.pool = EnginePool(self.load_for)

    def load_for(self, settings: Settings, _on_tokens: OnTokens) -> Load:
        name = "servers" if settings.remote.url else "this machine"

        def load(_report: Progress, _should_stop: Callable[[], bool]) -> Completer:
            self.loads.append(name)
            if name == "servers" and self.refusals:
                raise self.refusals.pop(0)
            if name != "servers" and self.local_fault:
                assert self.may_go.wait(PATIENCE_S)
                raise self.local_fault
            go = self.may_go if name == "servers" else set_event()
            return Engine(name, self.faults if name == "servers" else [], go, self.closed, self.described)

        return load

    def open(self, settings: Settings = REMOTE) -> Scheduler:
        user = EngineUser(self.statuses.append, self.failures.append, self.notices.append)
        window = Scheduler(Measurements(), self.pool, user)
        window.use(settings)
        self.windows.append(window)
        return window

    async def window(self) -> Scheduler:
        window = self.open()
        await until(lambda: window.status.state == "ready")
        return window


def set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@pytest.fixture
async def work(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workplace]:
    monkeypatch.setattr(remote_first, "FIRST_PROBE_S", 0.02)
    work = Workplace()
    yield work
    for window in work.windows:
        window.close()
    assert await asyncio.to_thread(work.pool.stop, 60.0)


async def ask(window: Scheduler, prefix: str = "x", *, may_leave: bool = True) -> str:
    completion = await window.complete(CompletionRequest(prefix, "", may_leave=may_leave))
    return completion.text or completion.rule


async def ask_until(window: Scheduler, text: str, **more: bool) -> None:
    async with asyncio.timeout(60):
        while await ask(window, **more) != text:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.002)


def fault(kind: Any, message: str = "They fail.") -> RemoteError:
    return RemoteError(kind, message)


async def test_the_servers_answer_and_the_local_engine_is_not_loaded(work: Workplace) -> None:
    window = await work.window()
    assert await ask(window) == "x by servers"
    assert work.loads == ["servers"]
    assert "models.example.org" in window.status.message
    assert "the window" in window.status.message


async def test_after_three_failures_the_local_engine_answers_until_a_probe_succeeds(work: Workplace) -> None:
    window = await work.window()
    work.faults += [fault("truncated")] * 3
    work.refusals += [fault("unreachable", "Nobody there.")] * 2
    assert [await ask(window), await ask(window)] == ["servers-failed"] * 2
    assert not work.notices
    await ask_until(window, "x by this machine")
    await ask_until(window, "x by servers")
    assert work.loads.count("servers") == 4  # at first, two that failed, one that did not
    told = [notice.message for notice in work.notices]
    assert told == ["They fail.", "Nobody there.", "Suggestions come from your team's servers again."]
    assert not work.failures
    assert not work.pool.is_sick


@pytest.mark.parametrize("kind", ["silent", "refused"])
async def test_what_lasts_takes_one_failure(work: Workplace, kind: str) -> None:
    window = await work.window()
    work.refusals += [fault("unreachable")] * 100
    work.faults.append(fault(kind))
    await ask_until(window, "x by this machine")
    assert window.status.details["remote"] == {
        "answers": False,
        "fault": window.status.details["remote"]["fault"],
    }
    assert work.notices[0].is_problem


async def test_a_thread_that_has_nothing_to_do_is_no_sign_of_servers(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_first, "FIRST_PROBE_S", 3600.0)
    window = await work.window()
    work.faults.append(fault("silent"))
    num_described = work.described.count("servers")
    await ask_until(window, "x by this machine")
    await until(lambda: work.described.count("servers") > num_described)
    for _ in range(20):
        assert await ask(window) == "x by this machine"
        await asyncio.sleep(0.002)


async def test_servers_that_are_not_there_at_first(work: Workplace) -> None:
    work.refusals += [fault("tokenizer", "Another tokenizer.")] * 100
    window = work.open()
    await ask_until(window, "x by this machine")
    assert work.notices[0].message == "Another tokenizer."


async def test_busy_servers_are_left_alone_in_silence(work: Workplace) -> None:
    window = await work.window()
    work.faults.append(fault("busy"))
    assert [await ask(window), await ask(window)] == ["servers-busy"] * 2
    await ask_until(window, "x by servers")
    assert work.loads == ["servers"]
    assert not work.notices


async def test_what_must_stay_is_written_here(work: Workplace) -> None:
    window = await work.window()
    await ask_until(window, "x by this machine", may_leave=False)
    assert await ask(window) == "x by servers"


async def test_an_edit_is_answered_while_the_local_engine_loads_and_has_failed(
    work: Workplace,
) -> None:
    window = await work.window()
    work.local_fault = MachineError("No model.")
    work.may_go.clear()
    assert await ask(window, may_leave=False) == "engine-loading"
    async with asyncio.timeout(PATIENCE_S):
        assert (await window.propose_edit(EditRequest([], []))).rule == "engine-loading"
        work.may_go.set()
        await ask_until(window, "engine-error", may_leave=False)
        assert (await window.propose_edit(EditRequest([], []))).rule == "engine-error"


async def test_windows_wait_for_no_other_s_round_trip(work: Workplace) -> None:
    """Four windows, whose servers hold all of them up: each is asked, and a newer request ends an older."""
    work.may_go.clear()
    windows = [await work.window() for _ in range(4)]
    waiting = [asyncio.create_task(ask(window, str(at))) for at, window in enumerate(windows)]
    await asyncio.sleep(0)
    newer = asyncio.create_task(ask(windows[0], "newer"))
    with pytest.raises(SupersededError):
        await waiting[0]
    assert not any(task.done() for task in waiting[1:])
    work.may_go.set()
    assert await newer == "newer by servers"
    assert [await task for task in waiting[1:]] == [f"{at} by servers" for at in (1, 2, 3)]
    assert work.loads == ["servers"] * 4


async def test_windows_share_one_local_engine(work: Workplace) -> None:
    windows = [await work.window() for _ in range(3)]
    for window in windows:
        await ask_until(window, "x by this machine", may_leave=False)
    assert work.loads.count("this machine") == 1


async def test_whoever_goes_lets_the_connection_go(work: Workplace) -> None:
    window = await work.window()
    window.use(Settings(target="small"))
    await ask_until(window, "x by this machine")
    await until(lambda: work.closed == ["servers"])
    window.use(REMOTE)
    await ask_until(window, "x by servers")
    window.close()
    await until(lambda: work.closed.count("servers") == 2)
    await until(lambda: work.pool.describe() == [])
