"""A real Neovim with a plugin, typed into as a person would; times are read off its screen.

`SLIPSTREAM_CLIENTS` names the folder that holds llama.vim's source. Owns the editor's process. What it cannot
see: that a program has decided to show nothing, so a key without ghost text has no answer.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from completion_engine.errors import MachineError, UserError
from lsp_server.commands.player import Answer
from lsp_server.scripted_typing.screen import Buffer, ShownSuggestion
from lsp_server.scripted_typing.typing_plan import TypingPlan
from lsp_server.scripted_typing.typist import TYPISTS, Typist, TypistName
from tests.benchmarks.keystrokes.file_run import Watcher, rest_of, type_plan
from tests.benchmarks.keystrokes.llama_server import LlamaServer
from tests.editors import programs
from tests.editors.neovim.editor import LOADING_S, SERVER, Neovim
from tests.hosts import own_hosts
from tests.http_clients import http_process
from tests.waiting import first_true

VERSION = "0.12"
SIZE = (120, 50)
LUA = Path(__file__).with_name("screen.lua")
VISIT_S = 2.5  # llama.vim takes up a visited file within 1.1 seconds
_NAMES = {" ": "<Space>", "\n": "<CR>", "<": "<lt>", "\\": "<Bslash>", "|": "<Bar>", "\t": "<C-v><Tab>"}
# Keys write what they say: brackets and indentation are part of the plan.
_PLAIN = """
vim.o.swapfile, vim.o.autoindent, vim.o.whichwrap = false, false, '[,]'
vim.cmd('filetype plugin indent off')
"""


def slipstream_init(target: str) -> str:
    """The Lua that sets up Slipstream's plugin with default settings and this model."""
    return (
        f"{_PLAIN}require('slipstream').setup({{ cmd = '{SERVER}', settings = {{ target = '{target}' }} }})"
    )


def llama_vim_init(url: str, stop: Sequence[str]) -> str:
    """The Lua that sets up llama.vim with default settings and this server. Raises UserError without it."""
    folder = Path(os.environ.get("SLIPSTREAM_CLIENTS", "")) / "llama.vim"
    if not (folder / "plugin").is_dir():
        raise UserError("llama.vim is not here.", advice="Name its parent folder in SLIPSTREAM_CLIENTS.")
    stops = ", ".join(f"'{text}'" for text in stop).replace("\n", "\\n")
    config = f"vim.g.llama_config = {{ endpoint_fim = '{url}', stop_strings = {{ {stops} }} }}"
    return f"{_PLAIN}{config}\nvim.opt.rtp:prepend('{folder}')"


@contextmanager
def copy_without(root: Path, name: str, plan: TypingPlan) -> Iterator[Path]:
    """A copy of a repository in which `name` lacks what the plan will type."""
    with tempfile.TemporaryDirectory(prefix="keystrokes-") as made:
        copy = Path(made) / root.name
        shutil.copytree(root, copy)
        (copy / ".git").mkdir(exist_ok=True)
        (copy / name).write_text(plan.text[: plan.start] + plan.text[plan.end :])
        yield copy


@contextmanager
def http_address(root: Path, name: str, target: str, env: Mapping[str, str]) -> Iterator[str]:
    """The address of `slipstream serve --http` for a repository, with this model loaded and the index built.

    The index leaves `name` out, as for the other programs.
    """
    with tempfile.TemporaryDirectory(prefix="keystrokes-") as made, own_hosts() as hosts:
        config = Path(made) / "slipstream" / "config.toml"
        config.parent.mkdir()
        config.write_text(f'target = "{target}"\nindex.exclude = ["/{name}"]\n')
        homes = {"XDG_CONFIG_HOME": made, "SLIPSTREAM_INDEX_DIR": str(Path(made) / "index")}
        with http_process(root, env={**os.environ, **hosts.env, **homes, **env}) as http:
            server = LlamaServer(http.port, "")
            if not first_true(server.is_ready, LOADING_S):
                raise MachineError("Slipstream did not load its model.")
            yield server.infill_url


class InNeovim:
    """An editor in the folder `root`, in which `name` lacks what the plan will type."""

    def __init__(self, root: Path, name: str, plan: TypingPlan) -> None:
        self._root, self._name, self._plan = root, name, plan
        # The editor's interface runs an event loop of its own.
        self._thread = ThreadPoolExecutor(1)
        self._editor: Neovim

    def start(self, init: str, folder: Path, env: Mapping[str, str]) -> None:
        """Start the editor, with its files in `folder`."""
        program = programs.find(f"neovim-{VERSION}", "nvim")
        self._editor = self._do(Neovim, program, init, folder / "home", dict(env))
        self._do(self._editor.vim.ui_attach, *SIZE, rgb=True)
        self._do(self._editor.vim.command, f"cd {self._root}")
        self._do(self._editor.call, f"dofile('{LUA}')")

    def open_files(self, visited: Sequence[Path], *, waits: bool) -> None:
        """Look at some files for a while, then open the file where the plan begins, in insert mode.

        `waits` for Slipstream's model.
        """
        for path in [*visited, Path(self._name)]:
            self._do(self._editor.edit, self._root / path)
            time.sleep(VISIT_S)
        if waits:
            self._do(self._editor.wait_ready)
        line = self._plan.text.count("\n", 0, self._plan.start) + 1
        self._do(self._editor.call, "vim.api.nvim_win_set_cursor(0, {...})", line, 0)
        self._do(self._editor.type, "i")

    async def type(self, pace_ms: float, watcher: Watcher, name: TypistName = "eager") -> list[Answer]:
        """Press the plan's keys. Raises MachineError when the editor does not hold its text at the end."""
        typist = TYPISTS[name].at_start(self._plan)
        left, right = typist.buffer.left, typist.buffer.right

        async def screen(typist: Typist, start: float, pause_ms: float) -> Answer:
            nonlocal left, right
            keys = keys_between(left, right, typist.buffer)
            left, right = typist.buffer.left, typist.buffer.right
            self._do(self._editor.type, keys)
            await rest_of(start, pause_ms)
            shown = self._do(self._editor.call, "return Shown")
            if not shown["text"] or "at" not in shown:
                return Answer("cancelled", pause_ms)
            watcher.saw_first_at(shown["at"] / 1e9)
            suggestion = ShownSuggestion(shown["text"], shown["num_replaced"])
            return Answer("shown", shown["at"] / 1e6 - start * 1000, suggestion=suggestion)

        answers = await type_plan(typist, pace_ms, watcher, screen)
        if "\n".join(self._do(self._editor.lines)) != self._plan.text.removesuffix("\n"):
            raise MachineError("The editor's text is not what was typed.")
        return answers

    def close(self) -> None:
        """End the editor."""
        if hasattr(self, "_editor"):
            self._do(self._editor.close)
        self._thread.shutdown()

    def _do(self, act: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return self._thread.submit(act, *arguments, **named).result()


@contextmanager
def editor_of(
    init: str, root: Path, name: str, plan: TypingPlan, env: Mapping[str, str]
) -> Iterator[InNeovim]:
    """An editor that ends with the block, and every server that it started with it."""
    with tempfile.TemporaryDirectory(prefix="keystrokes-") as made, own_hosts() as hosts:
        folder = Path(made)
        editor = InNeovim(root, name, plan)
        try:
            editor.start(init, folder, {"SLIPSTREAM_INDEX_DIR": str(folder / "index"), **hosts.env, **env})
            yield editor
        finally:
            editor.close()


def keys_between(left: str, right: str, buffer: Buffer) -> str:
    """The keys, in Neovim's notation, that make the text around the cursor that of `buffer`."""
    pairs = zip(left, buffer.left, strict=False)
    same = next((n for n, (old, new) in enumerate(pairs) if old != new), min(len(left), len(buffer.left)))
    num_gone = max(0, len(right) - len(buffer.right))  # typed over, or replaced
    closing = buffer.right[: max(0, len(buffer.right) - len(right))]
    written = "".join(_NAMES.get(character, character) for character in buffer.left[same:] + closing)
    return "<BS>" * (len(left) - same) + "<Del>" * num_gone + written + "<Left>" * len(closing)
