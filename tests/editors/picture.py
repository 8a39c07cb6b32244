"""Makes the pictures of editors/README.md: terminal editors with other plugins that show a suggestion.

Run as `python -m tests.editors.picture editors/pictures`, after `make editors`, with the plugins' sources in
the folder that `SLIPSTREAM_CLIENTS` names. Names after the folder choose some of them.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from completion_engine.config import DEFAULT_TARGET
from tests.editors.programs import ROOT, find
from tests.editors.terminal import Terminal, retype_until, until_shown
from tests.editors.test_guides import BEFORE, BIN, COPILOT_EL
from tests.hosts import own_hosts
from tests.http_clients import http_process

CLIENTS = Path(os.environ.get("SLIPSTREAM_CLIENTS", ""))
TITLES = {
    "copilot-vim-in-vim": "copilot.vim in Vim 9.0",
    "copilot-el-in-emacs": "copilot.el in Emacs 30",
    "llama-vim-in-neovim": "llama.vim in Neovim 0.12",
    "minuet-in-neovim": "minuet-ai.nvim in Neovim 0.12",
    "cursortab-in-neovim": "cursortab.nvim in Neovim 0.12",
    "neovim-built-in": "Neovim 0.12",
}
SIZE = (84, 22)
# The first suggestions on a cold model may be cut short by a plugin's deadline.
SHOWN = r'The perimeter\."""\n +(return\b.*height.*?) *$'
# Without them editors show a suggestion in the colour of the text.
COLOURS = {"TERM": "screen-256color", "COLORTERM": "truecolor"}
QUIET_EMACS = "(setq native-comp-jit-compilation nil inhibit-startup-screen t copilot-idle-delay 0)"
VIM = "set nocompatible noswapfile background=dark\nsyntax on\nfiletype plugin on\nhi Normal guibg=NONE\n"
NEOVIM = "vim.o.swapfile = false vim.o.background = 'dark' vim.cmd('highlight Normal guibg=NONE')\n"


def settings_of(name: str, port: int) -> tuple[list[str], str]:
    """The program of a picture, and the lines of its settings file."""
    guide = (ROOT / "editors" / "README.md").read_text(encoding="utf-8")
    lua = "\n".join(re.findall(r"```lua\n(.*?)```", guide, re.DOTALL)).replace("8012", str(port))
    neovim = [str(find("neovim-0.12", "nvim")), "--clean", "-u"]
    copilot_vim = (
        f"{VIM}set rtp^={CLIENTS / 'copilot.vim'}\nlet g:copilot_command = '{BIN / 'slipstream'}'\n"
        "let g:copilot_agent_command = g:copilot_command\n"
    )
    llama_vim = (
        f"{VIM}set rtp^={CLIENTS / 'llama.vim'}\n"
        f"let g:llama_config = {{'endpoint_fim': 'http://127.0.0.1:{port}/infill', 'show_info': 0}}\n"
    )
    builtin = lua[lua.index("vim.lsp.config('slipstream',") : lua.index("vim.keymap.set")]
    minuet, cursortab = lua[lua.index("require('minuet')") :].split("require('cursortab')")
    own = "require('minuet').setup({ virtualtext = { auto_trigger_ft = { 'python' } }, notify = false,"
    path = f"{NEOVIM}vim.opt.rtp:prepend('{CLIENTS}/%s.nvim')\n"
    emacs = (COPILOT_EL % (CLIENTS / "copilot.el")) + QUIET_EMACS
    return {
        "copilot-vim-in-vim": ([shutil.which("vim") or "vim", "-u"], copilot_vim),
        "copilot-el-in-emacs": ([str(find("emacs", "emacs")), "-nw", "-Q", "-l"], emacs),
        "llama-vim-in-neovim": (neovim, llama_vim),
        "minuet-in-neovim": (
            neovim,
            path % "minuet-ai" + minuet.replace("require('minuet').setup({", own),
        ),
        "cursortab-in-neovim": (neovim, f"{path % 'cursortab'}require('cursortab'){cursortab}"),
        "neovim-built-in": (neovim, NEOVIM + builtin),
    }[name]


def draw(name: str, target: Path) -> None:
    """Type `ret` in the editor until a suggestion is shown, and write the screen."""
    with tempfile.TemporaryDirectory(prefix="picture-") as made, own_hosts() as hosts:
        home, project = Path(made), Path(made) / "project"
        (home / "slipstream").mkdir()
        (home / "slipstream" / "config.toml").write_text(f'target = "{DEFAULT_TARGET}"\n')
        (project / ".git").mkdir(parents=True)
        (project / "shapes.py").write_text(BEFORE)
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        env = {
            **hosts.env, **COLOURS, "PATH": f"{BIN}{os.pathsep}{os.defpath}", "LANG": "C.UTF-8", "HOME": made,
            "XDG_CONFIG_HOME": made, "XDG_CACHE_HOME": cache, "SLIPSTREAM_INDEX_DIR": str(home / "index"),
        }  # fmt: skip
        with http_process(project, env={**os.environ, **env}) as http:
            argv, settings = settings_of(name, http.port)
            ending = {"emacs": "el", "nvim": "vim" if settings.startswith("set") else "lua"}
            file = home / f"init.{ending.get(Path(argv[0]).name, 'vim')}"
            file.write_text(settings)
            terminal = Terminal([*argv, str(file), str(project / "shapes.py")], home, env, SIZE)
            try:
                until_shown(terminal, "(Rectangle)")
                terminal.press(*(["M->"] if "emacs" in name else ["G", "A"]))
                # llama.vim keeps the first answer, for which it waits for 250 ms.
                shown = SHOWN.replace(".*height", "") if name.startswith("llama") else SHOWN
                retype_until(terminal, "ret", shown)
                terminal.screen()
                target.write_text(as_svg(terminal.looks, TITLES[name]), encoding="utf-8")
            finally:
                terminal.close()


def as_svg(looks: str, title: str) -> str:
    """A screen with its colours as SVG, without fonts from elsewhere."""
    console = Console(record=True, width=SIZE[0], file=io.StringIO())
    console.print(Text.from_ansi(looks.rstrip("\n")), soft_wrap=True)
    svg = re.sub(r"@font-face \{.*?\}\n", "", console.export_svg(title=title), flags=re.DOTALL)
    return svg.replace("Fira Code", "ui-monospace")


def main(folder: Path, names: list[str]) -> None:
    """Write a picture for each name."""
    folder.mkdir(exist_ok=True)
    for name in names or TITLES:
        draw(name, folder / f"{name}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
