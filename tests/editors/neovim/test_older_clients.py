"""Plugins written for another server, in a real Neovim: they show, cycle and accept our suggestions.

`SLIPSTREAM_CLIENTS` names the folder that holds their sources.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from completion_engine.config import DEFAULT_TARGET
from tests.editors.neovim.editor import SERVER, Neovim, Start
from tests.editors.programs import client_source
from tests.waiting import first_true

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(900)]


@dataclass(frozen=True, slots=True)
class Client:
    """A plugin: the lines that a user writes for it, the suggestion that it shows, and its state."""

    name: str
    init: str
    shown: str
    state: str


CLIENTS = (
    Client(
        "copilot.vim",
        f"vim.g.copilot_command = '{SERVER}' vim.g.copilot_agent_command = '{SERVER}'",
        "vim.fn['copilot#GetDisplayedSuggestion']().text",
        "vim.fn.execute('Copilot status')",
    ),
    Client(
        "copilot.lua",
        f"""
        require('copilot').setup({{
          server = {{ type = 'binary', custom_server_filepath = '{SERVER}' }},
          suggestion = {{ auto_trigger = true, keymap = {{ accept = '<Tab>', accept_word = '<M-Right>' }} }},
        }})
        """,
        """(function()
          local found = require('copilot.suggestion')
          if not found.is_visible() then
            return ''
          end
          local space = vim.api.nvim_get_namespaces()['copilot.suggestion']
          local mark = vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })[1]
          return mark and mark[4].virt_text[1][1] or ''
        end)()""",
        "require('copilot.status').data.status:gsub('Normal', 'Ready')",
    ),
)
SETTINGS = f"""
target = "{DEFAULT_TARGET}"
deadlineMs = 0
patienceMs = 60000
eagerness = 1
"""


@pytest.fixture(scope="module", params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    return request.param  # type: ignore[no-any-return]  # pytest gives what is in `params`


@pytest.fixture(scope="module")
def editor(client: Client, start: Start, project: Path, tmp_path_factory: pytest.TempPathFactory) -> Neovim:
    """A Neovim with the plugin, and with nothing of ours but the server."""
    source = client_source(client.name)
    home = tmp_path_factory.mktemp("config")
    (home / "slipstream").mkdir()
    (home / "slipstream" / "config.toml").write_text(SETTINGS)
    init = f"vim.o.swapfile = false vim.opt.rtp:prepend('{source}')\n{client.init}"
    editor = start(init, XDG_CONFIG_HOME=str(home))
    editor.edit(project / "any.py")
    editor.until(f"return ({client.state}):find('Ready') ~= nil", within_s=540)
    return editor


@pytest.fixture
def look(client: Client, editor: Neovim) -> Callable[[], str]:
    """Finds the suggestion on the screen."""
    return lambda: str(editor.call(f"return {client.shown}")).rstrip()


def test_tab_writes_what_is_shown(editor: Neovim, shown: str, model_says: str) -> None:
    assert shown == model_says
    editor.type("<Tab>")
    editor.until("return vim.fn.getline(6) ~= '    ret'")
    assert editor.lines()[5] == "    ret" + model_says


def test_a_word_is_accepted(editor: Neovim, shown: str) -> None:
    editor.type("<M-Right>")
    editor.until("return vim.fn.getline(6) ~= '    ret'")
    assert editor.lines()[5].rstrip() == "    return"


def test_another_suggestion_can_be_chosen(editor: Neovim, look: Callable[[], str], shown: str) -> None:
    editor.type("<M-]>")
    assert first_true(lambda: {look()} - {"", shown}, 60)
