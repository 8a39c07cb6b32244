"""The region of a cursor: its language, whether it is in code or text, the open marks, and which are closed
later.

The region is found once per request, from the document alone. Generated text is scanned from that state.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from completion_engine.languages.modes import reach_of
from completion_engine.languages.open_marks import Event, Open, Stack, language_at, num_brackets, text_at
from completion_engine.languages.scanner import scan
from completion_engine.languages.table import identifier_of, language_of
from completion_engine.request import Surroundings
from completion_engine.suggestions.checkpoints import open_after_lines, open_before, tail_of
from completion_engine.suggestions.closing import closed_by
from completion_engine.text_window import (
    TAB_WIDTH,
    CursorContext,
    indent_width,
    leading_blanks,
)

_MAX_LINE_CHARS = 400
_DASHES = re.compile(r"[ ]*(?:- +)+")
_TOKEN = re.compile(r"</?[\w:.-]*|#?\w+|;;|\S")


@dataclass(frozen=True, slots=True)
class Line:
    """One generated line, `text[start:end]` without its newline; the first one begins at the cursor.

    `depth` is the number of brackets open at its start, `depth_end` at its end, and `innermost` is the last
    open bracket. `inside` and `inside_end` are the string or comment open at its start and end. The comment
    at its end begins at `code_end`. `language_end` is the language of the text after it.
    """

    start: int
    end: int
    is_ended: bool
    depth: int
    depth_end: int
    innermost: str
    inside: Open | None
    inside_end: Open | None
    code_end: int
    language_end: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The scan of generated text from the cursor on: its events, its lines, and the marks open at its end."""

    text: str
    events: list[Event]
    lines: list[Line]
    stack: Stack


class CursorRegion:
    """The scanned surroundings of a cursor.

    `closed` maps the start of each mark that is open at the cursor and closed after it to the offset after
    the closing mark. `is_from_start` is set if the scan began at the document's start.
    """

    def __init__(self, cursor: CursorContext) -> None:
        self.cursor = cursor
        # imbalances of texts at the cursor; see `rest_of_line`
        self.imbalances: dict[tuple[str, int], int] = {}
        self.num_marks_read = 0  # marks read to compute them
        self._last_reading: Reading | None = None
        self.document_language = identifier_of(cursor.language) if cursor.language else ""
        self.before, self.after = cursor.before, cursor.after
        self.line_prefix, self.line_suffix = cursor.line_prefix, cursor.line_suffix
        self.indent = indent_width(self.line_prefix)
        self.is_blank_line = not self.line_prefix.strip()
        self.tail = tail_of(cursor.prefix)
        self.is_from_start = len(cursor.prefix) == len(self.before)
        self.outer = open_before(self.document_language, cursor)
        self.stack = _scanned(
            self.document_language, self.before, self.outer, is_from_start=self.is_from_start
        )
        if self.is_blank_line:
            _leave_indented(self.stack, self.before, self.line_prefix)
        self.language_id = language_at(self.stack, self.document_language)
        self.language = language_of(self.language_id)
        line_start = -len(self.line_prefix)
        self.line_depth = sum(e.is_bracket for e in self.stack if e.start < line_start)
        self.closed = closed_by(
            self.document_language, self.before, self.tail, cursor.suffix, len(self.after), self.stack
        )
        self.num_auto_closed = sum(
            end <= len(self.line_suffix) for start, end in self.closed.items() if self._is_bracket(start)
        )

    @cached_property
    def part(self) -> tuple[str, str]:
        """The text before and after the cursor, in the text window, of the part in the cursor's language."""
        entry = next((entry for entry in reversed(self.stack) if entry.pair.kind == "region"), None)
        if entry is None:
            return self.before, self.after
        start = max(0, len(self.before) + entry.start + len(entry.mark))
        end, _ = reach_of(entry.pair, entry.tag).end_in(self.after, 0)
        return self.before[start:], self.after[:end]

    def _is_bracket(self, start: int) -> bool:
        return any(entry.start == start and not entry.is_text for entry in self.stack)

    @property
    def inside(self) -> Open | None:
        """The string or comment around the cursor; None in code."""
        return text_at(self.stack)

    @property
    def surroundings(self) -> Surroundings:
        """The kind of text around the cursor. A Python docstring is a string, code in a template string is
        code.
        """
        if self.inside is None:
            return "code"
        return "comment" if self.inside.is_comment else "string"

    @cached_property
    def indent_unit(self) -> int:
        """The columns of one step of indentation: the most common one before the cursor in the part in its
        language, else the one at the cursor, else `TAB_WIDTH`.
        """
        widths = [indent_width(line) for line in self.part[0].split("\n") if line.strip()]
        steps = Counter(b - a for a, b in pairwise(widths) if 0 < b - a <= 8)
        if steps:
            return steps.most_common(1)[0][0]
        num_deeper = self.indent - indent_width(self.line_above())
        return num_deeper if 0 < num_deeper <= 8 else TAB_WIDTH

    @cached_property
    def outer_on_line(self) -> tuple[frozenset[int], int]:
        """The starts of marks that are opened on lines above or closed on lines below, and the number of
        these that the rest of the line closes.
        """
        line_start, line_end = -len(self.line_prefix), len(self.line_suffix)
        starts = (entry.start for entry in self.stack)
        outer = frozenset(at for at in starts if at < line_start or self.closed.get(at, 0) > line_end)
        return outer, sum(0 < self.closed.get(at, 0) <= line_end for at in outer)

    def read(self, text: str) -> Reading:
        """Scan text written at the cursor."""
        if self._last_reading is None or self._last_reading.text != text:
            self._last_reading = self._read(text)
        return self._last_reading

    def _read(self, text: str) -> Reading:
        stack = list(self.stack)
        events: list[Event] = []
        lines: list[Line] = []
        start, depth, inside, innermost = 0, num_brackets(stack), self.inside, _innermost(stack)
        depth_end, code_end = depth, -1
        for event in scan(self.document_language, text, stack, before=self.tail):
            events.append(event)
            depth_end -= event.num_dropped
            entry = event.entry
            if event.kind in ("open", "close") and entry and entry.is_bracket:
                depth_end += 1 if event.kind == "open" else -1
            elif event.kind == "open" and entry and entry.is_comment and entry.pair.ends_with_line:
                code_end = event.start
            if event.kind != "newline":
                continue
            end, after = event.start, text_at(stack)
            code_end = end if code_end < start else code_end
            language = language_at(stack, self.document_language)
            lines.append(
                Line(start, end, True, depth, depth_end, innermost, inside, after, code_end, language)
            )
            start, depth, inside, innermost = event.end, depth_end, after, _innermost(stack)
        code_end = len(text) if code_end < start else code_end
        language, after = language_at(stack, self.document_language), text_at(stack)
        last = Line(start, len(text), False, depth, depth_end, innermost, inside, after, code_end, language)
        return Reading(text, events, [*lines, last], stack)

    def line_text(self, reading: Reading, index: int) -> str:
        """Return a generated line; the first one includes the text left of the cursor."""
        line = reading.lines[index]
        return ("" if index else self.line_prefix) + reading.text[line.start : line.end]

    def line_code(self, reading: Reading, index: int) -> str:
        """Like `line_text`, without the comment at its end and the blanks before that.

        The middle of an overlong line is left out: expressions over it would take too long.
        """
        line = reading.lines[index]
        before = "" if index else self.line_prefix
        if len(before) > _MAX_LINE_CHARS:
            before = before[: _MAX_LINE_CHARS // 2] + before[-_MAX_LINE_CHARS // 2 :]
        code = (before + reading.text[line.start : line.code_end]).rstrip()
        return (
            code
            if len(code) <= _MAX_LINE_CHARS
            else code[: _MAX_LINE_CHARS // 2] + code[-_MAX_LINE_CHARS // 2 :]
        )

    def item_indent(self, line: str) -> int:
        """Return the indentation of what a line holds, after the dashes that begin items."""
        dashes = _DASHES.match(line) if self.language.has_dashes else None
        return dashes.end() if dashes else indent_width(line)

    def line_above(self, width: int | None = None) -> str:
        """Return the nearest non-blank line above the cursor's, indented by less than `width` if that is
        given.
        """
        for line in reversed(self.before.split("\n")[:-1]):
            if line.strip() and (width is None or indent_width(line) < width):
                return line
        return ""

    def code_above(self) -> str:
        """Return the nearest non-blank line above the cursor's, without comments at its end."""
        line = self.line_above().rstrip()
        line_start = self.before.rfind(line, 0, len(self.before) - len(self.line_prefix))
        spans: list[tuple[int, int]] = []
        for event in scan(self.document_language, self.before, list(self.outer)):
            if event.entry and event.start >= line_start and event.entry.is_comment:
                end = event.start if event.kind == "newline" else event.end
                spans.append((max(0, event.entry.start - line_start), end - line_start))
        for start, end in reversed(spans):
            if not line[end:].strip():
                line = line[:start].rstrip() or leading_blanks(line)
        return line

    @cached_property
    def lines_below(self) -> list[str]:
        """The non-blank lines below the cursor's, in the text window."""
        return [line for line in self.after.split("\n")[1:] if line.strip()]


def _scanned(language: str, text: str, outer: tuple[Open, ...], *, is_from_start: bool) -> Stack:
    """The marks that are open at the end of a text, with offsets from there."""
    lines = text[: text.rfind("\n") + 1]
    line = text[len(lines) :]
    before = "" if is_from_start else "\n"
    opened = open_after_lines(language, lines, outer, before)
    stack = [entry._replace(start=entry.start - len(lines)) for entry in opened]
    for _ in scan(language, line, stack, before=tail_of(before + lines)):
        pass
    return [entry._replace(start=entry.start - len(line)) for entry in stack]


def _leave_indented(stack: Stack, before: str, line_prefix: str) -> None:
    """Drop parts that end by indentation where the cursor stands outside of it, after a blank line."""
    above = before[: len(before) - len(line_prefix)].removesuffix("\n").rpartition("\n")[2]
    while stack and "<width>" in stack[-1].pair.closes and not above.strip():
        if indent_width(line_prefix) > len(stack[-1].tag.expandtabs(TAB_WIDTH)):
            break
        stack.pop()


def _innermost(stack: Stack) -> str:
    return next((entry.mark for entry in reversed(stack) if entry.is_bracket), "")


def first_word(text: str, *, is_ended: bool) -> str:
    """Return the first word or sign of a line; empty while it may still grow."""
    stripped = text.lstrip()
    match = _TOKEN.match(stripped)
    if match is None or (match.end() == len(stripped) and not is_ended and match.group() not in ")]}{"):
        return ""
    return match.group()
