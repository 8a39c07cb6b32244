"""A suggestion that the deadline cut grows in a real VS Code without a key, and the cursor stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lsp_server.workspace.growth import GREW, MAX_NOTICES
from tests.editors import recorder
from tests.editors.answers import owes_nothing
from tests.editors.vscode.conftest import complete, heard
from tests.editors.vscode.window import Window, until
from tests.editors.vscode.workbench import Workbench

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(1200)]

# The first answer is cut after its first words.
SETTINGS = {"slipstream.deadlineMs": 1}
BEFORE = "def area(width, height):\n    return width * height\n\n\n"
ASKED, AUTOMATIC = "textDocument/inlineCompletion", 2


@pytest.fixture(scope="module")
def hurried(
    the_workbench: Workbench,
    open_window: Callable[..., AbstractContextManager[Window]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Window]:
    """A window whose answers are cut; each test opens a file of its own."""
    folder = tmp_path_factory.mktemp("hurried")
    (folder / ".vscode").mkdir()
    (folder / ".vscode" / "settings.json").write_text(json.dumps(SETTINGS))
    with open_window(the_workbench, folder) as window:
        window.wait_until_ready()
        yield window


@contextmanager
def cut_short(window: Window, workbench: Workbench, stem: str) -> Iterator[Path]:
    """Type until an answer is cut, and keep back the notification that it grew. Yields the file."""
    file = window.open(f"{stem}.py", BEFORE)
    folder = workbench.profile / "recordings"
    with recorder.holding(folder, GREW) as is_kept:
        recorder.send_at_once(folder, '"text":"\\n')
        window.type("def perimeter(width, height):\n", delay_ms=0)
        until(is_kept, what="notification that the suggestion grew")
        until(window.has_ghost_text, what="cut suggestion")
        yield file


def sent(workbench: Workbench, method: str, since: int) -> list[dict[str, Any]]:
    """The parameters of the messages with this method, after the first `since` messages of any kind."""
    said = [one.message for one in heard(workbench)[since:]]
    return [message["params"] for message in said if message.get("method") == method]


def place_in(window: Window) -> str:
    """Where the cursor is, and how far the view is scrolled."""
    return str(window.page.evaluate("slipstreamObserver.place()"))


def test_the_ghost_text_grows_to_the_whole_without_a_key(hurried: Window, the_workbench: Workbench) -> None:
    with cut_short(hurried, the_workbench, "grows") as file:
        first = hurried.preview()
        hurried.save()
        place, keys = place_in(hurried), hurried.keys()
        num_sights, num_heard = len(hurried.sights()), len(heard(the_workbench))
    whole = hurried.line() + complete(the_workbench, file, 5, 4)
    until(lambda: hurried.preview() == whole, what=f"suggestion that reads {whole!r}")
    shown = [first, *(sight.preview for sight in hurried.sights()[num_sights:])]
    assert first != whole
    assert all(later.startswith(earlier) for earlier, later in pairwise(shown))
    assert (place_in(hurried), hurried.keys()) == (place, keys)
    kinds = [request["context"]["triggerKind"] for request in sent(the_workbench, ASKED, num_heard)]
    assert kinds in ([AUTOMATIC], [AUTOMATIC] * MAX_NOTICES)
    hurried.press("Tab")
    assert hurried.save().splitlines()[5:] == whole.splitlines()


def test_nothing_grows_after_escape(hurried: Window, the_workbench: Workbench) -> None:
    with cut_short(hurried, the_workbench, "escaped"):
        hurried.press("Escape")
        until(lambda: not hurried.has_ghost_text(), what="dismissed suggestion")
        num_sights, num_heard = len(hurried.sights()), len(heard(the_workbench))
    until(lambda: sent(the_workbench, GREW, num_heard), what="notification")
    # An answer to the extension's own request comes after all that the notification caused.
    hurried.run("Slipstream: Explain the Suggestion Here")
    hurried.choices()
    assert [sight.ghost for sight in hurried.sights()[num_sights:] if sight.ghost] == []
    assert sent(the_workbench, ASKED, num_heard) == []


def test_nothing_is_requested_while_the_completion_list_is_open(
    hurried: Window, the_workbench: Workbench
) -> None:
    with cut_short(hurried, the_workbench, "listed"):
        num_heard = len(heard(the_workbench))
        hurried.press("Control+Space")
        until(lambda: sent(the_workbench, ASKED, num_heard), what="request for the selected item")
    until(lambda: owes_nothing(heard(the_workbench)), what="answer")
    hurried.press("ArrowDown")
    selected = until(
        lambda: found if len(found := sent(the_workbench, ASKED, num_heard)) > 1 else [],
        what="request for the next item",
    )
    texts = [request["context"]["selectedCompletionInfo"]["text"] for request in selected]
    assert sent(the_workbench, GREW, num_heard)
    assert len(set(texts)) == len(texts) == 2
    hurried.press("Escape", "Escape")
