"""Sentences for the user: each once, and of a file that changes without end the last state, now and then."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from lsprotocol.types import MessageType

from lsp_server.protocol import notices
from lsp_server.protocol.notices import Notices
from tests.clock import Clock

PAUSE_S = 600.0
PATH = "/a/.slipstream.toml"


class Shown(list[str]):
    """What was shown, by `notices`."""

    def __init__(self) -> None:
        self.notices = Notices(lambda _kind, sentence: self.append(sentence))

    def tell(self, *problems: str) -> None:
        self.notices.tell_of_file(PATH, problems, MessageType.Warning)

    def tell_each(self, problems: Sequence[str]) -> None:
        for problem in problems:
            self.tell(problem)


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(notices, "PAUSE_S", PAUSE_S)
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
    shown.notices.tell_of_file("/b", ["other"], MessageType.Warning)
    shown.notices.tell(["one", "engine", "engine"], MessageType.Error)
    assert shown == ["one", "other", "engine"]
    await clock.turn(1.1 * PAUSE_S)
    shown.tell("one")
    shown.tell("two")
    assert shown[3:] == ["two"]


async def test_nothing_is_told_at_the_end(clock: Clock) -> None:
    shown = Shown()
    shown.tell_each(["one", "two"])
    shown.notices.stop()
    await clock.turn(1.1 * PAUSE_S)
    assert shown == ["one"]
    shown.tell("three")
    shown.notices.tell(["four"], MessageType.Warning)
    await clock.turn(1.1 * PAUSE_S)
    assert shown == ["one"]


async def test_so_many_sentences_are_remembered() -> None:
    shown = Shown()
    shown.notices.tell([str(number) for number in range(notices.MAX_TOLD + 1)], MessageType.Warning)
    shown.notices.tell(["1", "0"], MessageType.Warning)
    assert shown[notices.MAX_TOLD + 1 :] == ["0"]
