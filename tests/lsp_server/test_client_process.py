"""A server ends with the process that started it, although another process holds its pipe."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from lsp_server.protocol.client_streams import ClientProcess
from lsp_server.protocol.framing import encode
from tests.windows import CAPABILITIES, windows_on


@pytest.fixture
def editor() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


async def test_a_conversation_ends_with_the_client_s_process(
    editor: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClientProcess.wait, "__defaults__", (0.01,))
    async with windows_on() as windows:
        window = await windows.open()
        params = {"processId": editor.pid, "rootUri": None, "capabilities": CAPABILITIES}
        await window.request("initialize", params)
        assert not windows.serving[0].done()
        editor.kill()  # not collected by us yet, as a zombie
        assert await asyncio.wait_for(windows.serving[0], 60) == 1


def test_a_process_is_told_from_a_later_one_with_its_number(editor: subprocess.Popen[bytes]) -> None:
    found = ClientProcess.find(editor.pid)
    assert found is not None
    assert not found.has_ended()
    assert ClientProcess(editor.pid, found.started_s - 1).has_ended()
    editor.kill()
    editor.wait()
    assert found.has_ended()


@pytest.mark.parametrize("pid", [0x7FFFFFFF, -1, 1 << 80])
def test_a_process_that_cannot_be_seen_is_not_watched(pid: int) -> None:
    assert ClientProcess.find(pid) is None


def test_a_server_process_ends_although_its_pipe_stays_open(editor: subprocess.Popen[bytes]) -> None:
    """The pipe's writing end stays with this process, as with a shell of an ended editor."""
    params = {"processId": editor.pid, "capabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    with subprocess.Popen(
        [sys.executable, "-m", "lsp_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "SLIPSTREAM_MODEL_DIR": "/nonexistent"},
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(encode(message))
        server.stdin.flush()
        assert server.stdout.readline().startswith(b"Content-Length")
        assert psutil.pid_exists(server.pid)
        editor.kill()
        assert server.wait(60) == 1
