"""The plugin's parts in a real Neovim without a server: options, keys, commands, the algebra, its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvim
import pytest

from scripts.release import help_tags
from tests.editors.neovim.editor import PLUGIN, Neovim, Start


@pytest.fixture
def editor(bare: Neovim) -> Neovim:
    """The bare editor with an empty buffer and no mappings of an earlier test."""
    bare.type("<C-\\><C-n>")
    bare.call(
        """
        DefaultTab = DefaultTab or vim.fn.maparg('<Tab>', 'i', false, true)
        vim.cmd('silent! only | enew! | imapclear | messages clear')
        vim.fn.mapset('i', false, DefaultTab)
        """
    )
    return bare


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("{ gost = 'own' }", "there is no option gost. The options are: auto_trigger, cmd,"),
        ("{ ghost = 'mine' }", "ghost must be one of 'own', 'builtin', not \"mine\""),
        ("{ debounce_ms = -1 }", "debounce_ms must be a whole number of milliseconds, 0 or more, not -1"),
        ("{ keymaps = { acept = '<Tab>' } }", "there is no option keymaps.acept"),
        (
            "{ keymaps = { accept = 3 } }",
            "keymaps.accept must be a key like '<Tab>', a list",
        ),
        ("{ filetypes = { python = 'no' } }", "filetypes must be a table like { python = true"),
        ("{ cmd = {} }", "cmd must be a program's name, or a list"),
        ("{ restart = { max_attempts = 0.5 } }", "restart.max_attempts must be a whole number"),
        ("3", "the options must be a table, not 3."),
    ],
)
def test_a_bad_option_is_named(editor: Neovim, options: str, said: str) -> None:
    with pytest.raises(pynvim.NvimError) as raised:
        editor.call(f"require('slipstream').setup({options})")
    assert said in str(raised.value)


def test_a_program_that_is_not_there_is_told(editor: Neovim) -> None:
    editor.call("require('slipstream').setup({ cmd = '/nowhere/slipstream' })")
    assert "the program /nowhere/slipstream does not exist." in editor.messages()


def test_builtin_ghost_text_needs_the_newer_neovim(editor: Neovim, version: str) -> None:
    editor.call("require('slipstream').setup({ ghost = 'builtin', cmd = 'true' })")
    assert ("needs Neovim 0.12" in editor.messages()) == (version == "0.11")
    editor.call("vim.lsp.enable('slipstream', false)")


def test_commands_complete_themselves_and_their_arguments(editor: Neovim) -> None:
    def completed(line: str) -> list[str]:
        return list(editor.vim.funcs.getcompletion(line, "cmdline"))

    assert {"enable", "why", "stats", "purge", "restart"} <= set(completed("Slipstream "))
    assert completed("Slipstream sn") == ["snooze"]
    assert completed("Slipstream accept ") == ["all", "word", "line"]
    assert completed("Slipstream why x") == []


def test_an_unknown_command_is_told_with_those_there_are(editor: Neovim) -> None:
    editor.call("pcall(vim.cmd.Slipstream, 'frobnicate')")
    assert "there is no command frobnicate. The commands are: accept, disable" in editor.messages()


@pytest.fixture
def keys(editor: Neovim) -> Callable[[str], str]:
    """Sets the plugin's keys over existing mappings, types, and returns the resulting line."""

    def typed(mappings: str, text: str = "a<Tab>b") -> str:
        editor.vim.command("enew!")
        editor.call("vim.api.nvim_exec2(...)", mappings, {})
        editor.call("require('slipstream.keymaps').set(vim.api.nvim_get_current_buf())")
        editor.type(f"i{text}<Esc>")
        editor.until("return vim.api.nvim_get_mode().mode == 'n'")
        return "\n".join(editor.lines())

    return typed


@pytest.mark.parametrize(
    ("mappings", "line"),
    [
        ("", "a\tb"),
        ("inoremap <Tab> xyz", "axyzb"),
        ("inoremap <buffer> <Tab> xyz", "axyzb"),
        ("inoremap <expr> <Tab> repeat('z', 2)", "azzb"),
        ("imap <Tab> <C-l>\ninoremap <C-l> deep", "adeepb"),
        ("imap <Tab> <Tab>x", "a\txb"),
        (
            "lua vim.keymap.set('i', '<Tab>', function() vim.api.nvim_put({ 'lua' }, 'c', false, true) end)",
            "aluab",
        ),
        ("lua vim.keymap.set('i', '<Tab>', function() return '<Space>' end, { expr = true })", "a b"),
        ("inoremap <Tab> <Cmd>call setline(2, 'below')<CR>", "ab\nbelow"),
    ],
)
def test_without_a_suggestion_tab_does_what_it_did(
    keys: Callable[..., str], mappings: str, line: str
) -> None:
    assert keys(mappings) == line


def test_tab_still_jumps_in_a_snippet(keys: Callable[..., str], editor: Neovim) -> None:
    keys("", "")
    editor.type("i<Cmd>lua vim.snippet.expand('f(${1:a}, ${2:b})$0')<CR>")
    editor.until("return vim.api.nvim_get_mode().mode == 's'")
    editor.type("one<Tab>")
    editor.until("return vim.api.nvim_get_mode().mode == 's'")
    editor.type("two<Tab>;<Esc>")
    editor.until("return vim.api.nvim_get_mode().mode == 'n'")
    assert editor.lines() == ["f(one, two);"]


def test_a_mapping_made_later_for_all_buffers_is_respected(keys: Callable[..., str], editor: Neovim) -> None:
    keys("", "")
    editor.vim.command("inoremap <Tab> late")
    editor.type("i<Tab><Esc>")
    editor.until("return vim.api.nvim_get_mode().mode == 'n'")
    assert editor.lines() == ["late"]


def test_removing_the_keys_puts_back_what_was_there(keys: Callable[..., str], editor: Neovim) -> None:
    keys("inoremap <buffer> <Tab> xyz", "")
    editor.call("require('slipstream.keymaps').remove(vim.api.nvim_get_current_buf())")
    assert editor.call("return vim.fn.maparg('<Tab>', 'i')") == "xyz"
    assert editor.call("return vim.fn.maparg('<M-w>', 'i')") == ""


def aligned(editor: Neovim, line: str, replaced: str) -> list[tuple[str, bool]] | None:
    found = editor.call("return require('slipstream.suggestion').align(...)", line, replaced)
    return None if found is None else [(part["text"], part["is_kept"]) for part in found]


@pytest.mark.parametrize(
    ("line", "replaced", "segments"),
    [
        ("a, b):", ")", [("a, b", False), (")", True), (":", False)]),
        ("x", "", [("x", False)]),
        ("é])", "])", [("é", False), ("]", True), (")", True)]),
        ("漢字", "字", [("漢", False), ("字", True)]),
        ("abc", ")", None),
        (")(", "()", None),
    ],
)
def test_what_stays_in_the_line_is_found_in_the_suggestion(
    editor: Neovim, line: str, replaced: str, segments: Any
) -> None:
    assert aligned(editor, line, replaced) == segments


@pytest.mark.parametrize(
    ("text", "part", "head"),
    [
        (" * (width + height)", "word", " *"),
        ("(width", "word", "("),
        ("größe = 1", "word", "größe"),
        ("\n    return x", "word", "\n    return"),
        ("one two\nthree", "line", "one two"),
        ("\n    return x\ny", "line", "\n    return x"),
        ("one\ntwo", "all", "one\ntwo"),
    ],
)
def test_a_part_is_a_head_of_the_suggestion(editor: Neovim, text: str, part: str, head: str) -> None:
    assert editor.call("return require('slipstream.suggestion').head(...)", text, part) == head


VIEW = """
local line, col, item, encoding, now_lines, now_row, now_col = ...
local suggestions, cursors = require('slipstream.suggestion'), require('slipstream.cursor')
vim.api.nvim_buf_set_lines(0, 0, -1, false, { line })
vim.o.virtualedit = 'onemore'
vim.api.nvim_win_set_cursor(0, { 1, col })
local suggestion = suggestions.from_item(item, { id = 1, offset_encoding = encoding }, cursors.here())
if not suggestion then return { is_understood = false } end
vim.api.nvim_buf_set_lines(0, 0, -1, false, now_lines)
vim.api.nvim_win_set_cursor(0, { now_row + 1, now_col })
local view = suggestions.view(suggestion, cursors.here())
if not view then return { is_understood = true } end
return {
  is_understood = true, text = view.text, num_replaced = view.num_replaced,
  word_units = suggestions.accepted_units(view, suggestions.head(view.text, 'word')),
}
"""


def viewed(editor: Neovim, before: str, item: dict[str, Any], now: str, encoding: str = "utf-16") -> Any:
    """The rest of `item`, requested at `|` in `before`, at `|` in `now`."""
    left, _, right = before.partition("|")
    now_left, _, now_right = now.partition("|")
    row = now_left.count("\n")
    column = len(now_left[now_left.rfind("\n") + 1 :].encode())
    lines = (now_left + now_right).split("\n")
    return editor.call(VIEW, left + right, len(left.encode()), item, encoding, lines, row, column)


def item(text: str, start: int, end: int) -> dict[str, Any]:
    positions = [{"line": 0, "character": character} for character in (start, end)]
    return {"insertText": text, "range": {"start": positions[0], "end": positions[1]}}


@pytest.mark.parametrize(
    ("before", "text", "now", "left", "num_replaced"),
    [
        ("f(|)", "a, b)", "f(|)", "a, b)", 1),
        ("f(|)", "a, b)", "f(a|)", ", b)", 1),
        ("f(|)", "a)(b)", "f(a)|", "(b)", 0),
        ("f(|", "(a)", "f((|)", "a)", 1),
        ("x|", "y\n  z", "xy\n |", " z", 0),
    ],
)
def test_typing_along_leaves_the_rest(
    editor: Neovim, before: str, text: str, now: str, left: str, num_replaced: int
) -> None:
    start = before.index("|")
    view = viewed(editor, before, item(text, start, len(before) - 1), now)
    assert (view["text"], view["num_replaced"]) == (left, num_replaced)


@pytest.mark.parametrize(
    ("before", "text", "now"),
    [
        ("x|", "yz", "xz|"),
        ("x|", "yz", "xyz|"),
        ("x|", "yz", "wx|"),
        ("x|", "yz", "|x"),
        ("x|", "yz", "xy|w"),
        ("x|", "yz", "\nx|"),
        ("x|", "\nz", "x\n\n|"),
    ],
)
def test_nothing_is_left_when_something_else_was_typed(
    editor: Neovim, before: str, text: str, now: str
) -> None:
    assert viewed(editor, before, item(text, 1, 1), now) == {"is_understood": True}


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 9), ("utf-16", 4), ("utf-32", 3)])
def test_positions_are_counted_in_the_servers_units(editor: Neovim, encoding: str, column: int) -> None:
    view = viewed(editor, "é🙂漢|)", item("x)", column, column + 1), "é🙂漢|)", encoding)
    assert (view["text"], view["num_replaced"]) == ("x)", 1)


def test_an_answer_for_another_place_is_not_taken(editor: Neovim) -> None:
    assert viewed(editor, "ab|", item("c", 1, 1), "ab|") == {"is_understood": False}


@pytest.mark.parametrize(
    ("text", "now", "units"), [("🙂🙂 b", "x|", 4), ("🙂🙂 b", "x🙂|", 4), ("a\r\nb c", "xa|", 4)]
)
def test_accepted_text_is_counted_in_utf16_units_of_the_item(
    editor: Neovim, text: str, now: str, units: int
) -> None:
    assert viewed(editor, "x|", item(text, 1, 1), now)["word_units"] == units


def test_the_help_has_its_tags(editor: Neovim, tmp_path: Path) -> None:
    copy = tmp_path / "slipstream.txt"
    copy.write_text((PLUGIN / "doc" / "slipstream.txt").read_text())
    editor.vim.command(f"helptags {tmp_path}")
    tags = {line.split("\t")[0] for line in (tmp_path / "tags").read_text().splitlines()}
    commands = editor.call("return require('slipstream.commands').names()")
    options = editor.call("return vim.tbl_keys(require('slipstream.options').defaults)")
    assert {f":Slipstream-{name}" for name in commands} <= tags
    assert {f"slipstream-{name}" for name in options} <= tags
    assert not (PLUGIN / "doc" / "tags").exists()
    assert (tmp_path / "tags").read_text() == help_tags(copy)


CONTRASTS = """
local names = vim.fn.getcompletion('Slipstream', 'highlight')
local normal = vim.api.nvim_get_hl(0, { name = 'Normal', link = false })
local found = {}
for _, name in ipairs(names) do
  local group = vim.api.nvim_get_hl(0, { name = name, link = false })
  found[name] = { group.fg or normal.fg, group.bg or normal.bg }
end
return found
"""


def luminance(color: int) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [(color >> shift & 255) / 255 for shift in (16, 8, 0)]
    red, green, blue = (part / 12.92 if part <= 0.04 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("background", ["dark", "light"])
def test_all_texts_have_contrast_in_neovims_own_colours(editor: Neovim, background: str) -> None:
    editor.vim.command(f"set background={background}")
    editor.vim.command("colorscheme default")
    editor.call("require('slipstream.highlights').define()")
    found = editor.call(CONTRASTS)
    assert {"SlipstreamGhost", "SlipstreamHint", "SlipstreamNgram"} <= set(found)
    for name, (ink, paper) in found.items():
        low, high = sorted((luminance(ink), luminance(paper)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, name


def test_the_readme_shows_the_defaults(editor: Neovim) -> None:
    readme = (PLUGIN / "README.md").read_text()
    options = readme.split("## Options")[1].split("setup(")[1].split("\n})")[0] + "\n}"
    shown, defaults = editor.call(f"return {{ {options}, require('slipstream.options').defaults }}")
    assert {"cmd", "enabled", "filetypes", "keymaps", "settings"} <= set(shown)
    assert shown == {name: defaults[name] for name in shown}


def test_every_option_has_a_default_and_a_check(editor: Neovim) -> None:
    options, kinds = editor.call(
        "local options = require('slipstream.options')"
        "return { vim.tbl_keys(options.defaults), vim.tbl_keys(options.kinds) }"
    )
    assert sorted(options) == sorted(kinds)
    editor.call("require('slipstream.config').set(require('slipstream.options').defaults)")


def test_every_file_is_short_and_says_what_it_owns() -> None:
    for path in PLUGIN.rglob("*.lua"):
        lines = path.read_text().splitlines()
        assert len(lines) < 300, path
        assert lines[0].startswith("--"), path


def test_nothing_is_loaded_before_it_is_needed(start: Start) -> None:
    editor = start("")
    assert editor.call("return vim.tbl_keys(package.loaded)").count("slipstream.events") == 0
    assert editor.call("return vim.fn.exists(':Slipstream')") == 2
