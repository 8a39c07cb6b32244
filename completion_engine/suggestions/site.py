"""Owns the facts about a place that all rules share, computed once: what is open at the cursor and what
of it the text after the cursor closes; and the same scan for generated text. Decides nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from completion_engine.request import Surroundings
from completion_engine.suggestions.closing import closed_by
from completion_engine.suggestions.cursor_context import (
    TAB_WIDTH,
    CursorContext,
    indent_width,
    leading_blanks,
)
from completion_engine.suggestions.lexer import Event, Stack, num_brackets, scanner_of

_MAX_LINE_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Line:
    """One generated line, `text[start:end]` without its newline; the first one begins at the cursor.

    `depth` counts the brackets open at its start, `depth_end` at its end; `innermost` is the last of
    them. `inside` and `inside_end` name the string or comment open there. Comments begin at `code_end`.
    """

    start: int
    end: int
    is_ended: bool
    depth: int
    depth_end: int
    innermost: str
    inside: str
    inside_end: str
    code_end: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Generated text as scanned from the cursor on: its events, its lines, what is open at its end."""

    text: str
    events: list[Event]
    lines: list[Line]
    stack: Stack


class Site:
    """A place with what the scan of its surroundings found."""

    def __init__(self, cursor: CursorContext) -> None:
        self.cursor = cursor
        self.language = cursor.traits
        self.scanner = scanner_of(self.language)
        self.before = cursor.before
        self.after = cursor.after
        self.line_prefix = cursor.line_prefix
        self.line_suffix = cursor.line_suffix
        self.indent = indent_width(self.line_prefix)
        self.is_blank_line = not self.line_prefix.strip()
        stack: Stack = []
        for _ in self.scanner.scan(self.before, stack):
            pass
        self.stack = [type(e)(e.mark, e.start - len(self.before)) for e in stack]
        line_start = -len(self.line_prefix)
        self.line_depth = sum(e.is_bracket for e in self.stack if e.start < line_start)
        self.closed = closed_by(self.scanner, self.before, cursor.suffix, len(self.after), self.stack)
        self.num_auto_closed = sum(end <= len(self.line_suffix) for end in self.closed.values())

    @property
    def inside(self) -> str:
        """The mark of the string or comment that the cursor stands in, or empty."""
        return self.stack[-1].mark if self.stack and not self.stack[-1].is_bracket else ""

    @property
    def surroundings(self) -> Surroundings:
        """What the cursor stands in; a Python docstring is a string, code in a template string is code."""
        if not self.inside:
            return "code"
        return "comment" if self.scanner.is_comment(self.inside) else "string"

    @property
    def indent_unit(self) -> int:
        """The columns of one step of indentation in the window: the commonest step in, else `TAB_WIDTH`."""
        widths = [indent_width(line) for line in self.before.split("\n") if line.strip()]
        steps = Counter(b - a for a, b in pairwise(widths) if 0 < b - a <= 8)
        return steps.most_common(1)[0][0] if steps else TAB_WIDTH

    def read(self, text: str) -> Reading:
        """Scan text written at the cursor."""
        stack = list(self.stack)
        events: list[Event] = []
        lines: list[Line] = []
        start, depth, inside, innermost = 0, num_brackets(stack), self.inside, _innermost(stack)
        depth_end, size, code_end = depth, len(stack), -1
        for event in self.scanner.scan(text, stack, before=self.line_prefix):
            events.append(event)
            num_dropped, size = size - len(stack), len(stack)
            if event.kind == "unmatched":
                depth_end -= num_dropped
            elif event.kind != "newline" and event.entry and event.entry.is_bracket:
                depth_end += 1 if event.kind == "open" else -1
            elif event.kind == "open" and event.entry and event.entry.mark in self.language.line_comments:
                code_end = event.start
            if event.kind != "newline":
                continue
            end, after = event.start, _inside(stack)
            code_end = end if code_end < start else code_end
            lines.append(Line(start, end, True, depth, depth_end, innermost, inside, after, code_end))
            start, depth, inside, innermost = event.end, depth_end, after, _innermost(stack)
        code_end = len(text) if code_end < start else code_end
        last = Line(start, len(text), False, depth, depth_end, innermost, inside, _inside(stack), code_end)
        return Reading(text, events, [*lines, last], stack)

    def line_text(self, reading: Reading, index: int) -> str:
        """The whole text of a generated line; what stands left of the cursor belongs to the first."""
        line = reading.lines[index]
        return ("" if index else self.line_prefix) + reading.text[line.start : line.end]

    def line_code(self, reading: Reading, index: int) -> str:
        """Like `line_text`, without the comment at its end and the blanks before that.

        Of a line that no person writes the middle is left out: expressions over it would take too long.
        """
        line = reading.lines[index]
        code = (("" if index else self.line_prefix) + reading.text[line.start : line.code_end]).rstrip()
        return (
            code
            if len(code) <= _MAX_LINE_CHARS
            else code[: _MAX_LINE_CHARS // 2] + code[-_MAX_LINE_CHARS // 2 :]
        )

    def line_above(self, width: int | None = None) -> str:
        """The nearest non-blank line above the cursor's, indented by less than `width` if that is given."""
        for line in reversed(self.before.split("\n")[:-1]):
            if line.strip() and (width is None or indent_width(line) < width):
                return line
        return ""

    def code_above(self) -> str:
        """The nearest non-blank line above the cursor's, without the comments at its end."""
        line = self.line_above().rstrip()
        line_start = self.before.rfind(line, 0, len(self.before) - len(self.line_prefix))
        spans: list[tuple[int, int]] = []
        for event in self.scanner.scan(self.before, []):
            if event.entry and event.start >= line_start and self.scanner.is_comment(event.entry.mark):
                end = event.start if event.kind == "newline" else event.end
                spans.append((max(0, event.entry.start - line_start), end - line_start))
        for start, end in reversed(spans):
            if not line[end:].strip():
                line = line[:start].rstrip() or leading_blanks(line)
        return line

    def lines_below(self) -> list[str]:
        """The non-blank lines below the cursor's, within the window."""
        return [line for line in self.after.split("\n")[1:] if line.strip()]


def _inside(stack: Stack) -> str:
    return stack[-1].mark if stack and not stack[-1].is_bracket else ""


def _innermost(stack: Stack) -> str:
    return next((entry.mark for entry in reversed(stack) if entry.is_bracket), "")


_TOKEN = re.compile(r"</?[\w:.-]*|#?\w+|;;|\S")


def first_word(text: str, *, is_ended: bool) -> str:
    """The first word or sign of a line, empty while it may still grow."""
    stripped = text.lstrip()
    match = _TOKEN.match(stripped)
    if match is None or (match.end() == len(stripped) and not is_ended and match.group() not in ")]}{"):
        return ""
    return match.group()
