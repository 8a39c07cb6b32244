"""The server of VS Code's windows: how it starts, what happens when it dies, what it may touch."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.editors import recorder
from tests.editors.vscode.window import Key, Sight, Window, until
from tests.editors.vscode.workbench import Workbench
from tests.hosts import Hosts

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(1200)]

OpenWindow = Callable[..., AbstractContextManager[Window]]

# A person calls an editor frozen at about a second; this machine may be several times slower than theirs.
FROZEN_MS = 3000


def test_two_windows_complete_each_in_its_own_folder_and_tell_how_far_they_are(
    the_workbench: Workbench, open_window: OpenWindow, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
        (folder / "known.py").write_text(f"def {folder.name}(value):\n    return value\n")
    hosts_of(the_workbench).end()  # one that lingers has a model, which the first window is to wait for
    with ExitStack() as stack:
        one = stack.enter_context(open_window(the_workbench, folders[0]))
        *loading, _ready = one.wait_until_ready()
        assert loading
        assert all(words.startswith("$(loading~spin) Slipstream") for words in loading)
        other = stack.enter_context(open_window(the_workbench, folders[1]))
        other.wait_until_ready()
        for window in (one, other):
            window.open("mean.py", "")
            window.type("def mean(values):\n    return ")
            assert window.ghost_text()
            window.press("Tab")
            assert "values" in window.save().splitlines()[-1]
        host = hosts_of(the_workbench).only()
        assert host["num_windows"] == 2
        assert [engine["num_users"] for engine in host["engines"]] == [2]


def hosts_of(workbench: Workbench) -> Hosts:
    """The processes that serve the windows of a workbench."""
    return Hosts(Path(workbench.env["XDG_RUNTIME_DIR"]))


@pytest.mark.parametrize("victim", ["its own process", "the shared process"])
def test_a_killed_server_comes_back_while_the_typing_goes_on(
    the_workbench: Workbench, open_window: OpenWindow, tmp_path: Path, victim: str
) -> None:
    with open_window(the_workbench, tmp_path) as window:
        window.wait_until_ready()
        recordings = the_workbench.profile / "recordings"
        num_servers = len(recorder.recordings(recordings))
        window.open("typing.py", "")
        window.type("# The server dies in the middle of this line, ")
        relay = recorder.server_pid(recorder.recordings(recordings)[-1])
        is_shared = victim == "the shared process"
        os.kill(hosts_of(the_workbench).only()["pid"] if is_shared else relay, signal.SIGKILL)
        window.type("and the one who types it does not notice anything at all")
        until(lambda: len(recorder.recordings(recordings)) > num_servers, what="new server")
        window.type(", not even later on")
        assert max(key_delays_ms(window.keys(), window.sights())) < FROZEN_MS
        window.wait_until_ready()
        window.press("Escape")
        window.type("\n\n\ndef add(first, second):\n")
        assert window.ghost_text()
        assert window.notifications() == []


def key_delays_ms(keys: list[Key], sights: list[Sight]) -> list[float]:
    """From each printable key, after the file was opened, to the first sight of one more character."""
    first = next(index for index, key in enumerate(keys) if key.key == "#")
    typed = ""
    delays = []
    for key in keys[first:]:
        typed += key.key if len(key.key) == 1 else ""
        delays.append(next(sight.at_ms for sight in sights if sight.line.startswith(typed)) - key.at_ms)
    return delays


def test_an_untrusted_workspace_is_completed_and_nothing_of_it_is_run_or_indexed(
    start_workbench: Callable[..., AbstractContextManager[Workbench]],
    real_model_dir: Path,
    open_window: OpenWindow,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "stranger"
    (folder / ".vscode").mkdir(parents=True)
    (folder / "known.py").write_text("def add(first, second):\n    return first + second\n")
    trap = tmp_path / "executed"
    program = folder / "server"
    program.write_text(f"#!/bin/sh\ntouch '{trap}'\n")
    program.chmod(0o755)
    (folder / ".vscode" / "settings.json").write_text(
        f'{{"slipstream.server.command": ["{program}"], "slipstream.server.python": "{program}",'
        ' "slipstream.index.enabled": true, "slipstream.drafters": []}'
    )
    with start_workbench(asks_for_trust=True) as workbench:
        with open_window(workbench, folder) as window:
            window.wait_until_ready()
            assert window.is_restricted()
            window.open("add.py", "")
            window.type("def subtract(first, second):\n")
            assert window.ghost_text()
        said = recorder.read(recorder.recordings(workbench.profile / "recordings")[0])
        settings = [
            one.message["result"][0]
            for one in said
            if one.from_editor and isinstance(one.message.get("result"), list)
        ]
        assert settings
        assert all(setting["index.enabled"] is False for setting in settings)
        assert all("drafters" not in setting for setting in settings)
        assert [path for path in (workbench.profile / "index").rglob("*") if path.is_file()] == []
    assert not trap.exists()
