"""The next edit in VS Code: change it once, and Tab makes the same change elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.editors.edit_stories import LOGGING
from tests.editors.vscode.conftest import SCREENS
from tests.editors.vscode.window import Window, until
from tests.editors.vscode.workbench import Workbench

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(1200)]

CALLS = LOGGING.before
AREA = "def area(w, h):\n    return w * h * 1\n"
PLAN = "import shapes\n\nrooms = 5\nfirst = shapes.area(3, rooms)\n"


@pytest.fixture(scope="module")
def window(
    the_workbench: Workbench,
    open_window: Callable[..., AbstractContextManager[Window]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Window]:
    """A window with a ready server; each test opens a file of its own."""
    folder = tmp_path_factory.mktemp("edits")
    (folder / "plan.py").write_text(PLAN)
    with open_window(the_workbench, folder) as window:
        window.wait_until_ready()
        yield window


def change_two_calls(window: Window, file: str) -> None:
    """Write `debug` over the first two of three `info`."""
    window.open(file, CALLS)
    window.press("Control+Home", *["ArrowDown"] * 6)
    for _ in range(2):
        window.press("Home", *["ArrowRight"] * 4, *["Shift+ArrowRight"] * 4)
        window.type("debug")
        window.press("ArrowDown", "ArrowDown")


def rename_area(window: Window) -> None:
    """Rename a function of `shapes.py` that `plan.py` uses."""
    window.open("shapes.py", AREA)
    window.press("Control+Home", *["ArrowRight"] * 4, *["Shift+ArrowRight"] * 4)
    window.type("extent")
    window.press("ArrowDown", "End")


def wait_for(window: Window, text: str) -> None:
    until(lambda: text in window.attached(), what=f"{text!r} beside the code")


def jump_and_apply(window: Window) -> None:
    window.press("Tab")
    wait_for(window, "Tab to apply")
    window.press("Tab")


def test_tab_jumps_to_the_edit_and_tab_applies_it(window: Window) -> None:
    change_two_calls(window, "calls.py")
    window.press("ArrowUp")
    wait_for(window, "Tab to jump")
    jump_and_apply(window)
    until(lambda: window.attached() == "", what="no further edit")
    assert window.save() == CALLS.replace("info", "debug")


def test_tab_goes_on_in_another_document(window: Window) -> None:
    window.open("use.py", "from net import fetch\n\nprint(fetch('a'))\n")
    window.open("net.py", "def fetch(url):\n    return open(url)\n")
    window.press("Control+Home", *["ArrowRight"] * 4, *["Shift+ArrowRight"] * 5)
    window.type("load")
    window.press("ArrowDown")
    wait_for(window, "next edit in use.py:1, Tab to jump")
    jump_and_apply(window)
    wait_for(window, "Tab to jump")
    jump_and_apply(window)
    until(lambda: window.attached() == "", what="no further edit")
    assert window.save() == "from net import load\n\nprint(load('a'))\n"


def test_the_hint_of_an_edit_at_a_lines_end_stands_after_the_new_text(window: Window) -> None:
    window.open("use_end.py", "from net_end import fetch\n\nprint(fetch('a'))\n")
    window.open("net_end.py", "def fetch(url):\n    return open(url)\n")
    window.press("Control+Home", *["ArrowRight"] * 4, *["Shift+ArrowRight"] * 5)
    window.type("download_text")
    window.press("ArrowDown")
    wait_for(window, "next edit in use_end.py:1, Tab to jump")
    window.press("Tab")
    wait_for(window, "Tab to apply")
    window.picture(SCREENS / "edit-at-a-lines-end.png")
    assert window.attached().split() == ["download_text", "Tab", "to", "apply"]


def test_all_places_are_applied_in_this_file_or_looked_at_first(window: Window) -> None:
    window.open("use_all.py", "from net_all import fetch\n\nprint(fetch('a'))\n")
    before = "def fetch(url):\n    return open(url)\n\n\nfirst = fetch('a')\nsecond = fetch('b')\n"
    window.open("net_all.py", before)
    window.press("Control+Home", *["ArrowRight"] * 4, *["Shift+ArrowRight"] * 5)
    window.type("load")
    wait_for(window, "Alt+Shift+\\\\ for all places")
    window.press("Alt+Shift+|")
    assert window.choices() == ["Apply in This File2 places", "Look at All Places4 places in 2 files"]
    window.run("Slipstream: Apply the Next Edit in All Places")
    window.choose("Look at All Places")
    until(lambda: "print(load('a'))" in window.text(), what="list of the places")
    window.picture(SCREENS / "all-places.png")
    window.press("Enter")
    until(lambda: "fetch" not in window.save(), what="places of this file")
    assert window.save() == before.replace("fetch", "load")
    used, after = window.folder / "use_all.py", "from net_all import load\n\nprint(load('a'))\n"
    until(lambda: used.read_text() == after, what="places of the other file")


def test_tab_opens_the_file_that_uses_a_renamed_function(window: Window) -> None:
    rename_area(window)

    def is_hinted() -> bool:
        if "next edit in plan.py:4, Tab to jump" in window.attached():
            return True
        # Ask again: the index may have the file now. Leave the line, or Tab would accept a suggestion there.
        window.type("0")
        window.press("Backspace", "ArrowUp")
        window.page.wait_for_timeout(1_000)
        return False

    until(is_hinted, what="edit in a file that is not open")
    jump_and_apply(window)
    until(lambda: window.attached() == "", what="no further edit")
    assert window.save() == PLAN.replace("area", "extent")


def test_a_jump_into_a_file_that_is_not_open_asks_for_its_edit_in_manual_mode(
    the_workbench: Workbench,
    open_window: Callable[..., AbstractContextManager[Window]],
    tmp_path: Path,
) -> None:
    (tmp_path / "plan.py").write_text(PLAN)
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "settings.json").write_text('{"slipstream.nextEdit": "manual"}')
    with open_window(the_workbench, tmp_path) as window:
        window.wait_until_ready()
        rename_area(window)
        window.page.wait_for_timeout(1_000)
        assert window.attached() == ""

        def is_hinted() -> bool:
            window.run("Slipstream: Jump to the Next Edit, or Apply It")
            window.page.wait_for_timeout(1_000)
            return "next edit in plan.py:4, Tab to jump" in window.attached()

        until(is_hinted, what="edit in a file that is not open")
        jump_and_apply(window)
        until(lambda: window.attached() == "", what="no further edit")
        assert window.save() == PLAN.replace("area", "extent")


def test_an_edit_that_is_dismissed_is_not_proposed_again(window: Window) -> None:
    change_two_calls(window, "dismissed.py")
    wait_for(window, "Tab to")
    window.press("Escape")
    until(lambda: window.attached() == "", what="no edit after Escape")
    assert window.save() == CALLS.replace("info", "debug", 2)


def test_tab_indents_where_no_edit_is_shown(window: Window) -> None:
    window.open("plain.txt", "one\n")
    window.press("Tab")
    assert window.save().startswith("one\n") and window.save() != "one\n"
