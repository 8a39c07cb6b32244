"""The typist who reads: the accepted texts, the time before, and the figures of the screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.scripted_typing.screen import (
    READ_MS,
    ScreenLog,
    Seen,
    ShownSuggestion,
    ends_unit,
    num_beyond_word,
    sum_of,
)
from lsp_server.scripted_typing.typing_plan import Stroke, TypingPlan
from lsp_server.scripted_typing.typist import TYPISTS, Reader

TEXT = "def area(width, height):\n    total_area = width * height\n    return total_area\n"
LONG = READ_MS


def reader_at(offset: int, text: str = TEXT) -> Reader:
    """A reader who has typed up to an offset, without errors."""
    strokes = tuple(Stroke("type", letter, at, at + 1, 1.0, 0.0) for at, letter in enumerate(text))
    person = TYPISTS["reader"].at_start(TypingPlan(text, 0, len(text), strokes, {}))
    assert isinstance(person, Reader)
    while person.offset < offset:
        person.press()
    return person


def accepted(typed: str, shown: str, visible_ms: float = LONG) -> str | None:
    """Return the accepted part of a text that is shown after some typed text."""
    person, suggestion = reader_at(len(typed)), ShownSuggestion(shown, 0)
    assert TEXT.startswith(typed)
    person.see(suggestion, visible_ms)
    key = person.consider(suggestion)
    return key.text if key else None


HEAD = "def area(width, height):\n    "


@pytest.mark.parametrize(
    ("typed", "shown", "taken"),
    [
        (HEAD, "total_area = width * height", "total_area = width * height"),
        (HEAD, TEXT[len(HEAD) :], TEXT[len(HEAD) :]),
        (HEAD + "tot", "al_area", "al_area"),
        (HEAD + "tot", "al_ar", None),
        (HEAD + "total_area", " =", None),
        (HEAD + "total_area", " = wid", None),
        (HEAD + "total_area", " = width *", " = width *"),
        (HEAD + "total_area", " = width * hei", " = width * hei"),
        (HEAD + "total_area", " = width * wrong", " = width"),
        (HEAD + "total_area", " = wid(wrong", None),
    ],
)
def test_a_text_is_accepted_for_its_unit_or_its_length(typed: str, shown: str, taken: str | None) -> None:
    assert accepted(typed, shown) == taken


def test_a_text_is_accepted_after_a_look_alone() -> None:
    shown = "total_area = width * height"
    assert accepted(HEAD, shown, visible_ms=READ_MS - 1) is None
    person = reader_at(len(HEAD))
    for typed in range(3):
        left = ShownSuggestion(shown[typed:], 0)
        person.see(left, 100.0)
        is_taken = person.consider(left) is not None
        assert is_taken == (typed == 2)  # the text was read while its beginning was typed
        person.press()


def test_a_second_tab_needs_a_new_word() -> None:
    person = reader_at(len(HEAD))
    first = ShownSuggestion("total_area = wid", 0)
    person.see(first, LONG)
    key = person.consider(first)
    assert key is not None
    person.accept(key)
    rest = ShownSuggestion("th * height", 0)
    person.see(rest, LONG)
    assert person.consider(rest) is None
    while not TEXT[: person.offset].endswith("width "):
        person.press()
    rest = ShownSuggestion("* height", 0)
    person.see(rest, LONG)
    assert person.consider(rest) is not None


def test_the_reader_pauses_at_line_ends_and_after_the_head_of_a_block() -> None:
    person, pauses = reader_at(0), {}
    while (stroke := person.next_stroke) is not None:
        person.press()
        pauses[stroke.after] = person.pause_after(stroke)
    head, line = len(HEAD) - 4, TEXT.index("\n    return") + 1
    assert pauses[head] > pauses[line] > pauses[line - 1] > pauses[5] == 1.0


@pytest.mark.parametrize(
    ("before", "text", "after", "is_unit"),
    [
        ("x = ", "compute(a)", "\n", True),
        ("x = ", "compute", "(", True),
        ("x = ", "comp", "u", False),
        ("x = ", "compute(", "a", False),
        ("print(", '"', "N", False),
        ("print(", '"No readings', " ", False),
        ("print(", '"No readings"', ")", True),
        ("", "return", " ", False),
        ("", "return x", "\n", True),
        ("x", " =", " ", False),
        ("if a:", "\n    return None", "\n", True),
        ("# don", "'t do this", "\n", True),
        ("f(", "a, bcd,", " ", True),
        ("x = self", ".", "a", False),
        ("x = ", "12", "\n", False),
        ("    // returns the rest", " of it.", "\n", True),
        ("    // returns the rest", " of it.", "", True),
        ("x = self", ".part.", "", False),
        ('    """The set of', " output modes", "", True),
        ('    """The set of', " outp", "u", False),
        ("", "/**", "\n", True),
        ("if (x)", " {", "\n", False),
        ("for x in y", ": {", "", False),
        ("if (ready", " && set) {", "", True),
        ("typedef", " struct {", "", True),
    ],
)
def test_units_end_where_a_person_stops_reading(before: str, text: str, after: str, is_unit: bool) -> None:
    assert ends_unit(before, text, after) == is_unit


@pytest.mark.parametrize(("before", "text", "num"), [("re", "turn x", 2), ("a ", "b c", 3), ("", "ab", 2)])
def test_the_rest_of_a_word_is_not_beyond_it(before: str, text: str, num: int) -> None:
    assert num_beyond_word(before, text) == num


def test_the_screen_counts_texts_and_their_time() -> None:
    log = ScreenLog(pace_ms=200.0)
    log.saw(Seen("abcd", 0, True), "x", 300.0)
    log.saw(Seen("bcd", 0, True), "a", 100.0)  # its beginning was typed
    log.saw(Seen("xyz", 3, False), "b", 100.0)  # broken: the key was right
    log.saw(Seen("cq", 1, False), "z", 100.0)  # replaced: the key was another one
    log.saw(Seen(), "c", 100.0)  # broken
    assert (log.num_texts, log.num_units, log.num_replaced, log.num_broken) == (3, 1, 3, 2)
    assert (log.num_wrong, log.num_read_in_vain) == (4, 1)
    assert (log.char_ms, log.wrong_char_ms) == (1200 + 300 + 300 + 200, 300 + 100)
    log.saw(Seen("hello()", 0, True), "d", 250.0)
    log.accepted(7, 7)
    found = log.figures(20)
    assert found["seconds_saved"] == pytest.approx((7 * 200 - 200 - 250 - 250) / 1e3)
    assert (found["keys_saved"], found["chars_per_accepted"]) == (6, 7.0)


@given(
    st.lists(st.tuples(st.text("ab", max_size=3), st.text("ab", max_size=4), st.floats(0, 500)), max_size=12)
)
def test_sums_of_logs_are_the_sums_of_their_parts(moments: list[tuple[str, str, float]]) -> None:
    logs = [ScreenLog(), ScreenLog()]
    for at, (typed, text, ms) in enumerate(moments):
        logs[at % 2].saw(Seen(text, len(text) // 2, bool(at % 2)), typed, ms)
    total = sum_of(logs)
    assert total.num_texts == sum(log.num_texts for log in logs)
    assert total.wrong_char_ms <= total.char_ms
    assert total.num_broken <= total.num_replaced <= total.num_texts + len(moments)
