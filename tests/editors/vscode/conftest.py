"""A real workbench with the packaged extension and the real server, and windows in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from completion_engine.config import DEFAULT_TARGET
from tests.editors import programs, recorder
from tests.editors.vscode import extension, workbench
from tests.editors.vscode.window import Window, browsing
from tests.editors.vscode.workbench import Workbench
from tests.hosts import own_hosts

# Pictures of the windows in which a test failed.
SCREENS = programs.FOLDER / "screens"

SERVER = [str(Path(sys.executable).parent / "slipstream"), "serve", "--stdio", "--shared"]

# Without a deadline an answer is whole and the same each time, however loaded the machine is.
SETTINGS = {"slipstream.deadlineMs": 0, "slipstream.patienceMs": 60_000, "slipstream.eagerness": 1}

_windows: list[Window] = []


def heard(workbench: Workbench) -> list[recorder.Heard]:
    """Messages so far between the editor and the server that was started last."""
    return recorder.read(recorder.recordings(workbench.profile / "recordings")[-1])


def complete(workbench: Workbench, file: Path, line: int, column: int) -> str:
    """The output of `slipstream complete` at a position, with the editor's target."""
    argv = [SERVER[0], "complete", f"{file}:{line + 1}:{column + 1}", "--json"]
    argv += ["--target", DEFAULT_TARGET]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=True, env={**os.environ, **workbench.env}
    )
    text: str = json.loads(done.stdout)["text"]
    return text


@pytest.fixture(scope="session")
def vsix() -> Path:
    """The extension as it is published, built from this tree."""
    try:
        return extension.package()
    except programs.MissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def start_workbench(
    vsix: Path, program: Callable[[str, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., AbstractContextManager[Workbench]]:
    """Start a workbench of one's own: `with start_workbench(settings=…, asks_for_trust=…) as workbench`."""
    program("code-server", "code-server")

    @contextmanager
    def start(**options: Any) -> Iterator[Workbench]:
        profile = tmp_path_factory.mktemp("profile")
        places = {"SLIPSTREAM_INDEX_DIR": str(profile / "index"), "XDG_CONFIG_HOME": str(profile / "config")}
        command = [sys.executable, recorder.__file__, str(profile / "recordings"), *SERVER]
        machine = {"slipstream.server.command": command, "slipstream.target": DEFAULT_TARGET}
        machine |= options.pop("machine_settings", {})
        settings = {**SETTINGS, **options.pop("settings", {})}
        with (
            own_hosts() as hosts,
            workbench.running(
                profile,
                vsix=vsix,
                settings=settings,
                machine_settings=machine,
                env={**places, **hosts.env},
                **options,
            ) as started,
        ):
            yield started
        workbench.remove(profile)

    return start


@pytest.fixture(scope="session")
def the_workbench(
    real_model_dir: Path, start_workbench: Callable[..., AbstractContextManager[Workbench]]
) -> Iterator[Workbench]:
    """The workbench that most tests share; each window has an extension host and a server of its own."""
    with start_workbench() as started:
        yield started


@pytest.fixture(scope="module")
def browser(program: Callable[[str, str], Path]) -> Iterator[Browser]:
    # A session's browser would keep an event loop running under the tests of other folders.
    program("chromium", "chromium")
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def open_window(browser: Browser) -> Callable[..., AbstractContextManager[Window]]:
    """Open a window: `with open_window(workbench, folder) as window`."""

    @contextmanager
    def open_it(workbench: Workbench, folder: Path) -> Iterator[Window]:
        with Window.on(browser, workbench.url(folder), folder) as window:
            _windows.append(window)
            try:
                window.wait_until_up()
                yield window
            except Exception:
                window.picture(SCREENS / f"{folder.name}.png")
                raise
            finally:
                _windows.remove(window)

    return open_it


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leave pictures of the open windows when a test fails."""
    report = yield
    if report.failed:
        for number, window in enumerate(_windows):
            window.picture(SCREENS / f"{item.name}-{report.when}-{number}.png")
    return report
