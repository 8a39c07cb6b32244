"""A real Neovim with the plugin, driven from outside as a person would: keys in, screen and files out.

Owns the Neovim process. Has no access to the expected suggestions.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvim

from tests.waiting import first_true

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "editors" / "neovim"
SERVER = Path(sys.executable).with_name("slipstream")
DRAWN = Path(__file__).with_name("drawn.lua")

# The machine may be busy, and the model takes its time to load.
PATIENCE_S = 60.0
LOADING_S = 540.0


@dataclass(frozen=True, slots=True)
class Drawn:
    """Ghost text at the moment it was drawn, and the text and place of the cursor under it."""

    row: int
    column: int
    line: str
    text: str
    is_insert_mode: bool


class Neovim:
    """One editor. `call` asks it with Lua; `type` presses keys and does not wait."""

    def __init__(self, program: Path, init: str, folder: Path, environment: dict[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / "init.lua"
        script.write_text(f"vim.opt.rtp:prepend('{PLUGIN}')\n{init}\n")
        # Caches stay where they are: models take a download, kernels half a minute.
        homes = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "STATE")}
        homes["SLIPSTREAM_MODEL_DIR"] = str(_model_dir(environment))
        argv = ["env", *(f"{k}={v}" for k, v in {**homes, **environment}.items())]
        argv += [str(program), "--embed", "--headless", "--clean", "-u", str(script)]
        self.vim = pynvim.attach("child", argv=argv)
        self.pid: int = self.vim.funcs.getpid()
        self.call(f"dofile('{DRAWN}')")

    def call(self, lua: str, *arguments: Any) -> Any:
        """Runs Lua; `...` in it are the arguments."""
        return self.vim.exec_lua(lua, *arguments)

    def type(self, keys: str) -> None:
        """Presses keys, in Neovim's notation, as fast as they come."""
        left = keys.encode()
        while left:
            left = left[self.vim.input(left) :]

    def until(self, lua: str, *arguments: Any, within_s: float = PATIENCE_S) -> Any:
        """The first value of a Lua chunk that is neither nil nor false."""
        value = first_true(lambda: self.call(lua, *arguments), within_s)
        if not value:
            screen = f"on the screen: {self.lines()!r}, {self.messages()}"
            raise TimeoutError(f"{lua} stayed false; {screen}; {self.call('return Drawn.state()')}")
        return value

    def edit(self, path: Path, *, line: int | None = None, column: int = 0) -> None:
        """Opens a file in normal mode, the cursor at a 0-based line and byte column."""
        self.type("<C-\\><C-n>")
        self.vim.command(f"edit! {path}")
        if line is not None:
            self.call("vim.api.nvim_win_set_cursor(0, {...})", line + 1, column)

    def wait_ready(self) -> None:
        """Waits until the client of the current buffer answers and the model is loaded."""
        self.until("return require('slipstream.client').of(vim.api.nvim_get_current_buf()) ~= nil")
        state = self.until(
            "local s = require('slipstream.status').get() return s.state ~= 'loading' and s.state",
            within_s=LOADING_S,
        )
        if state == "error":
            raise RuntimeError(self.call("return require('slipstream.status').get().message"))

    def ghost(self) -> str:
        """The ghost text on the screen, empty when there is none."""
        return self.call("return Drawn.text(0)")

    def wait_ghost(self) -> str:
        """The ghost text, once there is some and no newer answer is under way."""
        return self.until("return Drawn.is_settled() and Drawn.text(0) ~= '' and Drawn.text(0)")

    def wait_quiet(self) -> None:
        """Waits until every key is taken in and nothing is asked for any more."""
        self.until("return Drawn.is_settled()")

    def history(self) -> Sequence[Drawn]:
        """Every ghost text that was drawn since the last call."""
        rows = self.call("local all = Drawn.history; Drawn.history = {}; return all")
        return [Drawn(**row) for row in rows]

    def said(self) -> set[tuple[int, str]]:
        """The server's suggestions since the last call: the row, and the line with the suggestion in it."""
        rows = self.call("local all = Drawn.said; Drawn.said = {}; return all")
        return {(row["row"], row["text"]) for row in rows}

    def lines(self) -> list[str]:
        return list(self.vim.current.buffer[:])

    def cursor(self) -> tuple[int, int]:
        """0-based line and byte column."""
        row, column = self.vim.current.window.cursor
        return row - 1, column

    def messages(self) -> str:
        return str(self.vim.command_output("messages"))

    def close(self) -> None:
        """Ends the editor and with it the server."""
        # It may be gone before it could answer.
        with contextlib.suppress(OSError, EOFError):
            self.vim.command("qall!")
        self.vim.close()


def _model_dir(environment: dict[str, str]) -> Path:
    given = environment.get("SLIPSTREAM_MODEL_DIR") or os.environ.get("SLIPSTREAM_MODEL_DIR")
    return Path(given) if given else Path.home() / ".cache" / "slipstream" / "models"


Start = Callable[..., Neovim]
