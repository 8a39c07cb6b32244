"""A flooding client is read no faster than it is served, and no caller waits after the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from lsp_server.protocol import client_streams
from lsp_server.protocol.client_streams import Inbox

PATIENCE_S = 60.0


def put_all(inbox: Inbox[int], num_messages: int, num_bytes: int) -> tuple[threading.Thread, list[int]]:
    done: list[int] = []

    def run() -> None:
        for number in range(num_messages):
            if not inbox.put(number, num_bytes):
                return
            done.append(number)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, done


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - conditions of other threads, which set no event
            await asyncio.sleep(0.002)


@pytest.mark.parametrize(("num_bytes", "num_taken"), [(0, 5), (10, 3)])
async def test_no_more_waits_than_the_bounds_allow_and_all_arrive_in_order(
    monkeypatch: pytest.MonkeyPatch, num_bytes: int, num_taken: int
) -> None:
    monkeypatch.setattr(client_streams, "MAX_MESSAGES", 5)
    monkeypatch.setattr(client_streams, "MAX_BYTES", 25)
    inbox: Inbox[int] = Inbox()
    thread, done = put_all(inbox, 100, num_bytes)
    await until(lambda: len(done) == num_taken)
    thread.join(0.05)
    assert len(done) == num_taken
    assert [await inbox.get() for _ in range(100)] == list(range(100))
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


async def test_one_message_of_any_size_is_taken() -> None:
    inbox: Inbox[int] = Inbox()
    thread, _ = put_all(inbox, 2, client_streams.MAX_BYTES * 10)
    assert [await inbox.get(), await inbox.get()] == [0, 1]
    thread.join(PATIENCE_S)


async def test_the_end_lets_who_puts_go_and_leaves_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_streams, "MAX_MESSAGES", 2)
    inbox: Inbox[int] = Inbox()
    thread, done = put_all(inbox, 100, 1)
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
