"""The host: how it comes to be, how it ends, and that a window is served whatever is wrong with it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hosts import PATIENCE_S, Hosts, has_ended
from tests.waiting import until

if TYPE_CHECKING:
    from tests.e2e.conftest import Editor
    from tests.e2e.sharing.conftest import StartWindow

TEXT = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    \n"
# Time for a window to come back; a test waits for it once, and tries again where a busy machine took longer.
LINGER_S = "15"
NUM_TRIES = 5
HEAVY = {"torch", "transformers", "numpy", "pygls", "pydantic", "lsprotocol", "asyncio", "lsp_server.app"}


async def works(editor: Editor, name: str = "a.py") -> bool:
    await editor.until_state("ready")
    return bool(await editor.suggest(editor.open(name, TEXT), 5, 4))


async def test_windows_that_open_at_once_find_one_host(
    start_window: StartWindow, hosts: Hosts, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        opening = [stack.enter_async_context(start_window(tmp_path)) for _ in range(4)]
        windows = await asyncio.gather(*opening)
        assert all([await works(window) for window in windows])
        host = hosts.only()
        assert host["num_windows"] == 4
        assert [engine["num_users"] for engine in host["engines"]] == [4]


async def test_a_killed_host_takes_the_relays_along_and_the_next_window_has_a_new_one(
    start_window: StartWindow, hosts: Hosts, tmp_path: Path
) -> None:
    async with start_window(tmp_path) as one, start_window(tmp_path) as other:
        assert await works(one)
        assert await works(other)
        pid = hosts.only()["pid"]
        os.kill(pid, signal.SIGKILL)
        await until(lambda: None not in {one.client.process.returncode, other.client.process.returncode})
        assert (one.client.process.returncode, other.client.process.returncode) == (1, 1)
        async with start_window(tmp_path) as again:
            assert await works(again)
            assert hosts.only()["pid"] != pid


async def test_a_host_that_is_told_to_end_tells_its_windows_and_leaves_no_socket(
    start_window: StartWindow, hosts: Hosts, tmp_path: Path
) -> None:
    async with start_window(tmp_path) as window:
        assert await works(window)
        pid = hosts.only()["pid"]
        os.kill(pid, signal.SIGTERM)
        assert await asyncio.to_thread(has_ended, pid, PATIENCE_S)
        assert await window.client.shutdown(timeout_s=PATIENCE_S) == 1
    assert list(hosts.folder.rglob("*.sock")) == []


async def test_a_window_that_comes_back_finds_its_engine_and_later_all_is_gone(
    start_window: StartWindow, hosts: Hosts, tmp_path: Path
) -> None:
    async with start_window(tmp_path, SLIPSTREAM_HOST_LINGER_S=LINGER_S) as window:
        assert await works(window)
        pid = hosts.only()["pid"]
        assert await window.client.shutdown(timeout_s=PATIENCE_S) == 0
    for _ in range(NUM_TRIES):
        before = pid
        async with start_window(tmp_path, SLIPSTREAM_HOST_LINGER_S=LINGER_S) as window:
            assert await works(window)
            states = [said["state"] for said in window.messages("didChangeStatus")]
            pid = hosts.only()["pid"]
        if pid == before:
            break
    assert pid == before
    assert states == ["ready"]
    assert await asyncio.to_thread(has_ended, pid, PATIENCE_S)
    assert list(hosts.folder.rglob("*.sock")) == []


async def test_a_socket_that_nobody_listens_on_is_replaced(
    start_window: StartWindow, hosts: Hosts, tmp_path: Path
) -> None:
    async with start_window(tmp_path) as window:
        assert await works(window)
        pid = hosts.only()["pid"]
        (path,) = hosts.folder.rglob("*.sock")
        os.kill(pid, signal.SIGKILL)
        assert await asyncio.to_thread(has_ended, pid, PATIENCE_S)
    assert path.exists()
    async with start_window(tmp_path) as window:
        assert await works(window)
        assert hosts.only()["pid"] != pid


@pytest.mark.parametrize("fault", ["open to others", "a link", "a file", "no such folder"])
async def test_where_no_host_can_be_had_the_window_is_served_all_the_same(
    start_window: StartWindow, hosts: Hosts, tmp_path: Path, fault: str
) -> None:
    folder = hosts.folder / f"slipstream-{os.getuid()}"
    match fault:
        case "open to others":
            folder.mkdir()
            folder.chmod(0o777)
        case "a link":
            folder.symlink_to(tmp_path)
        case "a file":
            folder.touch()
    temporary = hosts.folder / "nowhere" if fault == "no such folder" else hosts.folder
    async with start_window(tmp_path, XDG_RUNTIME_DIR="", TMPDIR=str(temporary)) as window:
        assert await works(window)
        assert any("this window starts its own engine" in line for line in window.client.stderr_lines)
        assert await window.client.shutdown(timeout_s=PATIENCE_S) == 0
    assert hosts.facts() == []


async def test_an_editor_that_just_goes_is_an_error_and_its_relay_ends(
    start_window: StartWindow, hosts: Hosts, tmp_path: Path
) -> None:
    async with start_window(tmp_path) as window:
        assert await works(window)
        assert (await run(["-m", "lsp_server", "--shared"], hosts.relay_env()))[0] == 1
        assert await works(window, "b.py")


async def test_the_relay_loads_nothing_heavy(start_window: StartWindow, hosts: Hosts, tmp_path: Path) -> None:
    code = (
        "import os, sys, lsp_server.__main__\n"
        "from lsp_server.sharing.relay import connect\n"
        "connect(os.environ).close()\n"
        "print(*sys.modules)"
    )
    async with start_window(tmp_path) as window:
        await window.until_state("ready")
        exit_code, printed = await run(["-c", code], hosts.relay_env())
    assert exit_code == 0
    assert "lsp_server.sharing.relay" in printed.split()
    assert set(printed.split()) & HEAVY == set()


async def run(arguments: list[str], env: dict[str, str]) -> tuple[int, str]:
    """The exit code of a Python without input, and its output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE_S):
        printed, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, printed.decode()
