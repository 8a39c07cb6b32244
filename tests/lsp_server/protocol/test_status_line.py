"""The status line: changes at once, steps of loading a few times a second, and the last step never lost."""

from __future__ import annotations

from typing import Any

import pytest

from lsp_server.protocol import status_line
from lsp_server.protocol.status_line import StatusLine
from tests.clock import Clock

INTERVAL_S = 600.0


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(status_line, "MIN_INTERVAL_S", INTERVAL_S)
    return Clock()


def loading(percent: int) -> dict[str, Any]:
    return {"state": "loading", "percent": percent}


async def test_steps_of_loading_are_spaced_out_and_the_last_one_arrives(clock: Clock) -> None:
    sent: list[dict[str, Any]] = []
    line = StatusLine(sent.append)
    for percent in range(100):
        line.show(loading(percent))
    await clock.turn(0.9 * INTERVAL_S)
    assert sent == [loading(0)]
    await clock.turn(0.2 * INTERVAL_S)
    assert sent == [loading(0), loading(99)]


async def test_a_change_of_state_is_told_at_once_and_nothing_twice(clock: Clock) -> None:
    sent: list[dict[str, Any]] = []
    line = StatusLine(sent.append)
    for status in (loading(1), loading(2), {"state": "ready"}, {"state": "ready"}):
        line.show(status)
    assert sent == [loading(1), {"state": "ready"}]
    await clock.turn(2 * INTERVAL_S)
    assert len(sent) == 2
