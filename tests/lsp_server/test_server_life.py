"""A server's end is the end of all that it held, at whatever step it comes."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from lsp_server.handlers import folders
from lsp_server.protocol import adapter, notifications
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.workspace import settings_reading
from tests.waiting import until
from tests.windows import Threads, Window, Windows, insertion, one_window, windows_on

URI = "file:///somewhere/a.py"


def num_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count


async def one_visit(windows: Windows, root: Path, *, in_order: bool) -> None:
    window = await windows.begun(root)
    window.open(URI, "x = 1\n")
    assert await window.suggest(URI, 0, 5) == ["x = 1!"]
    window.change(URI, insertion(0, 5, "2"))
    if in_order:
        await window.end()
    else:
        window.vanish()
    assert await windows.serving.pop() == (0 if in_order else 1)
    await window.close()


@pytest.mark.parametrize("in_order", [True, False])
async def test_a_window_that_has_gone_leaves_no_server_no_descriptor_and_no_thread(
    tmp_path: Path, in_order: bool
) -> None:
    (tmp_path / "a.py").write_text("def known(): pass\n")
    threads = Threads("reader", "writer", "index")
    async with windows_on() as windows:
        await one_visit(windows, tmp_path, in_order=in_order)  # what is loaded once is loaded now
        servers = [weakref.ref(windows.servers.pop())]
        gc.collect()
        before = num_descriptors()
        for _ in range(5):
            await one_visit(windows, tmp_path, in_order=in_order)
            servers.append(weakref.ref(windows.servers.pop()))
        await until(lambda: not len(threads))
        await until(lambda: gc.collect() >= 0 and not any(server() for server in servers))
        await until(lambda: num_descriptors() <= before)
        assert [engine["num_users"] for engine in windows.pool.describe()] == [0]


@pytest.mark.parametrize("step", ["user file", "folder file", "pull", "registration"])
async def test_a_window_that_goes_during_the_handshake_leaves_no_engine_user_and_no_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    reached, may_go_on = threading.Event(), threading.Event()
    slow = "read_user_file" if step == "user file" else "read_repository_file"
    read_file = getattr(settings_reading, slow)

    def read_slowly(path: Path) -> object:
        if "file" in step:
            reached.set()
            assert may_go_on.wait(60)
        return read_file(path)

    monkeypatch.setattr(settings_reading, slow, read_slowly)
    threads = Threads("reader", "writer", "index")
    wanted = {"pull": "workspace/configuration", "registration": "client/registerCapability"}.get(step)
    async with windows_on() as windows:
        window = await windows.open()
        window.answers_requests = False
        watching = {"dynamicRegistration": True}
        workspace = {"configuration": step == "pull", "didChangeWatchedFiles": watching}
        monkeypatch.setattr("tests.windows.CAPABILITIES", {"workspace": workspace})
        await window.initialize(tmp_path)
        window.notify("initialized", {})
        if wanted:
            await window.until(lambda: any(message["method"] == wanted for message in window.heard))
        else:
            await until(reached.is_set)
        window.vanish()
        async with asyncio.timeout(60):
            assert await windows.serving.pop() == 1
        may_go_on.set()
        await until(lambda: not len(threads))
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert sum(engine["num_users"] for engine in windows.pool.describe()) == 0
        assert not len(threads)


async def test_a_folder_whose_disk_does_not_answer_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, well = tmp_path / "hanging", tmp_path / "well"
    may_answer = threading.Event()
    read_file = settings_reading.read_repository_file

    def read(folder: Path) -> settings_reading.FoundSettings:
        assert folder != hanging or may_answer.wait(60)
        return read_file(folder)

    async def suggested(window: Window, folder: Path) -> list[str]:
        found: list[str] = []
        async with asyncio.timeout(60):
            while not found:
                found = await window.suggest((folder / "a.py").as_uri(), 0, 5)
        return found

    monkeypatch.setattr(settings_reading, "read_repository_file", read)
    async with windows_on() as windows:
        window = await windows.open()
        await window.initialize(hanging)
        window.notify("initialized", {})
        added = [{"uri": well.as_uri(), "name": "well"}]
        window.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": []}})
        for folder in (hanging, well):
            folder.mkdir()
            window.open((folder / "a.py").as_uri(), "x = 1\n")
        assert await suggested(window, well) == ["x = 1!"]
        assert await window.suggest((hanging / "a.py").as_uri(), 0, 5) == []
        assert "settings of this folder" in str(await window.why((hanging / "a.py").as_uri(), 0, 5))
        may_answer.set()
        assert await suggested(window, hanging) == ["x = 1!"]
        await window.end()


def num_futures() -> int:
    gc.collect()
    return sum(issubclass(type(one), Future | asyncio.Future) for one in gc.get_objects())


NOTIFICATIONS = [
    ("workspace/didChangeWatchedFiles", {"changes": []}),
    ("$/setTrace", {"value": "off"}),
    ("window/workDoneProgress/cancel", {"token": 1}),
]


@pytest.mark.parametrize(("method", "params"), NOTIFICATIONS)
async def test_handlers_that_are_done_are_not_kept(method: str, params: dict[str, Any]) -> None:
    async with one_window() as window:
        before = num_futures()
        for _ in range(500):
            window.notify(method, params)
        await window.request("slipstream/stats")
        assert num_futures() < before + 20


async def test_commands_that_are_done_are_not_kept(tmp_path: Path) -> None:
    async with one_window(tmp_path) as window:
        before = num_futures()
        for command in ["slipstream.purgeIndex", "slipstream.accepted"] * 20:
            await window.request("workspace/executeCommand", {"command": command, "arguments": ["x"]})
        assert num_futures() < before + 20


async def test_a_window_with_too_much_under_way_is_read_on_when_some_of_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go_on = asyncio.Event()
    num_reading = 0

    async def read_slowly(_server: SlipstreamServer) -> None:
        nonlocal num_reading
        num_reading += 1
        await may_go_on.wait()

    async with windows_on() as windows:
        window, other = await windows.open(), await windows.open()
        await window.begin()
        await other.begin()
        monkeypatch.setattr(adapter, "MAX_UNDER_WAY", 5)
        monkeypatch.setattr(folders, "read_files", read_slowly)
        for _ in range(50):
            window.notify("initialized", {})
        asking = window.send("slipstream/stats", None)
        await until(lambda: num_reading == 5)
        other.open(URI, "y")
        assert await other.suggest(URI, 0, 1) == ["y!"]
        assert (num_reading, asking in window.answers) == (5, False)
        may_go_on.set()
        assert (await window.answer(asking))["state"] == "ready"
        assert num_reading == 50
        await window.end()
        await other.end()


async def test_a_window_that_is_alone_is_read_on_at_once_after_a_long_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It once waited three times as long as its turn, for the sake of windows that may be there."""
    pauses: list[float] = []
    sleep = asyncio.sleep

    def note(pause_s: float) -> Coroutine[Any, Any, None]:
        pauses.append(pause_s)
        return sleep(pause_s)

    def burn(_params: Any) -> None:
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass

    async with windows_on() as windows:
        window = await windows.begun()
        windows.servers[0].protocol.connect("test/burn", burn)
        monkeypatch.setattr(asyncio, "sleep", note)
        window.notify("test/burn", {})
        await window.request("slipstream/stats")
        assert not any(pauses)
        await window.end()


async def test_a_settings_file_that_is_wrong_in_ever_new_ways_is_told_of_once_in_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "PAUSE_S", 600.0)
    file = tmp_path / ".slipstream.toml"

    async with one_window(tmp_path) as window:
        for number in range(20):
            file.write_text(f"unknown{number} = 1\n")
            window.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": file.as_uri(), "type": 2}]})
            await window.until(lambda: window.shown)
        file.write_text('languages = { "*" = false }\n')
        window.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": file.as_uri(), "type": 2}]})
        uri = (tmp_path / "a.py").as_uri()
        window.open(uri, "x")
        async with asyncio.timeout(60):
            while await window.suggest(uri, 0, 1):  # the last state is in force: all before were read
                pass
        assert len(window.shown) == 1
        assert "unknown0" in window.shown[0]


@pytest.mark.parametrize("teller", ["our own watch", "a save"])
async def test_a_settings_file_is_read_again_whoever_tells_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, teller: str
) -> None:
    watching = {"didChangeWatchedFiles": {"dynamicRegistration": teller == "a save"}}
    capabilities = {"textDocument": {"inlineCompletion": {}}, "workspace": watching}
    monkeypatch.setattr("tests.windows.CAPABILITIES", capabilities)
    file, uri = tmp_path / ".slipstream.toml", (tmp_path / "a.py").as_uri()
    async with one_window(tmp_path) as window:
        window.open(uri, "x")
        assert await window.suggest(uri, 0, 1)
        file.write_text('languages = { "*" = false }\n')
        if teller == "a save":
            window.notify("textDocument/didSave", {"textDocument": {"uri": file.as_uri()}})
        async with asyncio.timeout(60):
            while await window.suggest(uri, 0, 1):
                pass
