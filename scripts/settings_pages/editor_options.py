"""The settings that only an editor has: those of the VS Code extension and of the Neovim plugin.

The settings of the server are in lsp_server/workspace/settings.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# How the Neovim plugin checks a value; lua/slipstream/config.lua has a check for each.
Kind = Literal["command", "boolean", "switches", "keymaps", "milliseconds", "strings", "restart", "table"]


@dataclass(frozen=True, slots=True)
class VSCodeOption:
    """A setting of the extension. `schema` is its JSON Schema without the default."""

    key: str
    sentence: str
    default: Any
    schema: Mapping[str, Any]
    page: Literal["Suggestions", "Server"] | None = None  # None for one that only settings.json holds
    is_machine_wide: bool = True


@dataclass(frozen=True, slots=True)
class NeovimOption:
    """An option of `require('slipstream').setup()`. `example` is Lua code for the help."""

    name: str
    lua_type: str
    sentence: str
    default: Any
    kind: Kind | tuple[str, ...]  # or the texts to choose from
    example: str = ""
    is_advanced: bool = False
    fields: Mapping[str, str] = field(default_factory=dict)  # the Lua types of a table's entries


_TEXTS = {"type": "array", "items": {"type": "string"}}

VSCODE_OPTIONS = (
    VSCodeOption(
        "editor.enabled",
        "Show suggestions. When you switch this off, the server stops after a minute and frees its memory.",
        True,
        {"type": "boolean"},
        "Suggestions",
        is_machine_wide=False,
    ),
    VSCodeOption(
        "server.command",
        "The program that runs the server, with its arguments, for example"
        ' `["/opt/slipstream/bin/slipstream", "serve", "--stdio"]`. When it is empty, Slipstream finds the'
        " server or installs one.",
        [],
        _TEXTS,
        "Server",
    ),
    VSCodeOption(
        "server.python",
        "The Python interpreter (3.11 to 3.14) that runs the server or creates its environment. When it is"
        " empty, Slipstream finds one.",
        "",
        {"type": "string"},
        "Server",
    ),
    VSCodeOption(
        "server.pipArguments",
        "More arguments for pip when it installs the server or downloads a model, for example"
        ' `["--proxy", "http://proxy:8080"]`.',
        [],
        _TEXTS,
    ),
    VSCodeOption(
        "sharedEngine",
        "Share one server process between all windows, so that a further window is ready at once. When you"
        " switch it off, each window starts its own. A `server.command` says `--shared` itself.",
        True,
        {"type": "boolean"},
    ),
    VSCodeOption(
        "trace.server",
        "The detail of the log of messages to and from the server at the log level Trace: `off`, `messages`,"
        " `compact` or `verbose`.",
        "messages",
        {"type": "string"},
    ),
)

NEOVIM_OPTIONS = (
    NeovimOption(
        "cmd",
        "string|string[]",
        "The server's program, or a list of the program and its arguments. Neovim looks it up on the PATH. To"
        " use a program in a virtual environment, name it here.",
        "slipstream",
        "command",
        "cmd = '~/slipstream/.venv/bin/slipstream'",
    ),
    NeovimOption(
        "enabled",
        "boolean",
        "Suggest when Neovim starts. `vim.b.slipstream_enabled` sets it for one buffer.",
        True,
        "boolean",
    ),
    NeovimOption(
        "auto_trigger",
        "boolean",
        "Suggest while you type. When it is false, |:Slipstream-trigger| and the `next` key ask for a"
        " suggestion.",
        True,
        "boolean",
    ),
    NeovimOption(
        "filetypes",
        "table<string, boolean>",
        "Filetypes to switch on or off. '*' means every filetype that is not named.",
        {},
        "switches",
        "filetypes = { ['*'] = false, python = true }",
    ),
    NeovimOption(
        "keymaps",
        "slipstream.Keymaps|false",
        "Keys, see |slipstream-keys|: a key, a list of keys, or false for none."
        " `keymaps = false` sets no key at all.",
        {
            "accept": "<Tab>",
            "accept_word": ["<C-Right>", "<M-w>"],
            "accept_line": "<M-l>",
            "next": "<M-]>",
            "previous": "<M-[>",
            "dismiss": "<C-]>",
            "edit": "<Tab>",
            "dismiss_edit": "<Esc>",
        },
        "keymaps",
        fields=dict.fromkeys(
            ("accept", "accept_word", "accept_line", "next", "previous", "dismiss", "edit", "dismiss_edit"),
            "string|string[]|false",
        ),
    ),
    NeovimOption(
        "settings",
        "table",
        "The server's settings, see |slipstream-server-settings|.",
        {},
        "table",
        "settings = { maxTokens = 32, suggestInComments = false }",
    ),
    NeovimOption(
        "shared_engine",
        "boolean",
        "Share one server process between all editors, so that a second Neovim is ready at once. The process"
        " ends a minute after the last editor. It has no effect where `cmd` is a list: that says `--shared`"
        " itself.",
        True,
        "boolean",
        is_advanced=True,
    ),
    NeovimOption(
        "ghost",
        "'own'|'builtin'",
        "'own': this plugin draws the ghost text. 'builtin': `vim.lsp.inline_completion` of Neovim 0.12 draws"
        " it, which waits 200 ms after each key.",
        "own",
        ("own", "builtin"),
        is_advanced=True,
    ),
    NeovimOption(
        "debounce_ms",
        "integer",
        "How long to wait after a key before asking for a suggestion (ms). An empty line has no wait.",
        0,
        "milliseconds",
        is_advanced=True,
    ),
    NeovimOption(
        "popup_menu",
        "'hide'|'show'",
        "'hide': hide the ghost text while the completion menu is visible. 'show': show both.",
        "hide",
        ("hide", "show"),
        is_advanced=True,
    ),
    NeovimOption(
        "in_macros",
        "boolean",
        "Suggest while a macro is recorded or executed.",
        False,
        "boolean",
        is_advanced=True,
    ),
    NeovimOption(
        "root_markers",
        "string[]",
        "Files and folders that mark the root of a project.",
        [".slipstream.toml", ".git", ".hg", "pyproject.toml", "package.json", "Cargo.toml"],
        "strings",
        is_advanced=True,
    ),
    NeovimOption(
        "restart",
        "slipstream.Restart",
        "The number of restarts in a row after crashes, and the wait before the first one."
        " Each further wait is twice as long. A minute without a crash sets the count back.",
        {"max_attempts": 5, "first_delay_ms": 500},
        "restart",
        is_advanced=True,
        fields={"max_attempts": "integer", "first_delay_ms": "integer"},
    ),
)

# The server's settings that an option of the Neovim plugin replaces.
NEOVIM_REPLACES = {"trigger": "auto_trigger", "languages": "filetypes"}
