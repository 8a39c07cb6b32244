"""One Neovim of each version with one server for all tests that need no server of their own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from completion_engine.config import DEFAULT_TARGET
from tests.editors.neovim.editor import LOADING_S, SERVER, Neovim, Start
from tests.hosts import Hosts, own_hosts
from tests.waiting import first_true

VERSIONS = ("0.12", "0.11")
# Without a deadline every answer is whole, and the same each time.
SETTINGS = f"{{ target = '{DEFAULT_TARGET}', deadlineMs = 0, patienceMs = 60000, eagerness = 1 }}"

SHAPES = """def area(width, height):
    return width * height


def perimeter(width, height):
    ret
"""


def setup_lua(options: str = "") -> str:
    """An init.lua that sets the plugin up with the real server."""
    return (
        "vim.o.swapfile = false\n"
        f"require('slipstream').setup({{ cmd = '{SERVER}', settings = {SETTINGS}, {options} }})"
    )


@pytest.fixture(scope="session", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def project(version: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is a project's root, without the files of another version's tests in one process."""
    folder = tmp_path_factory.mktemp(f"project-{version}-")
    (folder / ".git").mkdir()
    return folder


@pytest.fixture(scope="session")
def hosts() -> Iterator[Hosts]:
    """The processes that serve the editors of these tests."""
    with own_hosts() as hosts:
        yield hosts


@pytest.fixture(scope="session")
def running() -> Iterator[list[Neovim]]:
    """The editors that run, which end after the tests at the latest."""
    editors: list[Neovim] = []
    yield editors
    for editor in editors:
        editor.close()


@pytest.fixture(autouse=True)
def ends_its_editors(running: list[Neovim]) -> Iterator[None]:
    """Ends the editors that one test starts: each of them may hold an engine of a gigabyte."""
    num_running = len(running)
    yield
    while len(running) > num_running:
        running.pop().close()


@pytest.fixture(scope="session")
def start(
    version: str,
    program: Callable[[str, str], Path],
    tmp_path_factory: pytest.TempPathFactory,
    hosts: Hosts,
    running: list[Neovim],
) -> Start:
    """Starts a Neovim of this version with an init.lua.

    Two of them share an engine if they get the same homes: `start(init, XDG_CONFIG_HOME=…)`.
    """
    executable = program(f"neovim-{version}", "nvim")
    index = tmp_path_factory.mktemp("index")

    def begin(init: str, **homes: str) -> Neovim:
        # An engine that no test needs any more gives its memory to the next one.
        few = {"SLIPSTREAM_HOST_LINGER_S": "2", **hosts.env, **homes}
        environment = {"SLIPSTREAM_INDEX_DIR": str(index), "HF_HUB_OFFLINE": "1", **few}
        running.append(Neovim(executable, init, tmp_path_factory.mktemp("home"), environment))
        return running[-1]

    return begin


@pytest.fixture(scope="session")
def served(start: Start, project: Path) -> Neovim:
    """An editor whose server is ready."""
    editor = start(setup_lua())
    path = project / "first.py"
    path.write_text(SHAPES)
    editor.edit(path)
    editor.wait_ready()
    return editor


@pytest.fixture(scope="session")
def bare(start: Start) -> Neovim:
    """An editor with the plugin on its path and nothing set up."""
    return start("vim.o.swapfile = false")


@pytest.fixture
def editor(served: Neovim) -> Neovim:
    """The served editor as after its start: no buffers, no switches, no mappings of an earlier test."""
    served.type("<C-\\><C-n>")
    served.call(
        """
        vim.cmd('silent! only | silent! %bwipeout!')
        require('slipstream.switches').enable(true)
        Drawn.delays_ms, Drawn.history, Drawn.said = {}, {}, {}
        vim.cmd('messages clear')
        """
    )
    return served


@pytest.fixture
def write(editor: Neovim, project: Path) -> Callable[..., Path]:
    """Writes a project's file and opens it with the cursor after `|`, ready to type: `write(name, text)`."""

    def make(name: str, text: str, newline: str = "\n") -> Path:
        before, _, after = text.partition("|")
        path = project / name
        path.write_bytes((before + after).replace("\n", newline).encode())
        editor.edit(path)
        editor.until("return require('slipstream.client').of(vim.api.nvim_get_current_buf()) ~= nil")
        row = before.count("\n")
        column = len(before[before.rfind("\n") + 1 :].encode())
        editor.call("vim.cmd.startinsert() vim.api.nvim_win_set_cursor(0, {...})", row + 1, column)
        # `startinsert` counts from the next key on, and puts the cursor where it was.
        editor.call("vim.o.virtualedit = 'onemore'")
        editor.call("vim.api.nvim_win_set_cursor(0, {...})", row + 1, column)
        editor.call("vim.o.virtualedit = ''")
        editor.wait_quiet()
        editor.history()
        return path

    return make


@pytest.fixture
def shown(editor: Neovim, look: Callable[[], str], project: Path) -> str:
    """The suggestion of another project's plugin after `ret` in SHAPES; `look` finds it on the screen."""
    path = project / "shapes.py"

    def try_to_type() -> str:
        editor.type("<C-\\><C-n>")
        # cursortab looks once at the filetype of a buffer, and `:edit` would use one without a name again.
        editor.vim.command("%bwipeout! | file none")
        path.write_text(SHAPES.replace("    ret\n", "\n"))
        editor.edit(path, line=5)
        # cursortab asks only where the text differs from the one that it has seen saved.
        editor.vim.command("silent write")
        first_true(look, 0.5)
        editor.type("A    ret")
        return first_true(look, 5.0)

    # Keys that come while the model is loading have no answer.
    found = first_true(try_to_type, LOADING_S)
    assert found, editor.messages()
    return found


@pytest.fixture(scope="session")
def model_says(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of `slipstream complete` after `ret` in SHAPES."""
    path = tmp_path_factory.mktemp("said") / "shapes.py"
    path.write_text(SHAPES)
    command = [str(SERVER), "complete", f"{path}:6:8", "--json"]
    command += ["--target", DEFAULT_TARGET]
    environment = os.environ | {"SLIPSTREAM_INDEX_DIR": str(path.parent)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=300)
    return str(json.loads(done.stdout)["text"])
