"""The next edit in VS Code: change it once, and Tab makes the same change elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.editors.edit_stories import LOGGING
from tests.editors.vscode.window import Window, until
from tests.editors.vscode.workbench import Workbench

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(1200)]

CALLS = LOGGING.before


@pytest.fixture(scope="module")
def window(
    the_workbench: Workbench,
    open_window: Callable[..., AbstractContextManager[Window]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Window]:
    """A window with a ready server; each test opens a file of its own."""
    with open_window(the_workbench, tmp_path_factory.mktemp("edits")) as window:
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


def wait_for(window: Window, text: str) -> None:
    until(lambda: text in window.attached(), what=f"{text!r} beside the code")


def test_tab_jumps_to_the_edit_and_tab_applies_it(window: Window) -> None:
    change_two_calls(window, "calls.py")
    window.press("ArrowUp")
    wait_for(window, "Tab to jump")
    window.press("Tab")
    wait_for(window, "Tab to apply")
    window.press("Tab")
    until(lambda: window.attached() == "", what="no further edit")
    assert window.save() == CALLS.replace("info", "debug")


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
