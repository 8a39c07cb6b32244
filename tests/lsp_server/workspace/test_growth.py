"""A suggestion grows while the user looks: when the client is notified, and what stays on the screen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from completion_engine.request import Completion, CompletionRequest, CompletionSegment, CompletionStats
from lsp_server.workspace import growth
from lsp_server.workspace.documents import Document
from lsp_server.workspace.growth import MAX_NOTICES, SuggestionGrowth
from lsp_server.workspace.session import Session

URI, PLACE = "file:///a.py", (0, 8)


class Window:
    """A document with a cursor in it, and the notifications of its client."""

    def __init__(self, *, is_wanted: bool = True) -> None:
        self.session, self.heard = Session(), list[dict[str, Any]]()
        self.growth = SuggestionGrowth(self.session, self.heard.append)
        self.growth.is_wanted = is_wanted
        self.session.put(Document(URI, "python", 3, "return x\n"))
        snapshot = self.session.snapshot(URI, PLACE)
        assert snapshot is not None
        self.snapshot = snapshot
        self.request = CompletionRequest(snapshot.prefix, snapshot.suffix, "python", URI)

    def answer(self, text: str, *, is_provisional: bool = False, **changes: Any) -> str:
        """Return the text that is shown of an answer of the engine."""
        stats = CompletionStats(finish_reason="deadline", is_provisional=is_provisional)
        request = replace(self.request, **changes)
        return self.growth.answered(self.snapshot, PLACE, request, Completion(text, 0, stats)).text

    def grow(self) -> None:
        self.growth.grew(self.request)


def test_the_client_is_notified_at_its_cursor_and_twice_at_most() -> None:
    window = Window()
    text = window.answer("s")
    for _ in range(5):
        window.grow()
        window.grow()  # the client has not asked again yet
        text = window.answer(f"{text}s")
    assert len(window.heard) == MAX_NOTICES
    assert window.heard[0] == {
        "textDocument": {"uri": URI, "version": 3},
        "position": {"line": 0, "character": 8},
    }


def test_nobody_is_notified_who_has_not_asked_for_it_or_has_moved_on() -> None:
    silent = Window(is_wanted=False)
    silent.answer("s")
    silent.grow()
    explicit = Window()
    explicit.answer("s", is_explicit=True)
    explicit.grow()
    changed = Window()
    changed.answer("s")
    changed.session.put(Document(URI, "python", 4, "return xy\n"))
    changed.grow()
    elsewhere = Window()
    elsewhere.answer("s")
    elsewhere.growth.grew(replace(elsewhere.request, prefix="return"))
    closed = Window()
    closed.answer("s")
    closed.session.drop(URI)
    closed.grow()
    never = Window()
    never.grow()
    assert not any(window.heard for window in (silent, explicit, changed, elsewhere, closed, never))


@pytest.mark.parametrize(
    ("first", "then", "is_provisional", "is_late", "shown"),
    [
        ("s", "s + t", False, True, "s + t"),
        ("s", "other", False, False, "s"),
        ("s", "other", True, False, "other"),
        ("s", "other", True, True, "s"),
        ("s", "", True, False, "s"),
        ("", "other", False, True, "other"),
    ],
)
def test_the_text_on_the_screen_stays_the_beginning(
    monkeypatch: pytest.MonkeyPatch, first: str, then: str, is_provisional: bool, is_late: bool, shown: str
) -> None:
    """Within the first half second, the answer to a better prompt may replace it."""
    monkeypatch.setattr(growth, "REPLACE_S", -1.0 if is_late else 600.0)
    window = Window()
    window.answer(first, is_provisional=is_provisional)
    window.grow()
    assert window.answer(then) == shown
    assert window.answer("by itself") == "by itself"  # the client asks without a notification


def test_a_new_place_begins_anew() -> None:
    window = Window()
    window.answer("s")
    assert window.growth.may_grow(window.snapshot)
    window.grow()
    moved = replace(window.snapshot, version=4)
    assert (
        window.growth.answered(moved, PLACE, window.request, Completion("x", 0, CompletionStats())).text
        == "x"
    )
    assert not window.growth.may_grow(window.snapshot)


@pytest.mark.parametrize(
    ("first", "typed", "then", "changes", "shown"),
    [
        pytest.param("total(a)", "to", "tal(a, b)", {}, "tal(a)", id="another text"),
        pytest.param("total(a)", "to", "", {}, "tal(a)", id="none"),
        pytest.param("total(a)", "to", "tal(a) + 1", {}, "tal(a) + 1", id="a longer one"),
        pytest.param("total(a)", "ta", "ble", {}, "ble", id="the key does not agree"),
        pytest.param("total(a)", "total(a)", " + 1", {}, " + 1", id="all of it"),
        pytest.param("total(a)", "to", "other", {"suffix": ")\n"}, "other", id="the text after it changed"),
        pytest.param("total(a)", "to", "other", {"is_explicit": True}, "other", id="by a key"),
        pytest.param("total(a)", "", "other", {}, "other", id="another version"),
    ],
)
def test_a_text_stays_while_its_beginning_is_typed(
    first: str, typed: str, then: str, changes: dict[str, Any], shown: str
) -> None:
    window = Window()
    window.answer(first)
    moved = replace(window.snapshot, version=4)
    asked = replace(window.request, prefix=window.request.prefix + typed, **changes)
    found = window.growth.answered(moved, PLACE, asked, Completion(then, 0, CompletionStats()))
    assert found.text == shown


def test_what_stays_keeps_its_sources() -> None:
    window = Window()
    segments = CompletionSegment("tot", "ngram", path="b.py"), CompletionSegment("al(a)", "target")
    shown = Completion("total(a)", 1, CompletionStats(), segments)
    window.growth.answered(window.snapshot, PLACE, window.request, shown)
    moved = replace(window.snapshot, version=4)
    asked = replace(window.request, prefix=window.request.prefix + "to")
    kept = window.growth.answered(moved, PLACE, asked, Completion("x", 0, CompletionStats()))
    assert (kept.text, kept.num_replaced) == ("tal(a)", 1)
    assert kept.segments == (replace(segments[0], text="t"), segments[1])


@pytest.mark.parametrize("rule", ["in-comment", "just-deleted", "no-change"])
def test_what_stays_is_not_shown_where_nothing_belongs(rule: str) -> None:
    window = Window()
    window.answer("total(a)")
    asked = replace(window.request, prefix=window.request.prefix + "to")
    nothing = Completion("", 0, CompletionStats(), rule=rule)
    assert window.growth.answered(replace(window.snapshot, version=4), PLACE, asked, nothing).text == ""


def test_the_other_choices_end_with_the_key_that_takes_one_up() -> None:
    window = Window()
    choices = Completion(
        "total(a)", 0, CompletionStats(), alternatives=(Completion("sum(a)", 0, CompletionStats()),)
    )
    chosen = replace(window.request, is_explicit=True)
    window.growth.answered(window.snapshot, PLACE, chosen, choices)
    asked = replace(window.request, prefix=window.request.prefix + "to")
    cut = Completion("tal", 0, CompletionStats())
    found = window.growth.answered(replace(window.snapshot, version=4), PLACE, asked, cut)
    assert (found.text, found.alternatives) == ("tal(a)", ())


def test_another_selected_item_of_a_menu_is_another_place() -> None:
    """The prefix holds the selected item, and a client that was notified may ask with another one."""
    window = Window()
    window.request = replace(window.request, prefix=f"{window.request.prefix}getcwd")
    window.answer("()")
    window.grow()
    assert window.answer(".join(a)", prefix=window.snapshot.prefix + "path") == ".join(a)"
    assert window.answer("environ", prefix=window.snapshot.prefix) == "environ"
