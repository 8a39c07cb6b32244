"""A flooding client is read no faster than it is served, and no caller waits after the end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from lsp_server.protocol import client_streams
from lsp_server.protocol.client_streams import Inbox
from tests.waiting import until

PATIENCE_S = 60.0


def put_all(inbox: Inbox[int], num_messages: int) -> tuple[threading.Thread, list[int]]:
    done: list[int] = []

    def run() -> None:
        for number in range(num_messages):
            if not inbox.put(number):
                return
            done.append(number)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, done


async def test_no_more_waits_than_the_bound_allows_and_all_arrive_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_streams, "MAX_MESSAGES", 5)
    inbox: Inbox[int] = Inbox()
    thread, done = put_all(inbox, 100)
    await until(lambda: len(done) == 5)
    thread.join(0.05)
    assert len(done) == 5
    assert [await inbox.get() for _ in range(100)] == list(range(100))
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


async def test_the_end_lets_who_puts_go_and_leaves_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_streams, "MAX_MESSAGES", 2)
    inbox: Inbox[int] = Inbox()
    thread, done = put_all(inbox, 100)
    await until(lambda: len(done) == 2)
    inbox.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert [await inbox.get() for _ in range(3)] == [0, 1, None]


async def test_whoever_waits_for_a_message_hears_of_the_end() -> None:
    inbox: Inbox[int] = Inbox()
    waiting = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    threading.Thread(target=inbox.close, daemon=True).start()
    async with asyncio.timeout(PATIENCE_S):
        assert await waiting is None
