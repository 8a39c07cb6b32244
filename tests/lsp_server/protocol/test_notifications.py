"""Messages come once, no last state of a file or of the status line is lost, and nothing comes too often."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from lsprotocol.types import MessageType

from lsp_server.protocol import notifications
from lsp_server.protocol.notifications import Messages, StatusLine
from tests.clock import Clock

PAUSE_S = 600.0
PATH = Path("/a/.slipstream.toml")


class Shown(list[str]):
    """What was shown, by `notifications`."""

    def __init__(self) -> None:
        self.messages = Messages(lambda _kind, sentence: self.append(sentence))

    def tell(self, *problems: str) -> None:
        self.messages.show_of_file(PATH, problems)

    def tell_each(self, problems: Sequence[str]) -> None:
        for problem in problems:
            self.tell(problem)


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(notifications, "PAUSE_S", PAUSE_S)
    return Clock()


async def test_of_a_file_that_changes_without_end_the_last_state_is_told_now_and_then(clock: Clock) -> None:
    shown = Shown()
    shown.tell_each([f"wrong {number}" for number in range(1000)])
    assert shown == ["wrong 0"]
    await clock.turn(0.9 * PAUSE_S)
    assert shown == ["wrong 0"]
    await clock.turn(0.2 * PAUSE_S)
    assert shown == ["wrong 0", "wrong 999"]
    shown.tell("wrong 1000")
    assert len(shown) == 2
    await clock.turn(1.1 * PAUSE_S)
    assert shown[2:] == ["wrong 1000"]


async def test_what_was_put_right_in_the_pause_is_not_told(clock: Clock) -> None:
    shown = Shown()
    shown.tell("one", "two")
    shown.tell("three")
    shown.tell()
    await clock.turn(1.1 * PAUSE_S)
    assert shown == ["one", "two"]
    shown.tell("three")
    assert shown == ["one", "two", "three"]


async def test_one_file_is_no_reason_to_wait_with_another_nor_is_what_was_told_before(clock: Clock) -> None:
    shown = Shown()
    shown.tell("one")
    shown.messages.show_of_file(Path("/b"), ["other"])
    shown.messages.show(["one", "engine", "engine"], MessageType.Error)
    assert shown == ["one", "other", "engine"]
    await clock.turn(1.1 * PAUSE_S)
    shown.tell("one")
    shown.tell("two")
    assert shown[3:] == ["two"]


async def test_nothing_is_told_at_the_end(clock: Clock) -> None:
    shown = Shown()
    shown.tell_each(["one", "two"])
    shown.messages.stop()
    await clock.turn(1.1 * PAUSE_S)
    assert shown == ["one"]
    shown.tell("three")
    shown.messages.show(["four"], MessageType.Warning)
    await clock.turn(1.1 * PAUSE_S)
    assert shown == ["one"]


async def test_so_many_sentences_are_remembered() -> None:
    shown = Shown()
    shown.messages.show([str(number) for number in range(notifications.MAX_SHOWN + 1)], MessageType.Warning)
    shown.messages.show(["1", "0"], MessageType.Warning)
    assert shown[notifications.MAX_SHOWN + 1 :] == ["0"]


@pytest.fixture
async def slow_steps(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(notifications, "MIN_INTERVAL_S", PAUSE_S)
    return Clock()


def loading(percent: int) -> dict[str, Any]:
    return {"state": "loading", "percent": percent}


async def test_steps_of_loading_are_spaced_out_and_the_last_one_arrives(slow_steps: Clock) -> None:
    sent: list[dict[str, Any]] = []
    line = StatusLine(sent.append)
    for percent in range(100):
        line.show(loading(percent))
    await slow_steps.turn(0.9 * PAUSE_S)
    assert sent == [loading(0)]
    await slow_steps.turn(0.2 * PAUSE_S)
    assert sent == [loading(0), loading(99)]


async def test_a_change_of_state_is_told_at_once_and_nothing_twice(slow_steps: Clock) -> None:
    sent: list[dict[str, Any]] = []
    line = StatusLine(sent.append)
    for status in (loading(1), loading(2), {"state": "ready"}, {"state": "ready"}):
        line.show(status)
    assert sent == [loading(1), {"state": "ready"}]
    await slow_steps.turn(2 * PAUSE_S)
    assert len(sent) == 2
