"""Servers that never answer, and servers that are removed, in a real workbench."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.editors.vscode.window import Window, until
from tests.editors.vscode.workbench import Workbench

pytestmark = pytest.mark.timeout(1200)

StartWorkbench = Callable[..., AbstractContextManager[Workbench]]
OpenWindow = Callable[..., AbstractContextManager[Window]]

# Notes its process, and never answers.
SILENT = """\
import os, sys
with open(sys.argv[1], "a") as starts:
    starts.write(f"{os.getpid()}\\n")
while sys.stdin.buffer.read(1):
    pass
"""


class SilentServers:
    """Every server that a workbench started; none of them answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "silent.py").write_text(SILENT)

    @property
    def settings(self) -> dict[str, Any]:
        """The machine's settings that have them started."""
        command = [sys.executable, str(self.folder / "silent.py"), str(self.folder / "starts")]
        return {"slipstream.server.command": command}

    def started(self) -> list[int]:
        """Their processes."""
        path = self.folder / "starts"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def living(self) -> list[int]:
        """Those of them that have not ended."""
        return [pid for pid in self.started() if is_running(pid)]


def is_running(pid: int) -> bool:
    """Whether a process is there and not only waited for."""
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.fixture
def servers(tmp_path: Path) -> SilentServers:
    folder = tmp_path / "servers"
    folder.mkdir()
    return SilentServers(folder)


def folder_below(path: Path, name: str) -> Path:
    folder = path / name
    folder.mkdir()
    return folder


def wait_for_walkthrough(*windows: Window) -> None:
    """Until it is in one of them: where it opens, a list that is open closes."""
    title = "Get Started with Slipstream"
    until(lambda: any(title in window.text() for window in windows), what="walkthrough")


def test_a_restart_ends_a_server_that_never_answers(
    start_workbench: StartWorkbench, open_window: OpenWindow, servers: SilentServers, tmp_path: Path
) -> None:
    with (
        start_workbench(machine_settings=servers.settings) as workbench,
        open_window(workbench, folder_below(tmp_path, "project")) as window,
    ):
        until(lambda: len(servers.started()) == 1, what="first server")
        wait_for_walkthrough(window)
        window.run("Slipstream: Restart Server")
        until(lambda: len(servers.started()) == 2, what="second server")
        until(lambda: servers.living() == servers.started()[1:], what="end of the first server")


def test_a_removal_ends_the_servers_of_all_windows_and_says_what_stays(
    start_workbench: StartWorkbench, open_window: OpenWindow, servers: SilentServers, tmp_path: Path
) -> None:
    with (
        start_workbench(machine_settings=servers.settings) as workbench,
        open_window(workbench, folder_below(tmp_path, "one")) as one,
        open_window(workbench, folder_below(tmp_path, "other")) as other,
    ):
        wait_for_walkthrough(one, other)
        until(lambda: len(servers.started()) == 2, what="server in each window")
        one.run("Slipstream: Remove the Server and All Its Files")
        one.page.locator(".monaco-dialog-box").get_by_role("button", name="Remove Everything").click()
        until(lambda: servers.living() == [], what="end of both servers")
        until(lambda: "nothing was removed" in " ".join(one.notifications()), what="word on what stays")
        for window in (one, other):
            window.wait_for_status(r"circle-slash")
        other.run("Slipstream: Restart Server")
        until(lambda: len(servers.started()) == 3, what="server that is wanted again")
