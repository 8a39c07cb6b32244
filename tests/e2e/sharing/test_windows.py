"""Windows that share an engine: each gets what it would get alone, and none feels the others."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from completion_engine.config import DEFAULT_DRAFTERS
from lsp_server.protocol.framing import ResponseError, encode
from lsp_server.sharing.address import find_address
from lsp_server.sharing.host_connection import WELCOME, WINDOW, read_word
from tests.hosts import Hosts

if TYPE_CHECKING:
    from lsp_server.commands.language_client import PendingRequest
    from tests.e2e.conftest import Editor, StartEditor
    from tests.e2e.sharing.conftest import StartWindow

TEXT = "def {name}(a, b):\n    return a + b\n\n\ndef twice_{name}(a):\n    \n"
LONG = {"multiline": "always", "maxTokens": 256, "drafters": []}


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    """Two folders with files of the same names."""
    roots = [tmp_path / "first", tmp_path / "second"]
    for root in roots:
        root.mkdir()
        (root / "known.py").write_text(f"def {root.name}(value):\n    return value\n")
    return roots


async def texts(editor: Editor, name: str) -> list[str]:
    """The suggestions at two positions of a file with the same name in every folder."""
    text = TEXT.format(name=name)
    uri = editor.open("same.py", text)
    found = [await editor.suggest(uri, 5, 4)]
    editor.type(uri, 5, 4, "re")
    found.append(await editor.suggest(uri, 5, 6))
    return [item["insertText"] for items in found for item in items]


async def test_two_windows_share_one_engine_and_get_what_each_would_get_alone(
    start_window: StartWindow, start_editor: StartEditor, hosts: Hosts, roots: list[Path]
) -> None:
    names = ["add", "sum_of"]
    alone = []
    for root, name in zip(roots, names, strict=True):
        async with start_editor(root, own=True) as editor:
            await editor.until_state("ready")
            alone.append(await texts(editor, name))
    async with start_window(roots[0]) as one:
        await one.until_state("ready")
        async with start_window(roots[1]) as other:
            await other.until_state("ready")
            assert [said["state"] for said in other.messages("didChangeStatus")] == ["ready"]
            shared = [await texts(one, names[0]), await texts(other, names[1])]
            again = [await texts(one, names[0]), await texts(other, names[1])]
            host = hosts.only()
            indexes = [(await window.stats())["index"] for window in (one, other)]
    assert shared == again == alone
    assert all(map(len, alone))
    assert alone[0] != alone[1]
    assert host["num_windows"] == 2
    assert [(engine["state"], engine["num_users"]) for engine in host["engines"]] == [("ready", 2)]
    assert [[index["folder"] for index in found] for found in indexes] == [[str(root)] for root in roots]


async def test_other_settings_are_another_engine_until_they_are_the_same_again(
    start_window: StartWindow, hosts: Hosts, roots: list[Path], tiny_model_dir: Path
) -> None:
    async with start_window(roots[0]) as one, start_window(roots[1], {"drafters": []}) as other:
        assert (await one.until_state("ready"))["engine"]["drafters"]
        assert (await other.until_state("ready"))["engine"]["drafters"] == []
        assert len(hosts.only()["engines"]) == 2
        wanted = {"target": str(tiny_model_dir), "drafters": list(DEFAULT_DRAFTERS), "device": "cpu"}
        other.client.configure({**wanted, "deadlineMs": 0, "eagerness": 1})
        await other.until(lambda stats: stats["engine"].get("drafters"))
        assert [engine["num_users"] for engine in hosts.only()["engines"]] == [2]
        assert await texts(other, "add")


async def test_typing_in_one_window_loses_no_request_of_the_other(
    start_window: StartWindow, roots: list[Path]
) -> None:
    async with start_window(roots[0], LONG) as typing, start_window(roots[1], LONG) as waiting:
        await typing.until_state("ready")
        await waiting.until_state("ready")
        asked = waiting.open("asked.py", TEXT.format(name="asked"))
        answer = asyncio.ensure_future(waiting.suggest(asked, 5, 4))
        requests = []
        while not answer.done() or not any(map(is_overtaken, requests)):
            name = f"typed{len(requests)}"  # repeated text would be answered at once
            requests.append(typing.ask(typing.open(f"{name}.py", TEXT.format(name=name)), 5, 4))
            await asyncio.sleep(0.01)
            assert len(requests) < 3000, "no request was ever overtaken"
        assert answer.result()
        answers = await asyncio.gather(*(one.answer for one in requests), return_exceptions=True)
        assert isinstance(answers[-1], dict)
        counters = (await waiting.stats())["counters"]
        assert (counters["num_requests"], counters["num_superseded"], counters["num_cancelled"]) == (1, 0, 0)


def is_overtaken(request: PendingRequest) -> bool:
    return request.answer.done() and isinstance(request.answer.exception(), ResponseError)


async def test_a_window_that_is_killed_or_talks_nonsense_leaves_the_others_alone(
    start_window: StartWindow, hosts: Hosts, roots: list[Path]
) -> None:
    async with start_window(roots[0]) as one:
        await one.until_state("ready")
        pid = hosts.only()["pid"]
        async with AsyncExitStack() as stack:
            killed = await stack.enter_async_context(start_window(roots[1]))
            await killed.until_state("ready")
            uri = killed.open("same.py", TEXT.format(name="killed"))
            killed.ask(uri, 5, 4)
            os.kill(killed.client.process.pid, signal.SIGKILL)
        for nonsense in (b"hello\r\n\r\n", b"Content-Length: 3\r\n\r\n[1]", b"Content-Length: 99\r\n\r\n{"):
            assert await asyncio.to_thread(talk, hosts, nonsense) == 1
        assert await texts(one, "add")
        await one.until(lambda _stats: hosts.only()["num_windows"] == 1)
        assert hosts.only()["pid"] == pid


def talk(hosts: Hosts, said: bytes) -> int:
    """The exit code of a relay whose editor says this and goes."""
    done = subprocess.run(
        [sys.executable, "-m", "lsp_server", "--shared"],
        input=said,
        env=hosts.relay_env(),
        capture_output=True,
        timeout=300,
        check=False,
    )
    return done.returncode


async def test_a_window_that_does_not_read_holds_nobody_up(
    start_window: StartWindow, hosts: Hosts, roots: list[Path]
) -> None:
    async with start_window(roots[0]) as one:
        await one.until_state("ready")
        with socket.socket(socket.AF_UNIX) as mute:
            mute.connect(find_address(hosts.relay_env()).socket_path)
            mute.sendall(WINDOW)
            assert read_word(mute) == WELCOME
            params: Any = {"processId": None, "rootUri": None, "capabilities": {}}
            mute.sendall(encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
            for number in range(2, 2000):
                mute.sendall(encode({"jsonrpc": "2.0", "id": number, "method": "slipstream/stats"}))
            assert await texts(one, "add")
            assert hosts.only()["num_windows"] == 2
        await one.until(lambda _stats: hosts.only()["num_windows"] == 1)
