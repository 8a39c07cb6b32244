"""llama.vscode in a real workbench with Slipstream as its server: ghost text, and what its keys accept.

`SLIPSTREAM_CLIENTS` names the folder that holds `llama.vscode/*.vsix`, packaged from its sources.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from completion_engine.config import DEFAULT_TARGET
from tests.editors.programs import ROOT, client_source
from tests.editors.vscode import workbench
from tests.editors.vscode.window import Window, until
from tests.hosts import own_hosts
from tests.http_clients import http_process

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(600)]

BEFORE = '"""Statistics of samples."""\n\n\ndef total(values):\n    return sum(values)\n\n\n'
# It would ask at its start to install and to start programs of llama.cpp.
QUIET = {"llama-vscode.ask_install_llamacpp": False, "llama-vscode.env_start_last_used": False}


@pytest.fixture(scope="module")
def window(
    real_model_dir: Path,
    program: Callable[[str, str], Path],
    open_window: Callable[..., AbstractContextManager[Window]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Window]:
    """A window with llama.vscode and the guide's line; each test opens a file of its own."""
    packages = sorted(client_source("llama.vscode").glob("*.vsix"))
    if not packages:
        pytest.skip("llama.vscode is not packaged: run `npx @vscode/vsce package` in its sources")
    program("code-server", "code-server")
    profile, folder = tmp_path_factory.mktemp("profile"), tmp_path_factory.mktemp("samples")
    (folder / "known.py").write_text("def add(first, second):\n    return first + second\n")
    config = profile / "config" / "slipstream" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'target = "{DEFAULT_TARGET}"\neagerness = 1\n')
    guide = (ROOT / "editors" / "README.md").read_text()
    (line,) = re.findall(r'\{ "llama-vscode\.endpoint".*\}', guide)
    with own_hosts() as hosts:
        homes = {"XDG_CONFIG_HOME": str(profile / "config"), "SLIPSTREAM_INDEX_DIR": str(profile / "index")}
        env = os.environ | hosts.env | homes
        with http_process(folder, env=env) as http:
            settings = {**QUIET, **json.loads(line.replace("8012", str(http.port)))}
            with (
                workbench.running(profile, vsix=packages[-1], settings=settings) as started,
                open_window(started, folder) as window,
            ):
                start_plugin(window)
                yield window
    workbench.remove(profile)


def start_plugin(window: Window) -> None:
    """Start the plugin, which Python files do not, and close the page with which it takes the focus."""
    window.open("notes.txt", "Notes\n")
    window.page.locator(".tab.active", has_text="Information").wait_for()
    window.run("View: Close All Editors")
    window.page.locator(".tab").first.wait_for(state="detached")


def until_shown(window: Window, text: str) -> str:
    """Type a text at the end, and its last character again until a suggestion is shown."""
    window.type(text)

    def look() -> str:
        for _ in range(40):
            if window.has_ghost_text():
                return window.whole_preview()
            window.page.wait_for_timeout(100)
        window.press("Backspace")
        window.type(text[-1])
        return ""

    return until(look, what="suggestion")


def test_tab_writes_what_is_shown(window: Window) -> None:
    window.open("mean.py", BEFORE)
    preview = until_shown(window, "def mean(values):\nret")
    window.press("Tab")
    after = window.save()
    assert preview.startswith("    ret")
    assert after.rstrip() == f"{BEFORE}def mean(values):\n{preview}".rstrip()
    compile(after, "mean.py", "exec")


def test_a_word_is_accepted(window: Window) -> None:
    window.open("median.py", BEFORE)
    preview = until_shown(window, "def median(values):\nret")
    start = window.line()
    window.press("Control+ArrowRight")
    line = until(lambda: line if (line := window.line()) != start else "", what="word")
    assert preview.startswith(line)
    assert len(line) < len(preview.split("\n")[0])


def test_nothing_complains(window: Window) -> None:
    window.open("largest.py", BEFORE)
    until_shown(window, "def largest(values):\nret")
    assert not [text for text in window.notifications() if "rror" in text]
