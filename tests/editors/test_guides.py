"""The promises of the guides for other editors: their own configuration, a real editor, a key, the file on
disk.

Has no access to the expected suggestions: the text that an editor shows must be in the file.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from completion_engine.config import DEFAULT_TARGET
from tests.editors import programs
from tests.editors.edit_stories import STORIES
from tests.editors.programs import client_source
from tests.editors.terminal import LOADING_S, PATIENCE_S, Terminal, retype_until, until_shown
from tests.hosts import own_hosts
from tests.http_clients import http_process
from tests.waiting import first_true

EDITORS = programs.ROOT / "editors"
BIN = Path(sys.executable).parent

SHOWN = r'The perimeter\."""\n +(return\b.*?) *$'
OPENED_S = 3.0  # after it the server has read the rules of a document, and follows its edits
# Compiling Emacs' own libraries in the background would take the processor from the model.
EMACS = ("-nw", "-Q", "--eval", "(setq native-comp-jit-compilation nil)")
DRAWN_S = 1.0  # after it the screen shows what a key did

BEFORE = '''"""Geometry of rectangles."""


class Rectangle:
    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height

    def area(self) -> float:
        """The area."""
        return self.width * self.height

    def perimeter(self) -> float:
        """The perimeter."""
        '''

pytestmark = pytest.mark.real_model


StartTerminal = Callable[..., Terminal]
Program = Callable[[str, str], Path]


@pytest.fixture
def environment(tmp_path: Path, real_model_dir: Path) -> dict[str, str]:
    """Settings, index and editors' files of its own; whole suggestions only; no other server on the path."""
    config, path = tmp_path / "config", tmp_path / "bin"
    (config / "slipstream").mkdir(parents=True)
    (config / "slipstream" / "config.toml").write_text(
        f'deadlineMs = 0\neagerness = 1\ntarget = "{DEFAULT_TARGET}"\n'
    )
    path.mkdir()
    (path / "slipstream").symlink_to(BIN / "slipstream")
    return {
        "PATH": f"{path}{os.pathsep}{os.defpath}",
        "LANG": "C.UTF-8",
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(config),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),  # has kernels
        "SLIPSTREAM_INDEX_DIR": str(tmp_path / "index"),
        "SLIPSTREAM_MODEL_DIR": str(real_model_dir.parents[1]),
    }


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "shapes.py"
    path.parent.mkdir()
    (path.parent / ".git").mkdir()
    path.write_text(BEFORE)
    return path


@pytest.fixture
def start(tmp_path: Path, environment: dict[str, str], document: Path) -> Iterator[StartTerminal]:
    """Starts an editor on the document."""
    terminals = []

    def start(argv: list[str]) -> Terminal:
        terminals.append(Terminal([*argv, str(document)], tmp_path, environment))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def until_saved(document: Path, terminal: Terminal) -> None:
    """Wait for a changed text on disk: an editor's message about it may disappear at once."""

    def is_saved() -> bool:
        with contextlib.suppress(FileNotFoundError):  # an editor may put another file in its place
            return document.read_text() not in {BEFORE, RENAME.before, ""}
        return False

    if not first_true(is_saved, PATIENCE_S):
        raise TimeoutError(f"nothing was saved:\n{terminal.screen()}")


def check_that_tab_writes_what_is_shown(
    terminal: Terminal, document: Path, to_end: list[str], save: list[str], word_key: str = ""
) -> None:
    """Types at the end until a suggestion is shown, accepts it, or its first word by a key, and saves it."""
    terminal.press(*to_end)
    shown = retype_until(terminal, "ret", SHOWN)
    terminal.press(word_key or "Tab", *save)
    until_saved(document, terminal)
    assert document.read_text().rstrip() == BEFORE + (shown.split()[0] if word_key else shown)


def test_helix_shows_a_suggestion_and_saves_what_it_showed(
    environment: dict[str, str], document: Path, start: StartTerminal, program: Program
) -> None:
    helix = program("helix", "hx")
    shutil.copytree(EDITORS / "helix", Path(environment["XDG_CONFIG_HOME"]) / "helix")
    terminal = start([str(helix)])
    until_shown(terminal, "(Rectangle)")
    terminal.press("g", "e", "A")
    retype_until(terminal, "ret", r"^[ ~]+(return\b.*?) +text")
    terminal.press("Tab")
    shown = until_shown(terminal, r'The perimeter\.""" *\n +15 +(return\b.*?) *$')
    terminal.press("Enter", "Escape", ":", "w", "Enter")
    until_saved(document, terminal)
    assert document.read_text() == f"{BEFORE}{shown}\n"


def test_emacs_shows_a_suggestion_and_saves_what_it_showed(
    document: Path, start: StartTerminal, program: Program
) -> None:
    terminal = start([str(program("emacs", "emacs")), *EMACS, "-l", str(EDITORS / "emacs" / "slipstream.el")])
    until_shown(terminal, "(Rectangle)")
    check_that_tab_writes_what_is_shown(terminal, document, ["M->"], ["C-x", "C-s"])


# A function that is advised would be compiled, which needs a C compiler.
COPILOT_EL = f"""(setq native-comp-enable-subr-trampolines nil)
(add-to-list 'load-path "%s")
(require 'copilot-nes)
(setq copilot-server-executable "{BIN / "slipstream"}" copilot-server-args '("--stdio")
      copilot-idle-delay nil copilot-nes-idle-delay 0.2 copilot-indent-offset-warning-disable t)
(add-hook 'prog-mode-hook #'copilot-mode)
(add-hook 'prog-mode-hook #'copilot-nes-mode)
"""
(RENAME,) = [story for story in STORIES if story.name == "a function gets another name"]


@dataclass(frozen=True, slots=True)
class Keys:
    """An editor with another project's plugin: its command, keys for the end of the text, and for saving.

    In all of them, C-l accepts a word and C-k shows another suggestion, in some after the keys `to_choose`.
    """

    argv: list[str]
    to_end: list[str]
    save: list[str]
    to_choose: tuple[str, ...] = ()


def copilot_el(folder: Path, program: Program) -> Keys:
    emacs, settings = program("emacs", "emacs"), folder / "init.el"
    accept = "copilot-accept-completion"
    keys = {"<tab>": accept, "TAB": accept, "C-l": f"{accept}-by-word", "C-k": "copilot-next-completion"}
    bind = '(define-key copilot-completion-map (kbd "%s") #\'%s)\n'
    settings.write_text(
        (COPILOT_EL % client_source("copilot.el")).replace("copilot-idle-delay nil", "copilot-idle-delay 0")
        + "".join(bind % pair for pair in keys.items())
        + '(global-set-key (kbd "C-j") #\'copilot-complete)\n'
    )
    return Keys([str(emacs), *EMACS, "-l", str(settings)], ["M->"], ["C-x", "C-s"], ("C-j",))


def copilot_vim(folder: Path, _program: Program) -> Keys:
    vim, settings = shutil.which("vim"), folder / "vimrc"
    if vim is None or vim_version(vim) < (9, 0):
        pytest.skip("Vim 9 is not installed")
    settings.write_text(
        f"set nocompatible noswapfile rtp^={client_source('copilot.vim')}\nfiletype plugin on\n"
        f"let g:copilot_command = '{BIN / 'slipstream'}'\nlet g:copilot_agent_command = g:copilot_command\n"
        "imap <C-l> <Plug>(copilot-accept-word)\nimap <C-k> <Plug>(copilot-next)\n"
    )
    return Keys([vim, "-u", str(settings)], ["G", "A"], ["Escape", ":", "w", "Enter"])


@pytest.fixture(params=[copilot_el, copilot_vim], ids=lambda make: make.__name__)
def keys(request: pytest.FixtureRequest, tmp_path: Path, program: Program) -> Keys:
    return request.param(tmp_path, program)  # type: ignore[no-any-return]  # pytest gives what is in `params`


def test_a_plugin_shows_a_suggestion_and_tab_writes_it(
    keys: Keys, document: Path, start: StartTerminal
) -> None:
    terminal = start(keys.argv)
    until_shown(terminal, "(Rectangle)")
    check_that_tab_writes_what_is_shown(terminal, document, keys.to_end, keys.save)


def test_a_plugin_shows_another_suggestion_and_accepts_its_first_word(
    keys: Keys, document: Path, start: StartTerminal
) -> None:
    terminal = start(keys.argv)
    until_shown(terminal, "(Rectangle)")
    terminal.press(*keys.to_end)
    first = retype_until(terminal, "ret", SHOWN)
    terminal.press(*keys.to_choose)
    other = re.compile(rf'The perimeter\."""\n +(?!{re.escape(first)} *$)return\b', re.MULTILINE)
    # Until the further ones have come, the key does nothing.
    assert first_true(lambda: terminal.press("C-k") or other.search(terminal.screen()), PATIENCE_S)
    terminal.press("C-l", *keys.save)
    until_saved(document, terminal)
    assert document.read_text().rstrip() == f"{BEFORE}return"


@pytest.mark.parametrize("word_key", ["", "C-l"], ids=["whole", "word"])
@pytest.mark.parametrize("editor", ["vim", "neovim-0.11", "neovim-0.12"])
def test_llama_vim_shows_a_suggestion_and_a_key_writes_it(
    editor: str,
    word_key: str,
    tmp_path: Path,
    document: Path,
    start: StartTerminal,
    program: Program,
    environment: dict[str, str],
) -> None:
    vim = shutil.which("vim") or "" if editor == "vim" else str(program(editor, "nvim"))
    if editor == "vim" and vim_version(vim) < (9, 1):
        pytest.skip("Vim 9.1 is not installed, which llama.vim needs")
    settings = tmp_path / "init.vim"
    with own_hosts() as hosts, http_process(document.parent, env=environment | hosts.env) as http:
        settings.write_text(
            f"set nocompatible noswapfile rtp^={client_source('llama.vim')}\n"
            "let g:llama_config = {'show_info': 0, 'keymap_fim_accept_word': '<C-l>'}\n"
            f"let g:llama_config.endpoint_fim = 'http://127.0.0.1:{http.port}/infill'\n"
        )
        terminal = start([vim, *(["--clean"] if editor != "vim" else []), "-u", str(settings)])
        until_shown(terminal, "(Rectangle)")
        save = ["Escape", ":", "w", "Enter"]
        check_that_tab_writes_what_is_shown(terminal, document, ["G", "A"], save, word_key)


def vim_version(vim: str) -> tuple[int, int]:
    said = subprocess.check_output([vim, "--version"], text=True) if vim else ""
    version = re.search(r"IMproved (\d+)\.(\d+)", said)
    return (int(version[1]), int(version[2])) if version else (0, 0)


def test_copilot_el_makes_the_rest_of_a_rename(
    tmp_path: Path, document: Path, start: StartTerminal, program: Program
) -> None:
    settings = tmp_path / "init.el"
    settings.write_text(COPILOT_EL % client_source("copilot.el"))
    document.write_text(RENAME.before)
    terminal = start([str(program("emacs", "emacs")), *EMACS, "-l", str(settings)])
    until_shown(terminal, r"(print\(load)")
    time.sleep(OPENED_S)
    terminal.press("M-f", "C-f", "M-d", *"read_text")
    while "load" in terminal.screen():
        # The old name stands before the new one. The first Tab jumps there, the second applies it.
        until_shown(terminal, r"(loadread_text)\(")
        terminal.press("Tab")
        time.sleep(DRAWN_S)
    terminal.press("C-x", "C-s")
    until_saved(document, terminal)
    assert document.read_text() == RENAME.after


def test_the_client_of_the_guide_prints_a_suggestion(environment: dict[str, str], document: Path) -> None:
    guide = (EDITORS / "README.md").read_text()
    (client,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    document.write_text(f"{BEFORE}ret")
    printed = subprocess.run(
        [sys.executable, "-c", client, str(document)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LOADING_S,
        check=False,
    )
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.strip()
    compile(f"{BEFORE}ret{printed.stdout}", "shapes.py", "exec")
