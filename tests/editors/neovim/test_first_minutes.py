"""The first minutes in Neovim after the guides alone: their lines, a clean home, what the screen shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from completion_engine.config import DEFAULT_TARGET
from scripts.release import build_plugin
from tests.editors import programs
from tests.editors.neovim.conftest import SHAPES
from tests.editors.neovim.editor import PLUGIN, SERVER, Neovim, Start
from tests.editors.terminal import Terminal, retype_until, until_shown
from tests.hosts import Hosts

ROOT = programs.ROOT
RECORDINGS = programs.FOLDER / "screens"
READY_S = 540.0

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(900)]


def blocks(path: Path, language: str) -> list[str]:
    """The blocks of code of a guide."""
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


def first_lines(path: Path) -> tuple[str, str]:
    """The commands of a guide that unpack the plugin, and its line for `init.lua` after that."""
    (commands,) = [block for block in blocks(path, "") if "slipstream.nvim" in block]
    (setup,) = set(re.findall(r"call\s+`(require[^`]+)`", path.read_text()))
    return commands, setup


def clean_home(home: Path, real_model_dir: Path, hosts: Hosts) -> dict[str, str]:
    """A clean home, with `slipstream` on the PATH. Only what takes minutes to make is taken along."""
    path = home / "bin"
    path.mkdir()
    (path / "slipstream").symlink_to(SERVER)
    config = home / ".config" / "slipstream" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'target = "{DEFAULT_TARGET}"\n')  # auto would fetch a larger one
    return {
        "PATH": f"{path}{os.pathsep}{os.defpath}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),  # has kernels
        "XDG_CONFIG_HOME": str(home / ".config"),
        "SLIPSTREAM_INDEX_DIR": str(home / "index"),
        "SLIPSTREAM_MODEL_DIR": str(real_model_dir.parents[1]),
        **hosts.env,
    }


@pytest.fixture
def environment(tmp_path: Path, real_model_dir: Path, hosts: Hosts) -> dict[str, str]:
    """A home of the test's own, in which the model was never loaded."""
    return clean_home(tmp_path, real_model_dir, hosts)


@pytest.fixture(scope="module")
def one_environment(
    tmp_path_factory: pytest.TempPathFactory, real_model_dir: Path, hosts: Hosts
) -> dict[str, str]:
    """A home that several tests use after each other, so that one process serves them."""
    home = tmp_path_factory.mktemp("home")
    homes = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("DATA", "STATE")}
    return {**clean_home(home, real_model_dir, hosts), **homes, "SLIPSTREAM_HOST_LINGER_S": "30"}


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "shapes.py"
    path.parent.mkdir()
    (path.parent / ".git").mkdir()
    path.write_text(SHAPES.removesuffix("ret\n"))
    return path


@pytest.fixture
def unpacked(tmp_path: Path, environment: dict[str, str]) -> Callable[[str], None]:
    """Builds the archive of a release and unpacks it by a guide's commands."""

    def unpack(commands: str) -> None:
        tree = tmp_path / "tree"
        shutil.copytree(PLUGIN, tree / "editors" / "neovim")
        for name in ("pyproject.toml", "LICENSE"):
            shutil.copy(ROOT / name, tree)
        build_plugin(tree, tmp_path, 0)
        subprocess.run(["/bin/bash", "-e", "-c", commands], cwd=tmp_path, env=environment, check=True)

    return unpack


@pytest.fixture
def terminal(
    tmp_path: Path, environment: dict[str, str], document: Path, version: str, program: Callable[..., Path]
) -> Iterator[Callable[[str], Terminal]]:
    """Starts Neovim on the document with an `init.lua`; leaves a recording of its screen."""
    started: list[Terminal] = []
    executable = program(f"neovim-{version}", "nvim")

    def start(init: str) -> Terminal:
        (tmp_path / ".config" / "nvim").mkdir()
        (tmp_path / ".config" / "nvim" / "init.lua").write_text(f"{init}\n")
        started.append(Terminal([str(executable), str(document)], tmp_path, environment))
        return started[-1]

    yield start
    for one in started:
        one.save_recording(RECORDINGS / f"first-minutes-neovim-{version}.cast")
        one.close()


# Guides that say the same are followed once.
FIRST_LINES = dict.fromkeys(map(first_lines, (ROOT / "README.md", PLUGIN / "README.md")))


@pytest.mark.parametrize(("commands", "setup"), FIRST_LINES, ids=map(str, range(len(FIRST_LINES))))
def test_the_lines_of_the_guide_lead_to_a_suggestion_without_any_message(
    commands: str,
    setup: str,
    unpacked: Callable[[str], None],
    terminal: Callable[[str], Terminal],
    document: Path,
) -> None:
    unpacked(commands)
    screen = terminal(setup)
    until_shown(screen, r"(def perimeter)")
    screen.press("G", "A")
    shown = retype_until(screen, "ret", r"perimeter\(width, height\):\n +(return \S.*?) *$")
    for words in ("Press ENTER", "Slipstream:", "Error", "settings"):
        assert words not in screen.screen()
    screen.press("Tab", "Escape", *":w", "Enter")
    until_shown(screen, r"(written)")
    written = document.read_text().splitlines()[-1]
    assert written.strip().startswith(shown.strip())  # it may have grown since
    screen.press(*":help slipstream", "Enter")
    until_shown(screen, r"(\*slipstream\.txt\*|slipstream\.txt)")
    assert "E149" not in screen.screen()


HELP = re.findall(r">lua\n(.*?)\n<", (PLUGIN / "doc" / "slipstream.txt").read_text(), re.DOTALL)
BUILT_IN = next(block for block in blocks(ROOT / "editors" / "README.md", "lua") if "vim.lsp.config" in block)
CHECKOUT = next(block for block in blocks(PLUGIN / "README.md", "lua") if "/path/to/slipstream" in block)
LINES = {
    "help, setup": (f"vim.opt.rtp:prepend('{PLUGIN}')\n{HELP[0]}", ""),
    "help, without options": (f"vim.opt.rtp:prepend('{PLUGIN}')\n{HELP[1]}", ""),
    "checkout": (CHECKOUT.replace("/path/to/slipstream", str(ROOT)), ""),
    "built-in client": (BUILT_IN, "0.12"),
}


@pytest.mark.parametrize("name", LINES)
def test_lines_of_the_other_guides_give_a_suggestion_and_no_message(
    name: str, start: Start, version: str, one_environment: dict[str, str], document: Path
) -> None:
    lines, only = LINES[name]
    if only not in ("", version):
        pytest.skip(f"needs Neovim {only}")
    editor = start(f"vim.o.swapfile = false\n{lines}", **one_environment)
    editor.edit(document)
    editor.until("return #vim.lsp.get_clients({ name = 'slipstream', bufnr = 0 }) > 0")
    assert suggested(editor)
    assert "settings" not in editor.messages() and "rror" not in editor.messages()


def suggested(editor: Neovim) -> str:
    """The ghost text after `ret`, typed until the model is loaded."""
    editor.type("GA")
    ask = """
    if Drawn.is_settled() and Drawn.text(0) ~= '' then return Drawn.text(0) end
    local is_typed = vim.fn.getline('.'):find('ret') ~= nil
    if Drawn.is_settled() then vim.api.nvim_input(is_typed and '<BS><BS><BS>' or 'ret') end
    vim.wait(700, function() return Drawn.text(0) ~= '' end)
    """
    return str(editor.until(ask, within_s=READY_S))


# Real plugins that the guide names.
OTHERS = {"lazy.nvim": "dir = '~/slipstream.nvim'", "blink.cmp": "blink.cmp", "nvim-cmp": "require('cmp')"}
MANAGER = "require('lazy').setup({ spec = { %s }, rocks = { enabled = false } })"


@pytest.mark.parametrize("name", OTHERS)
def test_the_snippets_of_the_guide_work_with_the_real_plugins(
    name: str, start: Start, one_environment: dict[str, str], document: Path
) -> None:
    folder = programs.client_source(name)
    (snippet,) = [block for block in blocks(PLUGIN / "README.md", "lua") if OTHERS[name] in block]
    if name == "lazy.nvim":
        lines = MANAGER % snippet.replace("~/slipstream.nvim", str(PLUGIN))
    else:
        setup = "require('slipstream').setup({ keymaps = { accept = false } })"
        lines = f"vim.opt.rtp:prepend('{PLUGIN}')\n{setup}\n{snippet}"
    editor = start(f"vim.o.swapfile = false\nvim.opt.rtp:prepend('{folder}')\n{lines}", **one_environment)
    editor.vim.command("doautocmd User VeryLazy")
    editor.edit(document)
    editor.until("return #vim.lsp.get_clients({ name = 'slipstream', bufnr = 0 }) > 0")
    text = suggested(editor)
    editor.type("<Tab>")
    editor.until("return Drawn.text(0) == ''")
    assert editor.lines()[-1].endswith(text.splitlines()[-1])
    assert "rror" not in editor.messages()
