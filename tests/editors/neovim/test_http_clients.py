"""Plugins that speak HTTP, in a real Neovim: the guide's own lines, ghost text, and what their keys accept.

`SLIPSTREAM_CLIENTS` names the folder that holds their sources.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from completion_engine.config import DEFAULT_TARGET
from tests.editors.neovim.editor import Neovim, Start
from tests.editors.programs import ROOT, client_source
from tests.hosts import Hosts
from tests.http_clients import HttpClient, http_process

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(900)]

SETTINGS = f'target = "{DEFAULT_TARGET}"\neagerness = 1\n'


@dataclass(frozen=True, slots=True)
class Client:
    """A plugin: the beginning of its lines in the guide, lines for keys, the namespace of its ghost text.

    `part` is the key that accepts a line, or a word if `is_word`.
    """

    name: str
    guide: str
    keys: str
    namespace: str
    part: str
    is_word: bool = False


CLIENTS = (
    Client(
        "minuet-ai.nvim",
        "require('minuet').setup",
        """
        local keys = { accept = '<Tab>', accept_line = '<M-Right>' }
        local own = { virtualtext = { auto_trigger_ft = { 'python' }, keymap = keys }, notify = 'warn' }
        local setup = require('minuet').setup
        require('minuet').setup = function(given) setup(vim.tbl_deep_extend('force', given, own)) end
        """,
        "minuet.virtualtext",
        "<M-Right>",
    ),
    Client(
        "cursortab.nvim",
        "require('cursortab').setup",
        """
        local setup = require('cursortab').setup
        require('cursortab').setup = function(given)
          -- Otherwise the suggestion is a window of its own.
          setup(vim.tbl_extend('force', given, { ui = { completions = { addition_style = 'highlight' } } }))
        end
        """,
        "cursortab",
        "<S-Tab>",
        is_word=True,
    ),
)


@pytest.fixture(scope="module", params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    return request.param  # type: ignore[no-any-return]  # pytest gives what is in `params`


@pytest.fixture(scope="module")
def http(project: Path, hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClient]:
    home = tmp_path_factory.mktemp("config")
    (home / "slipstream").mkdir()
    (home / "slipstream" / "config.toml").write_text(SETTINGS)
    index = str(tmp_path_factory.mktemp("index"))
    env = os.environ | hosts.env | {"XDG_CONFIG_HOME": str(home), "SLIPSTREAM_INDEX_DIR": index}
    with http_process(project, env=env) as http:
        yield http


@pytest.fixture(scope="module")
def editor(client: Client, start: Start, http: HttpClient) -> Neovim:
    """A Neovim with the plugin and the guide's lines for it."""
    source = client_source(client.name)
    guide = (ROOT / "editors" / "README.md").read_text()
    (lines,) = re.findall(rf"```lua\n({re.escape(client.guide)}.*?)```", guide, re.DOTALL)
    lines = lines.replace("127.0.0.1:8012", f"127.0.0.1:{http.port}")
    return start(f"vim.o.swapfile = false vim.opt.rtp:prepend('{source}')\n{client.keys}\n{lines}")


@pytest.fixture
def look(client: Client, editor: Neovim) -> Callable[[], str]:
    """Finds the ghost text of the cursor's line."""
    lua = """
        local space = vim.api.nvim_create_namespace(...)
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
          if mark[4].virt_text then
            return mark[4].virt_text[1][1]
          end
        end
        return ''
    """
    return lambda: str(editor.call(lua, client.namespace))


def test_tab_writes_what_is_shown(editor: Neovim, shown: str, model_says: str) -> None:
    assert model_says.startswith(shown.rstrip())
    editor.type("<Tab>")
    editor.until("return vim.fn.getline(6) ~= '    ret'")
    assert editor.lines()[5].startswith("    ret" + shown.rstrip())


def test_a_part_is_accepted(client: Client, editor: Neovim, shown: str) -> None:
    editor.type(client.part)
    editor.until("return vim.fn.getline(6) ~= '    ret'")
    part = shown.split(maxsplit=1)[0] if client.is_word else shown.rstrip()
    assert editor.lines()[5].rstrip() == f"    ret{part}"
