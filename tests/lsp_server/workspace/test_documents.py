"""A document follows its client's edits exactly, in each encoding, at a cost that the edit sets."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion_engine.text_window import without_surrogates
from lsp_server.workspace.documents import (
    MAX_PREFIX_CHARS,
    MAX_SUFFIX_CHARS,
    Document,
    Edit,
    PositionEncoding,
    index_of,
    units_of,
)
from lsp_server.workspace.lines import paired
from tests.growth import growth

ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")
CHARS = ["a", "(", " ", "é", "字", "😀", "\n", "\r\n", "\r", "\u2028", "\x0c"]

texts = st.lists(st.sampled_from(CHARS), max_size=12).map("".join)


class ReferenceClient:
    """An editor's simple method: the text as one string, and lines found anew for every edit."""

    def __init__(self, text: str, encoding: PositionEncoding) -> None:
        self.text = text
        self.encoding = encoding

    def place_of(self, offset: int) -> tuple[int, int]:
        before = self.text[:offset]
        ends = [match.end() for match in re.finditer("\r\n|\r|\n", self.text) if match.end() <= offset]
        start = ends[-1] if ends else 0
        return len(ends), units_of(before[start:], self.encoding)

    def offsets(self) -> list[int]:
        """The possible positions of a cursor: not within a `\\r\\n`."""
        return [i for i in range(len(self.text) + 1) if self.text[i - 1 : i + 1] != "\r\n"]

    def edit(self, start: int, end: int, text: str) -> Edit:
        change = Edit(self.place_of(start), self.place_of(end), text)
        self.text = self.text[:start] + text + self.text[end:]
        return change


@given(st.sampled_from(ENCODINGS), texts, st.data())
@settings(max_examples=300, deadline=None)
def test_any_edits_leave_the_text_that_the_client_has(
    encoding: PositionEncoding, text: str, data: st.DataObject
) -> None:
    client = ReferenceClient(text, encoding)
    document = Document("file:///a", "python", 1, text)
    for _ in range(data.draw(st.integers(1, 8))):
        start, end = sorted(data.draw(st.sampled_from(client.offsets())) for _ in range(2))
        document.apply(client.edit(start, end, data.draw(texts)), encoding)
        document.check_integrity()
        assert "".join(document.lines) == client.text


def test_a_line_that_shrinks_to_its_end_joins_the_line_above() -> None:
    document = Document("file:///a", "python", 1, "a\rb\n")
    document.apply(Edit((1, 0), (1, 1), ""), "utf-16")
    document.check_integrity()
    assert document.lines == ["a\r\n", ""]


@given(st.sampled_from(ENCODINGS), texts, st.data())
@settings(max_examples=200, deadline=None)
def test_a_snapshot_is_the_text_around_the_place(
    encoding: PositionEncoding, text: str, data: st.DataObject
) -> None:
    client = ReferenceClient(text, encoding)
    offset = data.draw(st.sampled_from(client.offsets()))
    document = Document("file:///a", "python", 1, text)
    snapshot = document.snapshot(*document.place(client.place_of(offset), encoding))
    assert snapshot.prefix == re.sub("\r\n|\r", "\n", text[:offset])
    assert snapshot.suffix == re.sub("\r\n|\r", "\n", text[offset:])
    assert snapshot.num_chars == len(snapshot.prefix + snapshot.suffix)


@given(st.sampled_from(ENCODINGS), st.text(max_size=20), st.data())
def test_columns_and_indices_are_inverse(encoding: PositionEncoding, line: str, data: st.DataObject) -> None:
    line = paired(line)
    index = data.draw(st.integers(0, len(line)))
    assert index_of(line, units_of(line[:index], encoding), encoding) == index
    assert index_of(line, units_of(line, encoding) + 7, encoding) == len(line)


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 2), ("utf-8", 3), ("utf-8", 4), ("utf-16", 2)])
def test_a_column_inside_a_character_means_its_start(encoding: PositionEncoding, column: int) -> None:
    assert index_of("a😀b", column, encoding) == 1


def test_halves_of_a_pair_that_arrive_one_after_the_other_become_one_character() -> None:
    document = Document("file:///a", "python", 1, "x")
    document.apply(Edit((0, 1), (0, 1), "\ud83d"), "utf-16")
    document.apply(Edit((0, 2), (0, 2), "\ude00"), "utf-16")
    assert document.lines == ["x😀"]


def test_a_lone_surrogate_never_reaches_the_engine() -> None:
    document = Document("file:///a", "python", 1, "x\ud83dy")
    assert document.snapshot(0, 3).prefix == without_surrogates("x\ud83dy") == "x\ufffdy"


@pytest.mark.parametrize("place", [(0, 99), (7, 0), (10**9, 10**9)])
def test_a_place_beyond_the_end_means_the_end(place: tuple[int, int]) -> None:
    document = Document("file:///a", "python", 1, "one\r\ntwo")
    line, column = document.place(place, "utf-16")
    assert (line, column) == ((0, 3) if place[0] == 0 else (1, 3))


def test_a_reversed_range_is_read_the_right_way() -> None:
    document = Document("file:///a", "python", 1, "abcdef")
    document.apply(Edit((0, 4), (0, 2), "X"), "utf-16")
    assert document.lines == ["abXef"]


def test_text_around_the_cursor_is_bounded_and_its_beginning_stays_while_typing() -> None:
    document = Document("file:///a", "python", 1, "x = 1234\n" * 50_000)
    line = 25_000
    before = document.snapshot(line, 0)
    for column in range(50):
        document.apply(Edit((line, column), (line, column), "y"), "utf-16")
    after = document.snapshot(line, 50)
    assert MAX_PREFIX_CHARS * 0.9 < len(before.prefix) <= MAX_PREFIX_CHARS
    assert MAX_SUFFIX_CHARS * 0.9 < len(before.suffix) <= MAX_SUFFIX_CHARS
    assert after.prefix == before.prefix + "y" * 50


def test_one_endless_line_is_bounded_too() -> None:
    document = Document("file:///a", "json", 1, "x" * 100_000)
    snapshot = document.snapshot(0, 80_000)
    assert (len(snapshot.prefix), len(snapshot.suffix)) == (MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS)


@pytest.mark.parametrize(
    ("contents", "newline"),
    [
        (["", "a\r\nb"], "\r\n"),
        (["a", "a\r\n"], "\r\n"),
        (["a\r\nb", ""], "\r\n"),
        (["a\r\nb", "a\nb"], "\n"),
        (["a\nb", "a\r\nb\n"], "\r\n"),
        (["", "a\rb"], "\n"),
        (["", "a"], "\n"),
        (["a\r\n" + "b\n" * 9], "\n"),
        (["a\n" + "b\r\n" * 9], "\r\n"),
        (["a\nb\r\nc\r\nd"], "\r\n"),
        (["a\r\nb\nc\nd"], "\n"),
        (["a\nb\r\n"], "\n"),
        (["a\r\nb\r\nc\n", "a\r\nb\nc\n"], "\n"),
        (["a\rb\rc\r\n"], "\n"),
        (["a\r\n\r\n\n"], "\r\n"),
    ],
)
def test_line_ends_are_those_that_the_document_has_now_or_had_last(contents: list[str], newline: str) -> None:
    document, replaced = (Document("file:///a", "python", 1, contents[0]) for _ in range(2))
    for text in contents[1:]:
        document.apply(Edit((0, 0), (9, 9), text), "utf-16")
        replaced.replace(text)
    assert (document.newline, replaced.newline, document.copy().newline) == (newline,) * 3


def test_typing_in_a_long_file_costs_no_more_than_in_a_shorter_one() -> None:
    """Ten times as many lines; both files are longer than what a snapshot shows."""

    def type_and_look(num_lines: int) -> None:
        document = documents[num_lines]
        for column in range(50):
            document.apply(Edit((num_lines // 2, column), (num_lines // 2, column), "x"), "utf-16")
            document.snapshot(num_lines // 2, column + 1)

    line = "    value = compute(previous, 12)  # é\n"
    documents = {
        num_lines: Document("file:///a", "python", 1, line * num_lines) for num_lines in (4_000, 40_000)
    }
    assert growth(type_and_look, 4_000, 40_000, below=3) < 3
