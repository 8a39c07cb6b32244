"""The next edit in the real sidekick.nvim, a client of other servers.

`SLIPSTREAM_CLIENTS` names the folder that holds its source.
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
# The client must have a name that holds "copilot".
INIT = f"""
vim.o.swapfile = false
vim.opt.rtp:prepend('%s')
vim.lsp.config('slipstream-copilot', {{
  cmd = {{ '{SERVER}', 'serve', '--stdio', '--shared' }},
  init_options = {{ target = '{DEFAULT_TARGET}' }},
}})
vim.lsp.enable('slipstream-copilot')
require('sidekick').setup({{ nes = {{ enabled = true }}, cli = {{ watch = false }} }})
require('sidekick.nes').enable(true)
"""
# Before that the server has no edits to propose, and sidekick does not ask again.
READY = """
local client = vim.lsp.get_clients({ bufnr = 0, name = 'slipstream-copilot' })[1]
local stats = client and client:request_sync('slipstream/stats', vim.empty_dict(), 10000)
return stats and stats.result and stats.result.state == 'ready'
"""
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
    return start(INIT % client_source("sidekick.nvim"))


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
        tick = sidekick.call("return { vim.b.changedtick, vim.api.nvim_win_get_cursor(0) }")
        sidekick.call("require('sidekick').nes_jump_or_apply()")
        sidekick.until(
            "local tick, cursor = ... return vim.b.changedtick ~= tick"
            " or not vim.deep_equal(vim.api.nvim_win_get_cursor(0), cursor)",
            *tick,
        )
    sidekick.vim.command("write")
    assert path.read_text() == story.after
