"""A real VS Code workbench with a web server (code-server) and a profile of its own.

Owns its process group, its profile and its address.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.editors.programs import find

START_TIMEOUT_S = 120.0

# The workbench as it is, less what would look for news, advertise, or move things about.
QUIET: Mapping[str, Any] = {
    "workbench.startupEditor": "none",
    "workbench.enableExperiments": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.tips.enabled": False,
    "chat.disableAIFeatures": True,
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "telemetry.telemetryLevel": "off",
    "update.showReleaseNotes": False,
    "git.enabled": False,
    "files.autoSave": "off",
    "files.hotExit": "off",
    "editor.minimap.enabled": False,
}


@dataclass(frozen=True, slots=True)
class Workbench:
    """One running code-server; `env` is what it was given beside this process' own environment."""

    process: subprocess.Popen[bytes]
    port: int
    profile: Path
    env: Mapping[str, str]

    def url(self, workspace: Path) -> str:
        """The address of a window on the folder `workspace`."""
        return f"http://127.0.0.1:{self.port}/?folder={quote(str(workspace))}"


@contextmanager
def running(
    profile: Path,
    *,
    vsix: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    machine_settings: Mapping[str, Any] | None = None,
    asks_for_trust: bool = False,
    env: Mapping[str, str] | None = None,
) -> Iterator[Workbench]:
    """A workbench on a new profile in the folder `profile`, with the extension `vsix`.

    All that it starts is ended with it. `settings` are the user's, beside those that keep it quiet;
    `machine_settings` are the machine's.
    """
    _write_json(profile / "User" / "settings.json", {**QUIET, **(settings or {})})
    _write_json(profile / "Machine" / "settings.json", machine_settings or {})
    if vsix:
        install(profile, vsix)
    port = _free_port()
    options = ["--auth", "none", "--bind-addr", f"127.0.0.1:{port}", "--reconnection-grace-time", "30"]
    options += ["--disable-update-check", *([] if asks_for_trust else ["--disable-workspace-trust"])]
    with (profile / "code-server.log").open("wb") as log:
        process = subprocess.Popen(
            [*_command(profile), *options],
            env={**_environment(), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_up(process, port)
        yield Workbench(process, port, profile, env or {})
    finally:
        _end_group(process)


def install(profile: Path, vsix: Path) -> None:
    """Install the extension as a person does from the command line."""
    done = subprocess.run(
        [*_command(profile), "--install-extension", str(vsix)],
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _command(profile: Path) -> list[str]:
    program = str(find("code-server", "code-server"))
    folders = ["--user-data-dir", str(profile), "--extensions-dir", str(profile / "extensions")]
    return [program, *folders, "--config", str(profile / "config.yaml"), "--disable-telemetry"]


def _environment() -> dict[str, str]:
    # An unused address keeps look-ups of extensions on this machine.
    nowhere = json.dumps({"serviceUrl": "http://127.0.0.1:9/"})
    return {**os.environ, "EXTENSIONS_GALLERY": nowhere}


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=2))


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _wait_until_up(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "code-server ended at once"
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
            return
        time.sleep(0.1)
    raise TimeoutError("code-server does not answer")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the workbench, its extension hosts and their servers."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)


def remove(profile: Path) -> None:
    """Forget a profile. It may hold gigabytes and takes a minute, so it is deleted beside the next tests."""
    threading.Thread(target=shutil.rmtree, args=(profile,), kwargs={"ignore_errors": True}).start()
