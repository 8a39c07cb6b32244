"""Living with the plugin in a real Neovim with the real server: switches, windows, health, crashes."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lsp_server.protocol.reasons import CUT_REASONS, REASONS, texts
from tests.editors.neovim.conftest import SHAPES, setup_lua
from tests.editors.neovim.editor import Neovim, Start
from tests.hosts import Hosts

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(900)]

PERIMETER = SHAPES.replace("    ret\n", "    |\n")

Write = Callable[..., Path]


def stays_without(editor: Neovim, keys: str) -> None:
    """Checks that typing shows nothing and asks nothing."""
    editor.history()
    editor.type(keys)
    editor.wait_quiet()
    assert editor.ghost() == ""
    assert editor.history() == []


@pytest.mark.parametrize("scope", ["", "buffer", "filetype"])
def test_switched_off_it_is_silent_and_comes_back(
    editor: Neovim, write: Write, scope: str, model_says: str
) -> None:
    write("shapes.py", PERIMETER)
    editor.type("re")
    editor.wait_ghost()
    editor.vim.command(f"Slipstream disable {scope}")
    assert editor.ghost() == ""
    stays_without(editor, "t")
    editor.vim.command(f"Slipstream toggle {scope}")
    assert editor.wait_ghost() == model_says


def test_the_server_hears_of_a_filetype_that_is_off(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.vim.command("Slipstream disable filetype")
    settings = "vim.lsp.get_clients({ name = 'slipstream' })[1].settings.slipstream"
    assert editor.call(f"return {settings}.languages") == {"python": False}
    editor.vim.command("Slipstream enable filetype")
    assert editor.call(f"return {settings}.languages") == {"python": True}


def test_snoozing_ends_by_itself(editor: Neovim, write: Write, model_says: str) -> None:
    write("shapes.py", PERIMETER)
    editor.vim.command("Slipstream snooze 0.02")
    assert "snoozed for 1 min" in editor.call("return require('slipstream').status()")
    stays_without(editor, "ret")
    assert editor.wait_ghost() == model_says


def test_a_snooze_can_be_ended(editor: Neovim, write: Write, model_says: str) -> None:
    write("shapes.py", PERIMETER)
    editor.vim.command("Slipstream snooze 30")
    stays_without(editor, "ret")
    editor.vim.command("Slipstream resume")
    assert editor.wait_ghost() == model_says


def test_the_status_line_says_the_state_and_changes_with_no_key(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    for key in "ret":
        editor.type(key)
        editor.wait_quiet()
        assert editor.call("return require('slipstream').status()") == "Slipstream: ready"


def test_checkhealth_has_no_error(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.type("<Esc>")
    editor.vim.command("checkhealth slipstream")
    report = "\n".join(editor.lines())
    assert "ERROR" not in report
    assert "WARNING" not in report
    for part in ("Neovim 0.1", "slipstream 0.", "serves 1 of", "The model is", "This plugin draws"):
        assert part in report


def test_checkhealth_names_a_taken_key_and_a_second_drawer(
    editor: Neovim, write: Write, version: str
) -> None:
    write("shapes.py", PERIMETER)
    editor.type("<Esc>")
    editor.vim.command("inoremap <buffer> <Tab> mine")
    is_new = version != "0.11"
    if is_new:
        editor.call("vim.lsp.inline_completion.enable(true, { bufnr = 0 })")
    editor.vim.command("checkhealth slipstream")
    report = "\n".join(editor.lines())
    if is_new:
        editor.call("vim.lsp.inline_completion.enable(false)")
    assert "Another mapping of <Tab> in buffer" in report
    assert ("draws ghost text in buffer" in report) == is_new


def test_why_explains_what_is_on_the_screen(editor: Neovim, write: Write, model_says: str) -> None:
    write("shapes.py", PERIMETER)
    editor.type("ret")
    assert editor.wait_ghost() == model_says
    editor.type("<Cmd>Slipstream why<CR>")
    editor.until("return vim.bo.filetype == 'slipstream-info'")
    page = editor.lines()
    assert page[:2] == ["Suggested", CUT_REASONS["end-of-statement"]]
    assert model_says in page
    assert "Sources" in page
    origins = page[page.index("Sources") + 1 : page.index("For developers") - 1]
    listed = "".join(line.removeprefix("■ ")[:24] for line in origins)
    assert listed.replace(" ", "") == model_says.replace(" ", "")
    assert re.match(r"\d+ tokens", page[page.index("For developers") + 1])
    editor.type("q")
    editor.until("return vim.bo.filetype == 'python'")


def test_why_is_asked_after_insert_mode_too(editor: Neovim, write: Write, model_says: str) -> None:
    write("shapes.py", PERIMETER)
    editor.type("ret")
    editor.wait_ghost()
    editor.type("<Esc>")
    editor.vim.command("Slipstream why")
    editor.until("return vim.bo.filetype == 'slipstream-info'")
    assert model_says in editor.lines()


def test_a_piece_from_a_file_leads_there(editor: Neovim, write: Write, project: Path) -> None:
    source = project / "origin.py"
    source.write_text("one = 1\ntwo = 2\nthree = 3\n")
    write("shapes.py", PERIMETER)
    editor.type("<Esc>")
    answer = {
        "shown": True,
        "reason": "The statement at the cursor is complete.",
        "texts": texts(),
        "pieces": [
            {"text": "a + b", "source": "target", "evidence": ""},
            {"text": "\nthree", "source": "ngram", "evidence": "", "file": str(source), "line": 2},
        ],
    }
    editor.call("require('slipstream.info_window').open('why', require('slipstream.why').page(...))", answer)
    page = editor.lines()
    listed = next(number for number, line in enumerate(page) if line.endswith("origin.py:3"))
    for row in (page.index("three"), listed):
        editor.call("vim.api.nvim_win_set_cursor(0, {...})", row + 1, 0)
        assert editor.call("return vim.bo.filetype") == "slipstream-info"
        if row == listed:
            editor.type("<CR>")
    editor.until("return vim.fs.basename(vim.api.nvim_buf_get_name(0)) == 'origin.py'")
    assert editor.cursor() == (2, 0)


def test_the_server_counts_what_was_shown_and_accepted(editor: Neovim, write: Write, model_says: str) -> None:
    counters = """
    local client = vim.lsp.get_clients({ name = 'slipstream' })[1]
    return client:request_sync('slipstream/stats', vim.empty_dict(), 10000).result.counters
    """
    write("shapes.py", PERIMETER)
    before = editor.call(counters)
    editor.type("ret")
    editor.wait_ghost()
    editor.type("<M-w>")
    editor.wait_quiet()
    editor.type("<Tab>")
    editor.until("return Drawn.text(0) == ''")
    after = editor.call(counters)
    gained = {name: after[name] - before[name] for name in after}
    assert gained["num_shown"] >= 1
    assert gained["num_partially_accepted"] == 1
    assert gained["num_accepted"] == 1
    assert gained["num_accepted_chars"] == len(model_says)


def test_a_long_line_of_an_explanation_is_not_cut(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.type("<Esc>")
    words = " ".join(f"word{number}" for number in range(60))
    answer = {"shown": False, "reason": words, "texts": texts(), "pieces": []}
    editor.vim.command("set nowrap")
    editor.call("require('slipstream.info_window').open('why', require('slipstream.why').page(...))", answer)
    editor.vim.command("redraw")
    shown = editor.call(
        "local rows = {} for row = 1, vim.o.lines do local row_text = {}"
        " for column = 1, vim.o.columns do row_text[column] = vim.fn.screenstring(row, column) end"
        " rows[row] = table.concat(row_text) end return rows"
    )
    assert set(words.split()) <= set(" ".join(shown).replace("│", " ").split())
    editor.vim.command("set wrap&")


def test_why_also_says_why_there_is_no_next_edit(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.type("<Esc>:1s/area/space/<CR>")
    editor.until("return Drawn.is_next_edit_settled()")
    editor.vim.command("Slipstream why")
    editor.until("return vim.bo.filetype == 'slipstream-info'")
    page = editor.lines()
    assert page[page.index("No next edit") + 1] == REASONS["no-similar-place"]


def test_the_statistics_window_begins_with_today_and_ends_with_what_developers_read(
    editor: Neovim, write: Write
) -> None:
    write("shapes.py", PERIMETER)
    editor.type("ret")
    editor.wait_ghost()
    editor.type("<Esc>")
    editor.vim.command("Slipstream stats")
    editor.until("return vim.bo.filetype == 'slipstream-info'")
    page = "\n".join(editor.lines())
    assert page.startswith("Today and this week")
    first, _, developers = page.partition("For developers")
    for part in ("keys saved", "requested", "Model", "Index"):
        assert part in first
    for part in ("verify", "per pass", "draft"):
        assert part in developers and part not in first


def test_a_second_project_is_served_by_the_same_server(editor: Neovim, write: Write, tmp_path: Path) -> None:
    write("shapes.py", PERIMETER)
    (tmp_path / ".git").mkdir()
    other = tmp_path / "other.py"
    other.write_text(SHAPES)
    editor.edit(other)
    editor.until("return require('slipstream.client').of(vim.api.nvim_get_current_buf()) ~= nil")
    assert editor.call("return #vim.lsp.get_clients({ name = 'slipstream' })") == 1
    folders = "return vim.tbl_map(function(f) return f.name end, {}.workspace_folders)".format(
        "vim.lsp.get_clients({ name = 'slipstream' })[1]"
    )
    assert str(tmp_path) in editor.call(folders)


def test_the_menu_may_be_shown_beside_it(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.call("require('slipstream.config').get().popup_menu = 'show'")
    editor.vim.command("set completeopt=menuone,noinsert")
    try:
        editor.type("return w")
        editor.wait_ghost()
        editor.type("<C-x><C-n>")
        editor.until("return vim.fn.pumvisible() == 1")
        assert editor.wait_ghost()
    finally:
        editor.call("require('slipstream.config').get().popup_menu = 'hide'")
        editor.type("<C-e><Esc>")


def servers_of(editor: Neovim) -> list[int]:
    """The process ids of the language servers that this editor started."""
    children = Path(f"/proc/{editor.pid}/task/{editor.pid}/children").read_text().split()
    return [int(child) for child in children if b"slipstream" in Path(f"/proc/{child}/cmdline").read_bytes()]


@contextmanager
def without_waiting(editor: Neovim) -> Iterator[None]:
    """Notice each call by which the plugin or the editor's own client would wait for something."""
    editor.call("Waits, Wait = 0, vim.wait vim.wait = function(...) Waits = Waits + 1 return Wait(...) end")
    try:
        yield
        assert editor.call("return Waits") == 0
    finally:
        editor.call("vim.wait = Wait")


@pytest.mark.parametrize("victim", ["its own process", "the shared process"])
def test_a_server_that_is_killed_comes_back_and_typing_goes_on(
    editor: Neovim, write: Write, hosts: Hosts, victim: str
) -> None:
    write("shapes.py", PERIMETER)
    editor.type("re")
    editor.wait_ghost()
    (server,) = servers_of(editor)
    client = "vim.lsp.get_clients({ name = 'slipstream' })[1]"
    first = editor.call(f"return {client}.id")
    is_shared = victim == "the shared process"
    with without_waiting(editor):
        os.kill(hosts.serving(server)["pid"] if is_shared else server, signal.SIGKILL)
        for key in "turn width * height":
            editor.type("<Space>" if key == " " else key)
            assert editor.call("return vim.api.nvim_get_mode().blocking") is False
        editor.until("return vim.api.nvim_get_current_line() == '    return width * height'")
        editor.until(f"return {client} and {client}.id > ...", first)
    editor.wait_ready()
    assert servers_of(editor) not in ([], [server])
    editor.type("<C-u>ret")
    assert editor.wait_ghost()
    assert editor.call("return #vim.lsp.get_clients({ bufnr = 0 })") == 1


def wait_indexed(editor: Neovim, folders: list[Path]) -> None:
    """Wait until the only server of this editor indexes these folders and no others."""
    editor.until(
        """
        local clients = vim.lsp.get_clients({ name = 'slipstream' })
        local answer = #clients == 1 and clients[1]:request_sync('slipstream/stats', vim.empty_dict(), 10000)
        local reports = answer and answer.result.index or {}
        local indexed = vim.tbl_map(function(report) return report.folder end, reports)
        table.sort(indexed)
        return vim.deep_equal(indexed, ...)
        """,
        sorted(str(folder) for folder in folders),
    )


def test_after_a_crash_the_server_knows_every_open_project(
    start: Start, hosts: Hosts, tmp_path: Path
) -> None:
    editor = start(setup_lua())
    projects = [tmp_path / name for name in ("first", "second", "opened during the crash")]
    for folder in projects:
        (folder / ".git").mkdir(parents=True)
        (folder / "shapes.py").write_text(SHAPES)
    for folder in projects[:2]:
        editor.edit(folder / "shapes.py")
        editor.wait_ready()
    wait_indexed(editor, projects[:2])
    (server,) = servers_of(editor)
    os.kill(server, signal.SIGKILL)
    editor.until("return #vim.lsp.get_clients({ name = 'slipstream' }) == 0")
    editor.edit(projects[2] / "shapes.py")
    editor.wait_ready()
    for folder in projects:
        editor.edit(folder / "shapes.py")
        editor.until("return require('slipstream.client').of(vim.api.nvim_get_current_buf()) ~= nil")
    wait_indexed(editor, projects)


def test_a_key_in_the_very_moment_of_a_crash_ends_no_tracking_of_changes(
    editor: Neovim, write: Write
) -> None:
    """Neovim takes keys in between any two events, also while it takes a dead client from its buffers."""
    write("shapes.py", PERIMETER)
    editor.type("re")
    editor.wait_ghost()
    (server,) = servers_of(editor)
    editor.call(
        """
        vim.api.nvim_create_autocmd('LspDetach', {
          callback = function() vim.api.nvim_input('t') return true end,
        })
        """
    )
    os.kill(server, signal.SIGKILL)
    editor.until("return vim.api.nvim_get_current_line() == '    ret'")
    editor.until("return require('slipstream.client').of(vim.api.nvim_get_current_buf()) ~= nil")
    editor.wait_ready()
    editor.type("urn wid")
    assert re.findall(r"\w+", f"wid{editor.wait_ghost()}")[0] in re.findall(r"\w+", SHAPES)


def test_two_editors_share_one_engine(start: Start, hosts: Hosts, tmp_path: Path, model_says: str) -> None:
    homes = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("CONFIG", "DATA", "STATE")}
    editors = [start(setup_lua(), **homes) for _ in range(2)]
    for number, editor in enumerate(editors):
        folder = tmp_path / f"project{number}"
        folder.mkdir()
        (folder / ".git").mkdir()
        path = folder / "shapes.py"
        path.write_text(SHAPES.replace("    ret\n", "    \n"))
        editor.edit(path, line=5, column=3)
        editor.wait_ready()
        editor.type("Aret")
        assert editor.wait_ghost() == model_says
    (relay,) = servers_of(editors[0])
    host = hosts.serving(relay)
    assert host["num_windows"] == 2
    assert [engine["num_users"] for engine in host["engines"]] == [2]


def test_an_engine_of_its_own_can_be_had(editor: Neovim) -> None:
    command = "return require('slipstream.config').command()"
    assert editor.call(command)[1:] == ["serve", "--stdio", "--shared"]
    change = "require('slipstream.config').get().shared_engine = ..."
    editor.call(change, False)
    assert editor.call(command)[1:] == ["serve", "--stdio"]
    editor.call(change, True)


def test_the_built_in_drawer_can_be_used_instead(
    start: Start, version: str, project: Path, model_says: str
) -> None:
    if version == "0.11":
        pytest.skip("Neovim 0.11 has no vim.lsp.inline_completion")
    editor = start(setup_lua("ghost = 'builtin'"))
    path = project / "builtin.py"
    path.write_text(SHAPES.replace("    ret\n", "    \n"))
    editor.edit(path, line=5, column=3)
    editor.wait_ready()
    editor.type("Aret")
    ghost = editor.wait_ghost()
    assert ghost == model_says
    editor.type("<M-w>")
    editor.until("return vim.api.nvim_get_current_line() == '    return'")
    editor.until("return vim.startswith(Drawn.text(0), ' ')")
    editor.type("<Tab>")
    editor.until("return vim.api.nvim_get_current_line() == ...", f"    ret{ghost}")
    editor.vim.command("Slipstream disable")
    assert editor.call("return vim.lsp.inline_completion.is_enabled({ bufnr = 0 })") is False


def test_the_server_hears_where_the_cursor_comes_to_rest(editor: Neovim, write: Write) -> None:
    write("shapes.py", PERIMETER)
    editor.vim.command("stopinsert")
    stats = "vim.lsp.get_clients({ name = 'slipstream' })[1]:request_sync('slipstream/stats', {}, 60000)"
    num_focused = f"local n = {stats}.result.counters.num_focused return"
    time.sleep(1)  # what was on its way
    before = editor.call(f"{num_focused} n")
    editor.type("gg")
    editor.type("jj")
    assert editor.until(f"{num_focused} n > ... and n", before) > before
