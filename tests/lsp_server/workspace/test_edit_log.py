"""Keystrokes become hunks: the old text, the new text, and no text that was undone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.next_edit.edits import Hunk
from lsp_server.workspace.documents import Document, Edit, LineChange
from lsp_server.workspace.edit_log import (
    JOIN_S,
    MAX_DOCUMENTS,
    MAX_HUNKS,
    MAX_LINE_CHARS,
    MAX_LINES,
    EditLog,
    LastDeletion,
    restores,
    trimmed,
)

TEXT = "".join(f"line {number}\n" for number in range(20))


class Typing:
    """One document, a clock and a log that follows it."""

    def __init__(self, text: str = TEXT) -> None:
        self.document = Document("a", "python", 0, text)
        self.log = EditLog()
        self.log.allow("a")
        self.now_s = 0.0

    def edit(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        self.now_s += 1
        self.log.changed("a", self.document.apply(Edit(start, end, text), "utf-16"), self.now_s)
        self.log.check_integrity()

    def type(self, line: int, column: int, text: str) -> None:
        for offset, char in enumerate(text):
            self.edit((line, column + offset), (line, column + offset), char)

    @property
    def hunks(self) -> list[tuple[int, tuple[str, ...], tuple[str, ...]]]:
        return [(hunk.first_line, hunk.old, hunk.new) for hunk in self.log.hunks()]


def test_the_keys_of_one_line_are_one_hunk() -> None:
    typing = Typing()
    typing.edit((3, 0), (3, 4), "")
    typing.type(3, 0, "row")
    assert typing.hunks == [(3, ("line 3",), ("row 3",))]


def test_another_line_is_another_hunk_and_the_last_one_typed_comes_last() -> None:
    typing = Typing()
    typing.type(9, 6, "!")
    typing.type(3, 6, "?")
    typing.type(9, 7, "!")
    assert typing.hunks == [(3, ("line 3",), ("line 3?",)), (9, ("line 9",), ("line 9!!",))]


def test_neighbouring_lines_that_are_each_changed_stay_apart() -> None:
    typing = Typing()
    typing.type(3, 6, "!")
    typing.type(4, 6, "!")
    assert [first for first, _, _ in typing.hunks] == [3, 4]


def test_a_hunk_follows_its_text_while_lines_come_and_go_above() -> None:
    typing = Typing()
    typing.type(9, 6, "!")
    typing.edit((2, 0), (2, 0), "new\nlines\n")
    typing.edit((0, 0), (1, 0), "")
    assert typing.hunks[0] == (10, ("line 9",), ("line 9!",))


def test_lines_that_are_written_one_after_the_other_are_one_hunk() -> None:
    typing = Typing()
    typing.edit((4, 6), (4, 6), "\n")
    typing.type(5, 0, "a")
    typing.edit((5, 1), (5, 1), "\n")
    typing.type(6, 0, "b")
    assert typing.hunks == [(5, (), ("a", "b"))]


def test_what_was_undone_is_gone() -> None:
    typing = Typing()
    typing.type(3, 6, "!?")
    typing.edit((3, 6), (3, 8), "")
    assert typing.hunks == []


def test_a_line_that_is_changed_again_much_later_is_changed_anew() -> None:
    typing = Typing()
    typing.type(3, 6, "!")
    typing.now_s += JOIN_S
    typing.type(3, 7, "?")
    assert typing.hunks == [(3, ("line 3!",), ("line 3!?",))]


def test_a_document_that_is_sent_whole_is_compared() -> None:
    log = EditLog()
    log.allow("a")
    log.replaced("a", ["1", "2", "3"], ["1", "two", "3"], 1.0)
    assert log.hunks() == (Hunk("a", 1, ("2",), ("two",), 1.0),)


def test_a_document_that_was_never_allowed_is_not_followed() -> None:
    log = EditLog()
    log.changed("a", LineChange(0, ("x",), ("y",)), 1.0)
    assert log.hunks() == ()


def test_nothing_is_kept_of_a_closed_document() -> None:
    typing = Typing()
    typing.type(3, 6, "!")
    typing.log.forget("a")
    typing.type(3, 7, "!")
    assert typing.hunks == []


@pytest.mark.parametrize(
    "pasted", ["x\n" * (MAX_LINES + 1), "x" * (MAX_LINE_CHARS + 1)], ids=["many lines", "a long line"]
)
def test_a_change_that_is_no_edit_to_repeat_is_not_kept(pasted: str) -> None:
    typing = Typing()
    typing.edit((3, 0), (3, 0), pasted)
    assert typing.hunks == []


def test_documents_and_hunks_are_bounded() -> None:
    log = EditLog()
    for number in range(MAX_DOCUMENTS + 3):
        log.allow(str(number))
        for line in range(MAX_HUNKS + 3):
            log.changed(str(number), LineChange(2 * line, ("x",), ("y",)), float(line))
    log.check_integrity()
    assert len(log.documents) == MAX_DOCUMENTS
    assert len(log.hunks()) == MAX_DOCUMENTS * MAX_HUNKS


def test_equal_lines_at_the_ends_of_a_change_are_left_out() -> None:
    assert trimmed(LineChange(4, ("a", "b", "c"), ("a", "x", "y", "c"))) == LineChange(5, ("b",), ("x", "y"))
    assert trimmed(LineChange(4, ("a", "a"), ("a",))) == LineChange(5, ("a",), ())


edits = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.integers(0, 3),
        st.integers(0, 2),
        st.integers(0, 3),
        st.sampled_from(["x", "\n", "", "y\n", "a\nb\nc", "1", "\r\n"]),
    ),
    max_size=MAX_HUNKS,
)


@given(edits, st.integers(1, 10))
def test_the_hunks_taken_back_give_the_text_before_them(
    edits: list[tuple[int, int, int, int, str]], num_lines: int
) -> None:
    typing = Typing("".join(f"{number}\n" for number in range(num_lines)))
    before = typing.document.contents()
    for line, column, more, end_column, text in edits:
        typing.edit((line, column), (line + more, end_column), text)
    lines = list(typing.document.contents())
    for hunk in sorted(typing.log.hunks(), key=lambda hunk: (-hunk.first_line, -hunk.end_line)):
        assert tuple(lines[hunk.first_line : hunk.end_line]) == hunk.new
        lines[hunk.first_line : hunk.end_line] = hunk.old
    assert tuple(lines) == before


@pytest.mark.parametrize(
    ("text", "edits", "cursor", "deleted"),
    [
        ("return total * tax\n", [((0, 12), (0, 18), "")], (0, 12), " * tax"),
        ("return total * tax\n", [((0, at), (0, at + 1), "") for at in range(17, 11, -1)], (0, 12), " * tax"),
        ("return total * tax\n", [((0, 12), (0, 13), "")] * 6, (0, 12), " * tax"),
        ("aaaa", [((0, 1), (0, 3), "")], (0, 2), "aa"),
        ("a(b)", [((0, 2), (0, 3), "")], (0, 2), "b"),
        ("f(\n    a,\n    b,\n)\n", [((1, 0), (2, 0), "")], (1, 0), "    a,\n"),
        ("one\ntwo\n", [((0, 3), (1, 3), "")], (0, 3), "\ntwo"),
        ("one\ntwo", [((1, 0), (1, 3), ""), ((0, 3), (1, 0), "")], (0, 3), "\ntwo"),
        ("one\ntwo", [((0, 0), (1, 3), "")], (0, 0), "one\ntwo"),
        ("return total", [((0, 12), (0, 12), " * tax"), ((0, 12), (0, 18), "")], (0, 12), " * tax"),
        ("return total * tax\n", [((0, 12), (0, 18), "")], (0, 11), ""),
        ("return total * tax\n", [((0, 12), (0, 18), "")], (1, 0), ""),
        ("return total * tax\n", [((0, 12), (0, 18), ""), ((0, 12), (0, 12), " ")], (0, 13), ""),
        ("return total * tax\n", [((0, 12), (0, 18), "s")], (0, 13), ""),
        ("a = 1\nb = 2\n", [((0, 3), (0, 5), ""), ((1, 3), (1, 5), "")], (0, 3), ""),
    ],
)
def test_what_was_deleted_last_is_known_where_it_stood(
    text: str,
    edits: list[tuple[tuple[int, int], tuple[int, int], str]],
    cursor: tuple[int, int],
    deleted: str,
) -> None:
    document, deletion = Document("a", "python", 0, text), LastDeletion()
    for start, end, new in edits:
        deletion.changed("a", document.apply(Edit(start, end, new), "utf-16"), 0.0)
    assert deletion.text_at(document, *cursor) == deleted
    assert deletion.text_at(Document("b", "python", 0, text), *cursor) == ""


@pytest.mark.parametrize(
    ("suggestion", "deleted", "is_restored"),
    [
        (" * tax", " * tax", True),
        (" * tax)\nprint(total)", " * tax", True),
        (" * ", " * tax", True),
        (" * tax_rate", " * tax", False),
        (" + tax", " * tax", False),
        ("* tax", " * tax\n", True),
        ("otal", "o", False),
        ("", " * tax", False),
        ("total", "", False),
    ],
)
def test_a_suggestion_that_gives_deleted_text_back_is_known(
    suggestion: str, deleted: str, is_restored: bool
) -> None:
    assert restores(suggestion, deleted) == is_restored
