"""The host accepts proper clients, outlives others, and ends when it should."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from lsp_server.sharing import host as host_module
from lsp_server.sharing import watchdog
from lsp_server.sharing.address import HostAddress
from lsp_server.sharing.host import Host
from lsp_server.sharing.host_connection import (
    STATUS,
    WELCOME,
    WINDOW,
    BlockReader,
    BlockWriter,
    connect,
    read_word,
)
from lsp_server.sharing.listener import open_listener
from tests.clock import Clock
from tests.hosts import own_hosts

LINGER_S = 600.0


@dataclass
class Echo:
    """Serves a window by repeating each line; `fail` is a bug, `end` the proper end."""

    is_sick: bool = False
    windows: list[int] = field(default_factory=list)

    def describe(self) -> dict[str, Any]:
        return {"engines": []}

    async def serve(self, stdin: BinaryIO, stdout: BlockWriter, window: int) -> int:
        self.windows.append(window)
        while line := await asyncio.to_thread(stdin.readline):
            if line == b"fail\n":
                raise ZeroDivisionError
            if line == b"end\n":
                return 0
            stdout.write(line)
        return 1


@dataclass
class Running:
    """A host on the test's own loop."""

    address: HostAddress
    service: Echo
    task: asyncio.Task[None]
    clock: Clock

    async def handshake(self, word: bytes = WINDOW) -> socket.socket:
        connection = await asyncio.to_thread(connect, self.address.socket_path, 60)
        await asyncio.to_thread(connection.sendall, word)
        return connection

    async def window(self) -> socket.socket:
        connection = await self.handshake()
        assert await asyncio.to_thread(read_word, connection) == WELCOME
        return connection

    async def facts(self) -> Any:
        """The host's description."""
        asking = await self.handshake(STATUS)
        with asking, asking.makefile("rb") as stream:
            return json.loads(await asyncio.to_thread(stream.read))

    async def until_alone(self) -> None:
        """Wait until the host knows that its last window is gone: the window knows it a moment before."""
        while (await self.facts())["num_windows"]:
            pass

    @property
    def is_open(self) -> bool:
        return Path(self.address.socket_path).exists()


@pytest.fixture(params=[False, True], ids=["socket", "loopback"])
async def running(request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    with own_hosts() as hosts:
        address, service = HostAddress(hosts.folder, "name", is_loopback=request.param), Echo()
        listener = open_listener(address)
        assert listener is not None
        clock = Clock()
        task = asyncio.create_task(Host(listener, service, LINGER_S).run())
        running = Running(address, service, task, clock)
        yield running
        while not task.done():
            await clock.turn(LINGER_S)
            await asyncio.sleep(0.002)
        await task
        assert not running.is_open


async def said(connection: socket.socket, *lines: bytes) -> tuple[list[bytes], int]:
    """The reply to these lines, and the exit code."""
    for line in lines:
        await asyncio.to_thread(connection.sendall, line)
    reader = BlockReader(connection)
    blocks = await asyncio.to_thread(lambda: list(reader.blocks()))
    connection.close()
    return blocks, reader.exit_code


async def test_windows_are_served_at_the_same_time_and_end_each_in_its_way(running: Running) -> None:
    one, other = await running.window(), await running.window()
    assert await said(other, b"b\n", b"end\n") == ([b"b\n"], 0)
    assert await said(one, b"a\n", b"fail\n") == ([b"a\n"], 1)
    assert running.service.windows == [1, 2]


async def test_an_editor_that_goes_is_exit_code_1(running: Running) -> None:
    window = await running.window()
    window.shutdown(socket.SHUT_WR)
    assert await said(window) == ([], 1)


@pytest.mark.parametrize("word", [b"", b"GET / HTTP/1.1\r\n\r\n  ", b"slip"])
async def test_whoever_says_something_else_or_nothing_holds_nobody_up(
    running: Running, word: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "GREETING_S", LINGER_S / 10)
    strangers = [await running.handshake(word) for _ in range(20)]
    window = await running.window()
    assert await said(window, b"a\n", b"end\n") == ([b"a\n"], 0)
    await running.clock.turn(LINGER_S / 5)
    for stranger in strangers:
        assert await asyncio.to_thread(stranger.recv, 1) == b""
        stranger.close()


async def test_who_asks_is_told_the_facts(running: Running) -> None:
    window = await running.window()
    facts = await running.facts()
    assert (facts["pid"], facts["num_windows"], facts["engines"]) == (os.getpid(), 1, [])
    assert facts["num_memory_bytes"] > 0
    await said(window, b"end\n")


async def test_it_ends_a_while_after_the_last_window_and_not_before(running: Running) -> None:
    window = await running.window()
    await running.clock.turn(1.5 * LINGER_S)
    assert running.is_open
    await said(window, b"end\n")
    await running.until_alone()
    await running.clock.turn(0.5 * LINGER_S)
    assert running.is_open
    await said(await running.window(), b"end\n")
    await running.until_alone()
    await running.clock.turn(0.7 * LINGER_S)
    assert running.is_open
    await running.clock.turn(0.3 * LINGER_S)
    assert not running.is_open


async def test_a_sick_host_leaves_new_windows_to_a_new_one_and_goes_with_its_last(running: Running) -> None:
    window = await running.window()
    running.service.is_sick = True
    refused = await running.handshake()
    assert await asyncio.to_thread(refused.recv, 1) == b""
    refused.close()
    assert not running.is_open
    listener = open_listener(running.address)  # another process may be the host now
    assert listener is not None
    listener.close()
    await running.clock.turn(1.5 * LINGER_S)
    assert not running.task.done()
    assert await said(window, b"a\n", b"end\n") == ([b"a\n"], 0)
    async with asyncio.timeout(LINGER_S / 10):
        await running.task


@pytest.mark.parametrize("lost", ["socket", "folder"])
async def test_a_living_host_is_found_again_when_its_files_were_cleaned_away(
    running: Running, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "BEAT_S", 0.02)
    window = await running.window()
    await asyncio.sleep(1.2)  # the beat that was under way
    if lost == "socket":
        os.unlink(running.address.socket_path)  # noqa: PTH108 - a file in memory
    else:
        shutil.rmtree(running.address.folder)
    async with asyncio.timeout(LINGER_S / 10):
        while not running.is_open:  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.01)
    other = await running.window()
    assert await said(other, b"b\n", b"end\n") == ([b"b\n"], 0)
    assert await said(window, b"a\n", b"end\n") == ([b"a\n"], 0)


async def test_a_host_whose_place_was_taken_goes_with_its_last_window(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "BEAT_S", 0.02)
    window = await running.window()
    shutil.rmtree(running.address.folder)
    running.address.folder.mkdir(mode=0o700)
    new = open_listener(running.address)
    assert new is not None
    await asyncio.sleep(1.2)
    assert await said(window, b"a\n", b"end\n") == ([b"a\n"], 0)
    async with asyncio.timeout(LINGER_S):
        await running.task
    assert running.is_open
    new.close()
