"""A suggestion that the deadline cut grows in a real Neovim without a key, and the cursor stays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from completion_engine.config import DEFAULT_TARGET
from tests.editors.neovim.conftest import SHAPES
from tests.editors.neovim.editor import SERVER, Neovim, Start

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(900)]

# The first answer is cut after its first word or two; the whole text is the one without a deadline.
SETTINGS = f"{{ target = '{DEFAULT_TARGET}', deadlineMs = 1, patienceMs = 60000, eagerness = 1 }}"
INIT = (
    "vim.o.swapfile = false\n"
    f"require('slipstream').setup({{ cmd = '{SERVER}', debounce_ms = 0, settings = {SETTINGS} }})"
)
BEFORE = SHAPES.replace("    ret\n", "    \n")
ROW = BEFORE.count("\n", 0, BEFORE.rindex("    \n")) + 1
HURRIED = "hurried.py"


@pytest.fixture(scope="module")
def hurried(start: Start, project: Path) -> Neovim:
    """An editor whose answers are cut."""
    editor = start(INIT)
    path = project / HURRIED
    path.write_text(BEFORE)
    editor.edit(path)
    editor.wait_ready()
    return editor


@pytest.fixture
def opened(hurried: Neovim, project: Path) -> Callable[[], None]:
    """Opens the file anew, and types up to the cut answer."""

    def make() -> None:
        hurried.type("<C-\\><C-n>")
        hurried.vim.command("silent! %bwipeout!")
        (project / HURRIED).write_text(BEFORE)
        hurried.edit(project / HURRIED)
        hurried.until("return require('slipstream.client').of(vim.api.nvim_get_current_buf()) ~= nil")
        hurried.call("vim.api.nvim_win_set_cursor(0, {...})", ROW, 4)
        hurried.history()
        hurried.type("Aret")

    return make


def test_the_ghost_text_grows_to_the_whole_without_a_key(
    hurried: Neovim, opened: Callable[[], None], model_says: str
) -> None:
    opened()
    hurried.until("return Drawn.text(0) == ...", model_says)
    assert hurried.cursor() == (ROW - 1, 7)
    texts = [drawn.text for drawn in hurried.history() if drawn.text and not drawn.text.startswith("ret")]
    assert len(set(texts)) <= 4
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))


def test_nothing_grows_after_escape(hurried: Neovim, opened: Callable[[], None]) -> None:
    opened()
    hurried.type("<Esc>")
    hurried.wait_quiet()
    assert hurried.ghost() == ""
    hurried.type("A")
    hurried.wait_ghost()


def test_nothing_is_requested_while_a_menu_is_open_or_for_another_text(hurried: Neovim) -> None:
    asked = hurried.call(
        """
        local growth, request = require('slipstream.growth'), require('slipstream.request')
        local client = require('slipstream.client').of(0)
        local asked, again, was_empty, visible = 0, request.again, request.was_empty, vim.fn.pumvisible
        request.again = function() asked = asked + 1 end
        request.was_empty = function() return true end
        local mode = vim.api.nvim_get_mode
        vim.api.nvim_get_mode = function() return { mode = 'i' } end
        local row, column = unpack(vim.api.nvim_win_get_cursor(0))
        local function grew(version, character)
          growth.grew({
            textDocument = {
              uri = vim.uri_from_bufnr(0),
              version = vim.lsp.util.buf_versions[vim.api.nvim_get_current_buf()] + version,
            },
            position = { line = row - 1, character = column + character },
          }, client)
        end
        local counts = {}
        for _, case in ipairs({ { 0, 0 }, { 1, 0 }, { 0, 1 } }) do
          asked = 0
          grew(unpack(case))
          counts[#counts + 1] = asked
        end
        vim.fn.pumvisible = function() return 1 end
        asked = 0
        grew(0, 0)
        counts[#counts + 1] = asked
        vim.fn.pumvisible, vim.api.nvim_get_mode = visible, mode
        request.again, request.was_empty = again, was_empty
        return counts
        """
    )
    assert asked == [1, 0, 0, 0]


def test_a_notification_that_crosses_a_request_by_a_key_does_not_replace_it(hurried: Neovim) -> None:
    kinds = hurried.call(
        """
        local request, client = require('slipstream.request'), require('slipstream.client').of(0)
        local kinds, send = {}, client.request
        client.request = function(self, method, params, ...)
          kinds[#kinds + 1] = params.context.triggerKind
          return send(self, method, params, ...)
        end
        request.invoke()
        request.again()
        client.request = send
        return kinds
        """
    )
    assert kinds == [1]
