"""The next edit in a real Neovim with the real model: change it once, and Tab makes the change elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.editors.edit_stories import LOGGING, SILENT, STORIES, Story
from tests.editors.neovim.editor import Neovim

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(900)]

MAX_EDITS = 12
PROPOSED_ROW = """
local edit = require('slipstream.next_edit').visible()
return edit and edit.row or -1
"""


@dataclass(frozen=True, slots=True)
class Folder:
    """Files before, keys that change the first one, and what every file then reads."""

    name: str
    before: dict[str, str]
    keys: str
    after: dict[str, str]


_NET = {
    "net.py": "def fetch(url):\n    return open(url)\n",
    "first.py": "from renamed.net import fetch\n\nfirst = fetch('a')\n",
    "second.py": "from .net import fetch\n\n\ndef run():\n    return fetch('b')\n",
}
_UNCHANGED = {
    "other.py": "from elsewhere import get\n\nfetch = get('fetch')\n",
    "text.md": "Call fetch to fetch.\n",
}
FOLDERS = (
    Folder(
        "renamed",
        _NET | _UNCHANGED,
        ":1s/fetch/load/<CR>",
        {name: re.sub(r"fetch(?=\(|$)", "load", text, flags=re.MULTILINE) for name, text in _NET.items()}
        | _UNCHANGED,
    ),
    Folder(
        "moved",
        {
            "first.py": "from shop.models import Receipt\n\nfirst = Receipt(1)\n",
            "second.py": "from shop.models import (\n    Receipt,\n)\n\nsecond = Receipt(2)\n",
            "third.py": "from shop.models import Bill\n\nReceipt = Bill\n",
            "fourth.py": "from other.models import Receipt\n\nfourth = Receipt(4)\n",
        },
        ":1s/models/schema/<CR>",
        {
            "first.py": "from shop.schema import Receipt\n\nfirst = Receipt(1)\n",
            "second.py": "from shop.schema import (\n    Receipt,\n)\n\nsecond = Receipt(2)\n",
            "third.py": "from shop.models import Bill\n\nReceipt = Bill\n",
            "fourth.py": "from other.models import Receipt\n\nfourth = Receipt(4)\n",
        },
    ),
)


SET_NEXT_EDIT = """
require('slipstream.config').get().settings.nextEdit = ...
require('slipstream.client').push_settings()
"""
# The index reads new files after a moment.
ASK_UNTIL_PROPOSED = """
local edit = require('slipstream.next_edit')
if edit.visible() then
    return true
end
if Drawn.is_next_edit_settled() then
    edit.invoke()
end
"""


# The index reads new files after a moment.
ASK_UNTIL_LISTED = """
if vim.bo.filetype == 'slipstream-info' then
  if #vim.tbl_filter(function(line) return line:find('use.py') end, vim.fn.getline(1, '$')) > 0 then
    return true
  end
  vim.cmd.close()
end
require('slipstream.all_edits').open()
vim.wait(500, function() return vim.bo.filetype == 'slipstream-info' end)
"""


class Person:
    """Opens a file, changes something, and presses Tab while an edit is shown."""

    def __init__(self, editor: Neovim) -> None:
        self._editor = editor
        self._num_pressed = 0

    def begin(self, folder: Path, story: Story) -> Path:
        path = folder / story.file
        path.write_text(story.before)
        self._editor.edit(path)
        self._editor.until("return require('slipstream.client').of(vim.api.nvim_get_current_buf()) ~= nil")
        return path

    def begin_in(self, folder: Path, files: Folder) -> Path:
        """Write the files to a new folder, and open the first one; returns the folder."""
        folder.mkdir(exist_ok=True)
        for name, text in files.before.items():
            (folder / name).write_text(text)
        self._editor.edit(folder / next(iter(files.before)))
        self._editor.until("return require('slipstream.client').of(vim.api.nvim_get_current_buf()) ~= nil")
        return folder

    def press(self, keys: str) -> None:
        """Press keys of normal mode; wait until they have their effect and the server has answered."""
        self._num_pressed += 1
        self._editor.type(f"{keys}:let g:num_pressed = {self._num_pressed}<CR>")
        self._editor.until("return vim.g.num_pressed == ...", self._num_pressed)
        self._editor.until("return Drawn.is_next_edit_settled()")

    def proposed_row(self) -> int:
        """The line of the edit that is shown, -1 without one."""
        return int(self._editor.call(PROPOSED_ROW))

    def tab_through(self) -> list[int]:
        """Jump to each proposed edit and apply it; return their lines."""
        rows: list[int] = []
        while (row := self.proposed_row()) >= 0 and len(rows) < MAX_EDITS:
            if self._editor.cursor()[0] != row:
                self.press("<Tab>")
                assert self._editor.cursor()[0] == row
            self.press("<Tab>")
            rows.append(row)
        return rows

    def text(self) -> str:
        return "\n".join([*self._editor.lines(), ""])


@pytest.fixture
def person(editor: Neovim) -> Person:
    return Person(editor)


@pytest.fixture
def manual(editor: Neovim) -> Iterator[None]:
    """The editor proposes edits only when the user asks."""
    editor.call(SET_NEXT_EDIT, "manual")
    yield
    editor.call(SET_NEXT_EDIT, "automatic")


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_tab_alone_makes_the_rest_of_the_change(
    person: Person, editor: Neovim, tmp_path: Path, story: Story
) -> None:
    path = person.begin(tmp_path, story)
    person.press(story.keys)
    assert (person.proposed_row() >= 0) is not story.asks
    if story.asks:
        person.press(":Slipstream edit<CR>")
        assert person.proposed_row() >= 0
    person.tab_through()
    editor.vim.command("write")
    assert path.read_text() == story.after


@pytest.mark.parametrize("story", SILENT, ids=lambda story: story.name)
def test_a_change_that_belongs_nowhere_else_is_not_proposed(
    person: Person, tmp_path: Path, story: Story
) -> None:
    person.begin(tmp_path, story)
    person.press(story.keys)
    assert person.proposed_row() == -1


def test_escape_dismisses_an_edit_for_good(person: Person, editor: Neovim, tmp_path: Path) -> None:
    person.begin(tmp_path, LOGGING)
    person.press(LOGGING.keys)
    row = person.proposed_row()
    editor.type("<Esc>")
    editor.until("return not require('slipstream.next_edit').visible()")
    person.press(":$s/$/  # the last line/<CR>")
    assert person.proposed_row() != row


def test_keys_are_as_before_when_no_edit_is_shown(person: Person, editor: Neovim, tmp_path: Path) -> None:
    editor.call("vim.keymap.set('n', '<Tab>', '<Cmd>let g:own_tab = 1<CR>')")
    person.begin(tmp_path, LOGGING)
    person.press(LOGGING.keys)
    assert editor.call("return vim.fn.maparg('<Tab>', 'n', false, true).buffer") == 1
    person.tab_through()
    editor.type("<Tab>")
    assert editor.until("return vim.g.own_tab") == 1
    editor.call("vim.keymap.del('n', '<Tab>')")


def test_an_edit_out_of_sight_has_a_hint_at_the_cursor(
    person: Person, editor: Neovim, tmp_path: Path
) -> None:
    end = '    log.info("end")'
    before = LOGGING.before.replace(end, "\n" * 200 + end)
    person.begin(tmp_path, Story("far", "far.py", before, "", ""))
    person.press(LOGGING.keys)
    hints = editor.call(
        "local marks = vim.api.nvim_buf_get_extmarks(0, require('slipstream.edit_drawing').namespace, 0, -1,"
        " { details = true })"
        " return vim.iter(marks):map(function(mark)"
        " return (mark[4].virt_text or { { '' } })[1][1] end):totable()"
    )
    assert any("↓ line 211" in hint for hint in hints)


@pytest.mark.parametrize("files", FOLDERS, ids=lambda files: files.name)
def test_a_change_goes_on_in_files_that_are_not_open(
    person: Person, editor: Neovim, project: Path, files: Folder
) -> None:
    folder = person.begin_in(project / files.name, files)
    person.press(files.keys)
    editor.until(ASK_UNTIL_PROPOSED)
    for _ in range(MAX_EDITS):
        if not editor.call("return require('slipstream.next_edit').visible() ~= nil"):
            break
        person.press("<Tab>")
    editor.vim.command("wall")
    assert {name: (folder / name).read_text() for name in files.before} == files.after


USES = "def gather(url):\n    return open(url)\n\n\nfirst = gather('a')\nsecond = gather('b')\n"


@pytest.mark.parametrize("key", ["a", "f"])
def test_all_places_are_listed_and_then_changed_at_once(
    person: Person, editor: Neovim, project: Path, key: str
) -> None:
    use = "from net import gather\n\nprint(gather('c'))\n"
    name = f"all_{key}"
    files = Folder(name, {"net.py": USES, "use.py": use}, ":1s/gather/load/<CR>", {})
    folder = person.begin_in(project / name, files)
    person.press(files.keys)
    editor.until(ASK_UNTIL_LISTED)
    listed = editor.lines()
    assert listed[0] == "4 places in 2 files"
    assert [line for line in listed if "gather" in line] == [
        "     5  first = gatherload('a')",
        "     6  second = gatherload('b')",
        "     1  from net import gatherload",
        "     3  print(gatherload('c'))",
    ]
    editor.type(key)
    editor.until("return vim.bo.filetype == 'python'")
    editor.vim.command("wall")
    assert (folder / "net.py").read_text() == USES.replace("gather", "load")
    assert (folder / "use.py").read_text() == (use.replace("gather", "load") if key == "a" else use)
    editor.type("u")
    assert editor.until("return vim.fn.getline(5) == \"first = gather('a')\"")


@pytest.mark.usefixtures("manual")
def test_a_jump_into_a_file_that_is_not_open_asks_for_its_edit_in_manual_mode(
    person: Person, editor: Neovim, project: Path
) -> None:
    files = FOLDERS[0]
    folder = person.begin_in(project / "by_hand", files)
    person.press(files.keys)
    assert person.proposed_row() == -1
    editor.until(ASK_UNTIL_PROPOSED)
    person.press("<Tab>")
    name = Path(editor.vim.current.buffer.name).name
    assert name in ("first.py", "second.py")
    assert person.proposed_row() == editor.cursor()[0]
    person.press("<Tab>")
    assert person.proposed_row() == -1
    editor.vim.command("wall")
    changed = [line for line in (folder / name).read_text().splitlines() if "load" in line]
    assert changed[0] in files.after[name].splitlines()
