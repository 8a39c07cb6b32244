"""The next edit in the real sidekick.nvim and cursortab.nvim, clients of other servers.

`SLIPSTREAM_CLIENTS` names the folder that holds their sources.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from completion_engine.config import DEFAULT_TARGET
from tests.editors.edit_stories import STORIES, Story
from tests.editors.neovim.editor import LOADING_S, SERVER, Neovim, Start
from tests.editors.programs import client_source

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(900)]

MAX_STEPS = 24
# Stories of one command: sidekick asks after each.
RENAMES = [story for story in STORIES if story.keys.count("<CR>") == 1]
# sidekick looks for a client whose name holds "copilot", and cursortab for one that is named so.
SERVER_OF = f"""
vim.o.swapfile = false
vim.opt.rtp:prepend('%s')
vim.lsp.config('copilot', {{
  cmd = {{ '{SERVER}', 'serve', '--stdio', '--shared' }},
  init_options = {{ target = '{DEFAULT_TARGET}' }},
}})
vim.lsp.enable('copilot')
"""
SIDEKICK = f"""{SERVER_OF}
require('sidekick').setup({{ nes = {{ enabled = true }}, cli = {{ watch = false }} }})
require('sidekick.nes').enable(true)
"""
CURSORTAB = f"""{SERVER_OF}
require('cursortab').setup({{ log_level = 'debug', provider = {{ type = 'copilot' }} }})
vim.g.num_shown = 0
for _, name in ipairs({{ 'on_completion_ready', 'on_cursor_prediction_ready' }}) do
  local show = require('cursortab')[name]
  require('cursortab')[name] = function(...)
    show(...)
    vim.g.num_shown = vim.g.num_shown + 1
  end
end
"""
# Before that the server has no edits to propose, and sidekick does not ask again.
READY = """
local client = vim.lsp.get_clients({ bufnr = 0, name = 'copilot' })[1]
local stats = client and client:request_sync('slipstream/stats', vim.empty_dict(), 10000)
return stats and stats.result and stats.result.state == 'ready'
"""
STATE = "return { vim.b.changedtick, vim.api.nvim_win_get_cursor(0) }"
CHANGED = f"return not vim.deep_equal({{ ... }}, (function() {STATE} end)())"
# Sidekick asks after a pause. Wait until a request was answered and none is on its way.
SETTLED = """
local nes = require('sidekick.nes')
return vim.fn.getchar(1) == 0 and Drawn.is_next_edit_settled() and next(nes._requests) == nil
"""


@pytest.fixture(scope="module")
def sidekick(start: Start, version: str) -> Neovim:
    """A Neovim with sidekick.nvim and without our plugin's setup."""
    if version == "0.11":
        pytest.skip("sidekick drops every answer without a `request_id`, which Neovim 0.11 does not pass")
    return start(SIDEKICK % client_source("sidekick.nvim"))


@pytest.mark.parametrize("story", RENAMES, ids=lambda story: story.name)
def test_sidekick_makes_the_rest_of_a_rename(sidekick: Neovim, project: Path, story: Story) -> None:
    path = project / story.file
    path.write_text(story.before)
    sidekick.edit(path)
    sidekick.until(READY, within_s=LOADING_S)
    sidekick.type(story.keys)
    sidekick.until("return vim.b.changedtick > 2")
    for _ in range(MAX_STEPS):
        sidekick.until(SETTLED)
        if not sidekick.call("return require('sidekick.nes').have()"):
            break
        state = sidekick.call(STATE)
        sidekick.call("require('sidekick').nes_jump_or_apply()")
        sidekick.until(CHANGED, *state)
    sidekick.vim.command("write")
    assert path.read_text() == story.after


# cursortab asks where the text differs from the one that it has seen saved, which its log says.
CURSORTAB_SAW = """
for _, file in ipairs(vim.fn.glob(vim.fn.stdpath('state') .. '/cursortab/*.log', true, true)) do
  if table.concat(vim.fn.readfile(file)):find('after event: file_saved', 1, true) then
    return true
  end
end
"""
CURSORTAB_SHOWS = """
local ui = require('cursortab.ui')
return vim.g.num_shown > ... and (ui.has_completion() or ui.has_cursor_prediction())
"""


def test_cursortab_makes_the_rest_of_a_rename(start: Start, project: Path) -> None:
    cursortab, story = start(CURSORTAB % client_source("cursortab.nvim")), RENAMES[0]
    path = project / story.file
    path.write_text(story.before)
    cursortab.vim.command("file none")  # it looks once at the filetype of a buffer
    cursortab.edit(path)
    cursortab.until(READY, within_s=LOADING_S)
    cursortab.until("return require('cursortab.daemon').get_channel_status().connected")
    cursortab.vim.command("write")
    cursortab.until(CURSORTAB_SAW)
    num_shown = 0
    cursortab.type(story.keys)
    while "\n".join([*cursortab.lines(), ""]) != story.after:
        cursortab.until(CURSORTAB_SHOWS, num_shown)
        num_shown, state = cursortab.call("return vim.g.num_shown"), cursortab.call(STATE)
        cursortab.type("<Tab>")
        cursortab.until(CHANGED, *state)
