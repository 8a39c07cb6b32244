"""The status line: changes at once, steps of loading a few times a second, and the last step never lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lsp_server.status_line import MIN_INTERVAL_S, StatusLine


def loading(percent: int) -> dict[str, Any]:
    return {"state": "loading", "percent": percent}


@pytest.mark.asyncio
async def test_steps_of_loading_are_spaced_out_and_the_last_one_arrives() -> None:
    sent: list[dict[str, Any]] = []
    line = StatusLine(sent.append)
    for percent in range(100):
        line.show(loading(percent))
    assert sent == [loading(0)]
    await asyncio.sleep(2 * MIN_INTERVAL_S)
    assert sent == [loading(0), loading(99)]


@pytest.mark.asyncio
async def test_a_change_of_state_is_told_at_once_and_nothing_twice() -> None:
    sent: list[dict[str, Any]] = []
    line = StatusLine(sent.append)
    for status in (loading(1), loading(2), {"state": "ready"}, {"state": "ready"}):
        line.show(status)
    assert sent == [loading(1), {"state": "ready"}]
    await asyncio.sleep(2 * MIN_INTERVAL_S)
    assert len(sent) == 2
