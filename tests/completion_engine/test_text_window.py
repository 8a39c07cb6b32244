"""The window around a cursor: whole lines within its size, and no closing marks that an editor inserted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.text_window import (
    TextWindow,
    indent_width,
    is_closing_marks,
    leading_blanks,
    without_surrogates,
)

texts = st.text(st.sampled_from("ab )]\n"), max_size=80)
windows = st.builds(TextWindow, st.integers(1, 40), st.integers(1, 40))


@pytest.mark.parametrize(
    ("device", "sizes"), [("cpu", (2400, 800)), ("cuda", (12_000, 3000)), ("remote", (12_000, 3000))]
)
def test_a_device_has_its_own_window_and_settings_replace_it(device: str, sizes: tuple[int, int]) -> None:
    assert TextWindow.for_device(device) == TextWindow(*sizes)
    assert TextWindow.for_device(device, 7) == TextWindow(7, sizes[1])
    assert TextWindow.for_device(device, 0, 9) == TextWindow(sizes[0], 9)


def test_a_window_becomes_smaller_or_larger() -> None:
    window = TextWindow(10, 7)
    assert (window.halved(), window.scaled(0.25), window.scaled(2)) == (
        TextWindow(5, 3),
        TextWindow(2, 2),
        TextWindow(20, 14),
    )


@pytest.mark.parametrize(("text", "is_cut"), [("abc", False), ("abcd", True), ("ab\ncd", False)])
def test_a_line_is_cut_where_the_window_begins_within_it(text: str, is_cut: bool) -> None:
    assert TextWindow(3, 1).cuts_line(text) == is_cut


@pytest.mark.parametrize(
    ("line", "blanks", "width"), [("x", "", 0), ("  x ", "  ", 2), (" \tx", " \t", 4), ("\t \n", "\t ", 5)]
)
def test_a_line_is_indented_by_its_blanks(line: str, blanks: str, width: int) -> None:
    assert (leading_blanks(line), indent_width(line)) == (blanks, width)


@given(windows, texts)
def test_text_before_the_cursor_is_whole_lines_unless_one_is_too_long(window: TextWindow, text: str) -> None:
    shown, start = window.before(text), window.start(text)
    assert text[start:] == shown
    assert len(shown) <= window.num_before
    if window.cuts_line(text):
        assert len(shown) == window.num_before and "\n" not in shown
    elif start:
        assert text[start - 1] == "\n"
        line_before = text[: start - 1].rpartition("\n")[2]
        assert len(line_before) + 1 + len(shown) >= window.num_before


@given(windows, texts)
def test_text_after_the_cursor_hides_closing_marks_and_ends_with_a_line(
    window: TextWindow, text: str
) -> None:
    rest, line_end, following = text.partition("\n")
    visible = line_end + following if is_closing_marks(rest) else text
    shown = window.after(text)
    assert visible.startswith(shown)
    assert len(shown) <= window.num_after
    if len(visible) <= window.num_after:
        assert shown == visible
    else:
        assert shown.endswith("\n") or (len(shown) == window.num_after and "\n" not in shown)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [("plain", "plain"), ("né", "né"), ("a\ud800b", "a\ufffdb"), ("\U0001f9ee", "\U0001f9ee")],
)
def test_lone_surrogates_are_replaced(text: str, cleaned: str) -> None:
    assert without_surrogates(text) == cleaned
