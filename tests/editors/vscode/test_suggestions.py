"""The user's view while typing in VS Code: real workbench, real server, real model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from lsp_server.protocol.reasons import CUT_REASONS
from tests.editors.answers import Answer, answers, owes_nothing
from tests.editors.vscode.conftest import complete, heard
from tests.editors.vscode.window import Sight, Window, until
from tests.editors.vscode.workbench import Workbench

# The first test of a run builds the extension and starts everything.
pytestmark = [pytest.mark.real_model, pytest.mark.timeout(1200)]

STATISTICS = '"""Statistics of samples."""\n\n\n'


@pytest.fixture(scope="module")
def window(
    the_workbench: Workbench,
    open_window: Callable[..., AbstractContextManager[Window]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Window]:
    """A window with a ready server; each test opens a file of its own."""
    folder = tmp_path_factory.mktemp("samples")
    (folder / "known.py").write_text("def add(first, second):\n    return first + second\n")
    with open_window(the_workbench, folder) as window:
        window.wait_until_ready()
        yield window


def test_what_tab_accepts_is_on_the_disk_and_is_what_the_model_says(
    window: Window, the_workbench: Workbench
) -> None:
    file = window.open("mean.py", STATISTICS)
    window.type("def mean(values):\n")
    window.ghost_text()
    before = window.save()
    preview = window.whole_preview()
    text = complete(the_workbench, file, 4, 4)
    window.press("Tab")
    after = window.save()
    assert text
    assert after == before + text
    assert after.splitlines()[4:] == preview.splitlines()


def test_brackets_that_the_editor_closed_are_not_doubled(window: Window) -> None:
    window.open("add.py", "def subtract(first, second):\n    return first - second\n\n\n")
    window.type("def add(")
    assert window.line() == "def add()"
    preview = window.whole_preview()
    window.press("Tab")
    after = window.save()
    assert after.splitlines()[4:] == preview.splitlines()
    assert after.count("(") == after.count(")")
    compile(after, "add.py", "exec")


def test_a_word_and_a_line_can_be_taken_by_themselves(window: Window) -> None:
    window.open("parts.py", STATISTICS)
    window.type("def mean(values):\n")
    whole = window.preview()
    start = window.line()
    window.press("Control+ArrowRight")
    word = until(lambda: line if (line := window.line()) != start else "", what="word")
    assert whole.startswith(word)
    assert word != whole.split("\n")[0]
    assert window.preview() == whole
    window.press("Control+Alt+ArrowRight")
    until(lambda: whole.split("\n")[0] in window.lines(), what="line")
    assert window.save().rstrip() == f"{STATISTICS}def mean(values):\n{whole.split(chr(10))[0]}"


def test_the_next_candidate_is_another_one(window: Window) -> None:
    window.open("cycle.py", STATISTICS)
    window.type("def spread(values):\n")
    first = window.ghost_text()
    window.press("Alt+]")
    second = until(lambda: shown if (shown := window.ghost_text()) != first else "", what="another candidate")
    window.press("Alt+[")
    assert until(lambda: window.ghost_text() == first, what="first candidate again")
    assert second not in ("", first)


def test_nothing_stale_is_shown_while_the_typing_contradicts(
    window: Window, the_workbench: Workbench
) -> None:
    window.open("stale.py", "def area(width, height):\n    return width * height\n\n\n")
    num_before, num_heard = len(window.sights()), len(list(heard(the_workbench)))
    for text in (
        "def perimeter(width, height):\n",
        "half = width ",
        "- height",
        "\nreturn ",
        "abs",
        "(half)",
    ):
        window.type(text, delay_ms=90)
        window.page.wait_for_timeout(600)
        until(
            lambda: owes_nothing(list(heard(the_workbench))[num_heard:]), what="answer to all that was asked"
        )
        window.page.wait_for_timeout(200)
    shown = [sight for sight in window.sights()[num_before:] if sight.ghost]
    given = list(answers(heard(the_workbench)))
    assert len({sight.preview for sight in shown}) >= 3
    assert [sight for sight in shown if not any(agrees(sight, answer) for answer in given)] == []


def agrees(sight: Sight, answer: Answer) -> bool:
    """Whether what was on the screen is (a part of) what this answer would make of the document.

    A suggestion of several lines may be drawn in two frames: the line under the cursor, and those below. It
    stays where the typing goes along it into the next line, until the answer for that place is there.
    """
    first, *below = sight.preview.split("\n")
    wanted, *rest = answer.lines
    is_here = first in (wanted, sight.line) and below in ([], rest[: len(below)])
    is_typed_into = any(
        rest[i] == first and below in ([], rest[i + 1 :][: len(below)]) for i in range(len(rest))
    )
    return is_here or is_typed_into


def test_why_tells_what_ended_a_suggestion_in_a_sentence(window: Window) -> None:
    window.open("why.py", STATISTICS)
    window.type("def mean(values):\n")
    window.ghost_text()
    window.run("Slipstream: Explain the Suggestion Here")
    told = " ".join(window.choices())
    assert any(sentence in told for sentence in CUT_REASONS.values())
    assert not any(rule in told for rule in CUT_REASONS if "-" in rule)


def test_a_language_that_is_switched_off_says_so(window: Window) -> None:
    window.open("off.py", STATISTICS)
    window.run("Slipstream: Switch Suggestions On or Off for This Language")
    try:
        assert window.wait_for_status("circle-slash")
        window.type("def mean(values):\n")
        window.page.wait_for_timeout(1500)
        assert not window.has_ghost_text()
        window.run("Slipstream: Explain the Suggestion Here")
        assert "Suggestions are switched off for this language." in " ".join(window.choices())
    finally:
        window.run("Slipstream: Switch Suggestions On or Off for This Language")
    window.wait_until_ready()
    window.type("return ")
    assert window.ghost_text()


def test_the_statistics_page_opens_without_breaking_its_own_policy(window: Window) -> None:
    complaints: list[str] = []
    window.page.on("console", lambda message: complaints.append(message.text))
    window.open("figures.py", STATISTICS)
    window.run("Slipstream: Show Statistics")
    page = window.page.frame_locator("iframe.webview").frame_locator("iframe#active-frame")
    for part in ("Median", "Keys saved", "7 days"):
        page.locator(f"text={part}").first.wait_for()
    assert [text for text in complaints if "Content Security Policy" in text] == []
    window.press("Control+W")
