"""Typing in a real Neovim with the real model: shown text, never shown text, written text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.editors.neovim.conftest import SHAPES
from tests.editors.neovim.editor import Neovim

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(900)]

PERIMETER = SHAPES.replace("    ret\n", "    |\n")

Write = Callable[..., Path]


def words_of(text: str) -> list[str]:
    """The parts in which a line is accepted word by word."""
    return re.findall(r"\s*(?:\w+|[^\w\s]+)", text)


def saved(editor: Neovim, path: Path) -> str:
    editor.type("<C-\\><C-n>")
    editor.vim.command("write")
    return path.read_bytes().decode()


def test_tab_writes_what_the_model_says(editor: Neovim, write: Write, model_says: str) -> None:
    path = write("shapes.py", PERIMETER)
    editor.type("ret")
    assert editor.wait_ghost() == model_says
    editor.type("<Tab>")
    editor.wait_quiet()
    assert saved(editor, path) == SHAPES.replace("ret\n", f"ret{model_says}\n")


def test_a_suggestion_is_there_on_entering_insert_mode(editor: Neovim, write: Write, model_says: str) -> None:
    write("shapes.py", PERIMETER)
    editor.type("re<Esc>")
    editor.wait_quiet()
    assert editor.ghost() == ""
    editor.type("a")
    assert editor.wait_ghost() == f"t{model_says}"


def test_accepting_is_one_step_to_undo(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.type("ret")
    editor.wait_ghost()
    editor.type("<Tab>")
    editor.wait_quiet()
    editor.type("  # done<Esc>u")
    editor.wait_quiet()
    assert editor.lines()[5].rstrip().endswith(")")
    editor.type("u")
    editor.wait_quiet()
    assert editor.lines()[5] == "    ret"


def test_words_are_accepted_one_by_one_and_the_rest_stays(
    editor: Neovim, write: Write, model_says: str
) -> None:
    write("shapes.py", PERIMETER)
    editor.type("ret")
    assert editor.wait_ghost() == model_says
    written = "    ret"
    assert len(words_of(model_says)) > 3
    for word in words_of(model_says)[:-1]:
        editor.type("<M-w>")
        editor.wait_quiet()
        written += word
        assert editor.lines()[5] == written
        assert written + editor.ghost() == f"    ret{model_says}"


def test_typing_goes_on_after_a_word_was_accepted(editor: Neovim, write: Write, model_says: str) -> None:
    write("shapes.py", PERIMETER)
    editor.type("ret")
    editor.wait_ghost()
    first, second, third, *_ = words_of(model_says)
    editor.type(f"<M-w>{second}")
    assert first + second + editor.wait_ghost() == model_says
    editor.type("<C-Right>")
    editor.wait_quiet()
    assert editor.lines()[5] == f"    ret{first}{second}{third}"


def test_a_line_is_accepted_alone(editor: Neovim, write: Write) -> None:
    write("loop.py", "def total(values):\n    |")
    editor.type("result = 0\n")
    ghost = editor.wait_ghost()
    assert "\n" in ghost
    editor.type("<M-l>")
    editor.wait_quiet()
    first, rest = ghost.split("\n", 1)
    assert editor.lines()[2] == "    " + first.strip()
    assert editor.ghost() == "\n" + rest
    editor.type("<M-l>")
    editor.wait_quiet()
    assert editor.lines()[3] == rest.split("\n")[0]


def test_what_is_shown_shrinks_with_each_key_and_never_goes(
    editor: Neovim, write: Write, model_says: str
) -> None:
    write("shapes.py", PERIMETER)
    editor.type("ret")
    editor.wait_ghost()
    editor.history()
    # New answers come late: the old suggestion, shrunk, stays on the screen.
    editor.call("Drawn.delays_ms = { 300, 300, 300, 300, 300 }")
    for number, key in enumerate(model_says[:5], start=1):
        editor.type("<Space>" if key == " " else key)
        editor.until("return vim.api.nvim_get_current_line() == ...", f"    ret{model_says[:number]}")
        assert editor.ghost() == model_says[number:]


def test_a_key_that_says_something_else_clears_it_at_once(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.type("ret")
    editor.wait_ghost()
    editor.call("Drawn.delays_ms = { 400 }")
    editor.type("x")
    editor.until("return vim.api.nvim_get_current_line() == '    retx'")
    assert editor.ghost() == ""


@pytest.mark.parametrize("delays_ms", [[], [400, 20, 300, 10, 200, 0, 500, 30], [150] * 40])
def test_every_text_that_is_drawn_was_said_for_the_line_under_it(
    editor: Neovim, write: Write, delays_ms: list[int]
) -> None:
    write("shapes.py", PERIMETER)  # the text for the bare line stays drawn
    editor.call("Drawn.delays_ms = ...", delays_ms)
    keys = ["retu", "rn ", "width", "<BS><BS>", "dth +", "<Esc>A", " heig", "<BS><BS><BS>", "3 * (", "x"]
    for number, burst in enumerate(keys):
        editor.type(burst)
        editor.vim.funcs.wait(40 + 60 * (number % 3), False) if number % 2 else None
    editor.wait_quiet()
    said, history = editor.said(), editor.history()
    assert said
    for drawn in history:
        assert drawn.is_insert_mode
        assert drawn.column == len(drawn.line.encode())
        assert (drawn.row, drawn.line + drawn.text) in said


def test_an_answer_that_comes_late_shows_the_rest_of_what_was_typed_along(
    editor: Neovim, write: Write, model_says: str
) -> None:
    write("shapes.py", PERIMETER)
    editor.call("require('slipstream.config').get().debounce_ms = 150")
    try:
        editor.call("Drawn.delays_ms = { 600 }")
        editor.type("ret")
        editor.until("return Drawn.num_held == 1")
        editor.call("require('slipstream.config').get().debounce_ms = 60000")
        editor.type("ur")
        editor.until("return Drawn.num_held == 0")
        assert "ur" + editor.wait_ghost() == model_says
    finally:
        editor.call("require('slipstream.config').get().debounce_ms = 0")


def test_a_new_line_is_asked_about_at_once(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.call("require('slipstream.config').get().debounce_ms = 600000")
    try:
        editor.call("Drawn.delays_ms = { 100 }")
        editor.type("<CR>")
        editor.until("return Drawn.num_held == 1")
        editor.until("return Drawn.num_held == 0")
    finally:
        editor.call("require('slipstream.config').get().debounce_ms = 0")


def test_candidates_go_round(editor: Neovim, write: Write, model_says: str) -> None:
    write("shapes.py", PERIMETER)
    editor.type("ret")
    assert editor.wait_ghost() == model_says
    editor.type("<M-]>")
    second = editor.until("return Drawn.is_settled() and Drawn.text(0) ~= ... and Drawn.text(0)", model_says)
    editor.type("<M-[>")
    assert editor.until("return Drawn.is_settled() and Drawn.text(0) == ... and Drawn.text(0)", model_says)
    editor.type("<M-]><Tab>")
    editor.wait_quiet()
    assert "\n".join(editor.lines()[5:]) == f"    ret{second}"


def test_dismissed_is_gone_until_the_next_key(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.type("ret")
    editor.wait_ghost()
    editor.type("<C-]>")
    editor.until("return Drawn.text(0) == ''")
    editor.type("u")
    assert editor.wait_ghost().startswith("rn")


def test_no_bracket_is_left_over_where_pairs_are_closed(editor: Neovim, write: Write) -> None:
    path = write("call.py", "def area(width, height):\n    return width * height\n\n\ntotal = |\n")
    editor.vim.command("inoremap <buffer> ( ()<Left>")
    editor.type("sum(area(")
    assert editor.wait_ghost()
    editor.type("<Tab>")
    editor.wait_quiet()
    line = saved(editor, path).splitlines()[4]
    assert line.count("(") == line.count(")")
    compile(line, "call.py", "exec")


def test_the_ghost_stays_where_a_pair_is_typed_along(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.type("return 2 * ")
    assert editor.wait_ghost() == "(width + height)"
    editor.vim.command("inoremap <buffer> ( ()<Left>")
    editor.call("Drawn.delays_ms = { 500 }")
    editor.type("(")
    editor.until("return vim.api.nvim_get_current_line() == '    return 2 * ()'")
    assert editor.ghost() == "width + height"
    editor.type("<Tab>")
    editor.wait_quiet()
    assert editor.lines()[5] == "    return 2 * (width + height)"


@pytest.mark.parametrize("before", ['name = "é🙂漢"; ', "漢字 = 1; é = 2; "])
def test_dos_files_and_wide_characters_come_out_right(editor: Neovim, write: Write, before: str) -> None:
    text = f"def perimeter(width, height):\n    {before}|\n"
    path = write("wide.py", text, newline="\r\n")
    assert editor.call("return vim.bo.fileformat") == "dos"
    editor.type("return 2 * (wid")
    ghost = editor.wait_ghost()
    editor.type("<Tab>")
    editor.wait_quiet()
    expected = text.replace("|", f"return 2 * (wid{ghost}").replace("\n", "\r\n")
    assert saved(editor, path) == expected


def test_lines_of_a_dos_file_are_accepted_without_stray_characters(editor: Neovim, write: Write) -> None:
    path = write("loop.py", "def total(values):\n    |", newline="\r\n")
    editor.type("result = 0\n")
    ghost = editor.wait_ghost()
    assert "\n" in ghost
    assert "\r" not in ghost
    editor.type("<Tab>")
    editor.wait_quiet()
    body = f"def total(values):\n    result = 0\n    {ghost}\n"
    assert saved(editor, path) == body.replace("\n", "\r\n")


def test_indenting_and_wrapping_options_change_nothing(editor: Neovim, write: Write) -> None:
    write("loop.py", "def total(values):\n    |")
    editor.call("vim.bo.textwidth = 10; vim.bo.autoindent = true; vim.bo.smartindent = true")
    editor.call("vim.bo.expandtab = false; vim.bo.formatoptions = 'tcqa'")
    editor.type("x = 0\n")
    assert "\n" in editor.wait_ghost()
    editor.type("<Tab>")
    editor.until("return Drawn.text(0) == ''")
    lines = editor.lines()
    assert any("\n".join(lines[row:]) == text for row, text in editor.said())


def test_the_completion_menu_hides_it_and_it_comes_back(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.type("return w")
    assert editor.wait_ghost()
    editor.vim.command("set completeopt=menuone")
    editor.type("<C-x><C-n>")
    editor.until("return vim.fn.pumvisible() == 1")
    assert editor.ghost() == ""
    editor.type("<C-e>")
    editor.until("return vim.fn.pumvisible() == 0")
    assert editor.wait_ghost()


def test_nothing_is_suggested_while_a_block_is_changed(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.type("<Esc>gg0<C-v>jIret")
    editor.wait_quiet()
    assert editor.history() == []
    editor.type("<Esc>GAret")
    assert editor.wait_ghost()


def test_nothing_is_suggested_in_a_macro_or_a_read_only_buffer(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.type("<Esc>qqAret")
    editor.wait_quiet()
    assert editor.ghost() == ""
    editor.type("<Esc>q")
    editor.call("vim.bo.readonly = true")
    editor.type("Au")
    editor.wait_quiet()
    assert editor.ghost() == ""
    assert editor.history() == []
