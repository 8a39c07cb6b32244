"""When a text ends while it is written: at the end of its line, statement, block or paragraph.

A stop depends on the text so far alone, so that text that arrives later never changes it. It can be late:
`fitting` cuts the text again.
"""

from __future__ import annotations

import re
from typing import Literal

from completion_engine.cutting.cleaning import indent_unit
from completion_engine.cutting.lines import (
    Line,
    code_of,
    continues,
    first_token,
    goes_on,
    is_clause,
    is_closer,
    lines_of,
    needs_next,
    opens_block,
)
from completion_engine.cutting.reasons import Reason, Stop
from completion_engine.cutting.surroundings import CursorSurroundings
from completion_engine.text_window import indent_width

Mode = Literal["line", "statement", "block", "text"]
_DASHES = re.compile(r"[ ]*(?:- +)+")
_CLOSING = (")", "]", "}")


def mode_of(around: CursorSurroundings) -> Mode:
    """Return how far a suggestion may go."""
    inside, is_single = around.inside, around.cursor.is_single_line
    if is_single or (inside and not around.lasts(inside)):
        return "line"
    if around.is_text:
        return "text" if around.is_blank_line else "line"
    if around.cursor.multiline == "always" or around.is_blank_line:
        return "block"
    return "statement"


def end_of(around: CursorSurroundings, mode: Mode, text: str) -> Stop | None:
    """Return where the line, statement, block or paragraph at the cursor ends; None if it may go on."""
    if mode == "line":
        end = text.find("\n")
        return (
            None
            if end < 0
            else Stop("single-line" if around.cursor.is_single_line else "end-of-statement", end)
        )
    lines = lines_of(around, text)
    if mode == "text":
        return _end_of_text(text, lines)
    walk = _Statement if mode == "statement" else _Block
    return walk(around, text, lines).end()


def _end_of_text(text: str, lines: list[Line]) -> Stop | None:
    has_text = False
    for line in lines:
        is_blank = not text[line.start : line.end].strip()
        if is_blank and has_text and line.is_ended:
            return Stop("end-of-paragraph", line.start - 1)
        has_text = has_text or not is_blank
    return None


class _Walk:
    """The common part of the walks over written lines."""

    def __init__(self, around: CursorSurroundings, text: str, lines: list[Line]) -> None:
        self.around, self.text, self.lines = around, text, lines
        self.base = sum(
            entry.kind in ("bracket", "tag", "element") and entry.start < around.line_start
            for entry in around.stack
        )
        self.last_end = 0

    def whole(self, index: int) -> str:
        line = self.lines[index]
        return ("" if index else self.around.line_prefix) + self.text[line.start : line.end]

    def token(self, index: int) -> tuple[str, int]:
        """The first word of a line of code, and its indentation; no word in a string or comment."""
        if index and self.lines[index - 1].inside:
            return "", 0
        whole = self.whole(index)
        return first_token(whole, is_ended=self.lines[index].is_ended), indent_width(whole)

    def depth_before(self, index: int) -> int:
        """The brackets that are open at a line's start."""
        return self.lines[index - 1].depth if index else self.base

    def is_held(self, token: str, width: int) -> bool:
        """Whether the next line of the document closes or continues the block that a word would close."""
        below = self.around.lines_below
        if not below or indent_width(below[0]) != width:
            return False
        found = first_token(below[0], is_ended=True)
        return found == token or (is_closer(token) and is_clause(found))


def has_body_below(around: CursorSurroundings) -> bool:
    """Return whether the lines below the cursor already are the body of the cursor's line."""
    below, dashes = around.lines_below, _DASHES.match(around.line_prefix)
    indent = dashes.end() if dashes and "data" in around.marks.traits else around.indent
    return bool(below) and indent_width(below[0]) > indent and not continues(below[0])


class _Statement(_Walk):
    """Walks from the cursor to the end of its statement, with the block that belongs to it."""

    def __init__(self, around: CursorSurroundings, text: str, lines: list[Line]) -> None:
        super().__init__(around, text, lines)
        self.has_block = self.is_closing = False

    def end(self) -> Stop | None:
        for index, line in enumerate(self.lines):
            if index and (stop := self._at_start(index)):
                return stop
            if line.is_ended and (stop := self._at_end(index)):
                return stop
        return None

    def _at_start(self, index: int) -> Stop | None:
        token, width = self.token(index)
        if not token or (self.depth_before(index) > self.base and token not in _CLOSING):
            return None
        indent = self.around.indent
        if width > indent or token in _CLOSING:
            self.has_block = True
            return None
        code = code_of(self.around, self.text, self.lines, index - 1)
        if goes_on(code) or needs_next(self.around, code):
            return None
        if width == indent and not self.is_held(token, width):
            if token in ("{",) or continues(self.whole(index)) or (self.has_block and is_clause(token)):
                return None
            if self.has_block and is_closer(token):
                self.is_closing = True
                return None
        return Stop("end-of-block" if self.has_block else "end-of-statement", self.last_end)

    def _at_end(self, index: int) -> Stop | None:  # noqa: PLR0911 - one for each reason
        line = self.lines[index]
        code = code_of(self.around, self.text, self.lines, index)
        self.last_end = line.end
        if self.is_closing or line.depth < self.base:
            return Stop("end-of-block", line.end)
        if line.inside or line.depth > self.base:
            return None if index or not has_body_below(self.around) else Stop("end-of-statement", line.end)
        if index == 0 and has_body_below(self.around):
            return Stop("end-of-statement", line.end)
        if needs_next(self.around, code):
            below = self.around.lines_below
            is_next = bool(below) and indent_width(below[0]) == self.around.indent
            return Stop("end-of-statement", line.end) if is_next else None
        if code.endswith(";") and not self.has_block:
            return Stop("end-of-statement", line.end)
        if code.endswith(",") and self.base and not self.has_block:
            return Stop("end-of-statement", line.end)
        if "statements" in self.around.marks.traits or goes_on(code) or opens_block(code):
            return None
        is_simple = not self.has_block and (
            "indented" in self.around.marks.traits or self.around.marks.is_markup
        )
        return Stop("end-of-statement", line.end) if is_simple else None


class _Block(_Walk):
    """Walks from a blank line through the rest of its block, or through one paragraph or definition in it."""

    def __init__(self, around: CursorSurroundings, text: str, lines: list[Line]) -> None:
        super().__init__(around, text, lines)
        self.width = -1
        self.is_closing = False

    def end(self) -> Stop | None:
        after_blank = False
        for index, line in enumerate(self.lines):
            token, width = self.token(index)
            if token and self.width < 0:
                if width < self.around.indent and token not in _CLOSING:
                    return Stop("end-of-block", 0)
                self.width = width
            elif token and (rule := self._leaves(index, token, width, after_blank=after_blank)):
                return Stop(rule, self.last_end)
            is_blank = not self.whole(index).strip()
            after_blank = is_blank and self.width >= 0
            if not line.is_ended or is_blank:
                continue
            self.last_end = line.end
            if rule := self._at_end(index):
                return Stop(rule, line.end)
        return None

    def _leaves(self, index: int, token: str, width: int, *, after_blank: bool) -> Reason | None:
        """Return the reason for which a line is outside of the block or paragraph; None if it is inside."""
        if token in _CLOSING or self.depth_before(index) > self.base or width > self.width:
            return None
        self.is_closing = is_closer(token) and not self.is_held(token, width)
        if width < self.width:
            return None if self.is_closing or is_clause(token) else "end-of-block"
        if self.is_closing or is_clause(token) or token.startswith("</"):
            return None
        if after_blank:
            return "end-of-paragraph"
        return None

    def _at_end(self, index: int) -> Reason | None:
        line = self.lines[index]
        if self.is_closing or line.depth < self.base:
            return "end-of-block"
        code = code_of(self.around, self.text, self.lines, index)
        below = self.around.lines_below
        begins = opens_block(code) and bool(below)
        if begins and 0 < indent_width(below[0]) - indent_width(self.whole(index)) <= indent_unit(
            self.around
        ):
            return "end-of-statement"
        return None


def whole_end(around: CursorSurroundings, text: str) -> int:
    """Return the end of the last complete statement of a text; 0 if there is none."""
    lines = lines_of(around, text)
    base = _Walk(around, text, lines).base
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        code = code_of(around, text, lines, index)
        if not line.is_ended or not text[line.start : line.end].strip():
            continue
        ends_item = code.endswith(",") and base > 0
        is_open = line.depth > base or (line.inside is not None and line.inside != around.inside)
        if index and "ends" in around.marks.traits:  # the text may lack the word that closes its block
            is_open = is_open or indent_width(text[line.start : line.end]) > around.indent
        if (
            not is_open
            and (ends_item or not (goes_on(code) or opens_block(code)))
            and not needs_next(around, code)
        ):
            return line.end
    return 0
