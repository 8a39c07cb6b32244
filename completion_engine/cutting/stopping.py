"""When a text ends while it is written: at the end of its line, statement, block or paragraph.

A stop depends on the text so far alone, so that text that arrives later never changes it. It can be late:
`fitting` cuts the text again.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from completion_engine.cutting.cleaning import DASHES, indent_unit
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
from completion_engine.cutting.repeats import Reason, Stop
from completion_engine.cutting.surroundings import CursorSurroundings
from completion_engine.text_window import indent_width

Mode = Literal["line", "statement", "block", "text"]
_PARAGRAPH_END = re.compile(r"\S[^\n]*(\n)[ \t]*\n")
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
        rule: Reason = "single-line" if around.cursor.is_single_line else "end-of-statement"
        return Stop(rule, end) if end >= 0 else None
    if mode == "text":
        found = _PARAGRAPH_END.search(text)
        return Stop("end-of-paragraph", found.start(1)) if found else None
    end_of_rows = _end_of_statement if mode == "statement" else _end_of_block
    return end_of_rows(around, _rows(around, text), _depth_before(around))


class _Row(NamedTuple):
    """A written line, its first word and code; no word in a string or comment.

    `depth` is the number of brackets open at its start.
    """

    line: Line
    whole: str
    token: str
    width: int
    code: str
    depth: int


def _rows(around: CursorSurroundings, text: str) -> list[_Row]:
    lines, rows, depth, inside = lines_of(around, text), list[_Row](), _depth_before(around), False
    for index, line in enumerate(lines):
        whole = around.line_prefix * (not index) + text[line.start : line.end]
        token = "" if inside else first_token(whole, is_ended=line.is_ended)
        rows.append(_Row(line, whole, token, indent_width(whole), code_of(around, text, lines, index), depth))
        depth, inside = line.depth, line.inside is not None
    return rows


def _depth_before(around: CursorSurroundings) -> int:
    """Return the number of brackets and elements open before the cursor's line."""
    return sum(
        entry.kind in ("bracket", "tag", "element") and entry.start < around.line_start
        for entry in around.stack
    )


def _is_held(around: CursorSurroundings, row: _Row) -> bool:
    """Return whether the next line of the document closes or continues the block that a row would close."""
    below = around.lines_below
    if not below or indent_width(below[0]) != row.width:
        return False
    found = first_token(below[0], is_ended=True)
    return found == row.token or (is_closer(row.token) and is_clause(found))


def has_body_below(around: CursorSurroundings) -> bool:
    """Return whether the lines below the cursor already are the body of the cursor's line."""
    below, dashes = around.lines_below, DASHES.match(around.line_prefix)
    indent = dashes.end() if dashes and "data" in around.marks.traits else around.indent
    return bool(below) and indent_width(below[0]) > indent and not continues(below[0])


def _end_of_statement(around: CursorSurroundings, rows: list[_Row], base: int) -> Stop | None:
    """Return the end of the statement at the cursor, with the block that belongs to it."""
    has_block = is_closing = False
    last_end = 0
    for index, row in enumerate(rows):
        if index and row.token and (row.depth <= base or row.token in _CLOSING):
            if row.width > around.indent or row.token in _CLOSING:
                has_block = True
            elif not goes_on(rows[index - 1].code) and not needs_next(around, rows[index - 1].code):
                is_own = row.width == around.indent and not _is_held(around, row)
                is_closing = is_own and has_block and is_closer(row.token)
                is_further = (
                    row.token in ("{",) or continues(row.whole) or (has_block and is_clause(row.token))
                )
                if not is_closing and not (is_own and is_further):
                    return Stop("end-of-block" if has_block else "end-of-statement", last_end)
        if row.line.is_ended:
            last_end = row.line.end
            if is_closing or row.line.depth < base:
                return Stop("end-of-block", last_end)
            if (not index and has_body_below(around)) or _is_complete(around, row, base, has_block=has_block):
                return Stop("end-of-statement", last_end)
    return None


def _is_complete(around: CursorSurroundings, row: _Row, base: int, *, has_block: bool) -> bool:
    """Return whether no line can go on with a statement after a row."""
    if row.line.inside or row.line.depth > base:
        return False
    if needs_next(around, row.code):
        return bool(around.lines_below) and indent_width(around.lines_below[0]) == around.indent
    if has_block:
        return False
    if row.code.endswith(";") or (row.code.endswith(",") and base):
        return True
    traits = around.marks.traits
    may_go_on = "statements" in traits or goes_on(row.code) or opens_block(row.code)
    return not may_go_on and ("indented" in traits or around.marks.is_markup)


def _end_of_block(around: CursorSurroundings, rows: list[_Row], base: int) -> Stop | None:
    """Return the end of the block around a blank line, or of one paragraph in it."""
    width, last_end, after_blank = -1, 0, False
    for row in rows:
        is_closing = False
        if row.token and width < 0:
            if row.width < around.indent and row.token not in _CLOSING:
                return Stop("end-of-block", 0)
            width = row.width
        elif row.token and row.token not in _CLOSING and row.depth <= base and row.width <= width:
            is_closing = is_closer(row.token) and not _is_held(around, row)
            if not is_closing and not is_clause(row.token):
                if row.width < width:
                    return Stop("end-of-block", last_end)
                if after_blank and not row.token.startswith("</"):
                    return Stop("end-of-paragraph", last_end)
        is_blank = not row.whole.strip()
        after_blank = is_blank and width >= 0
        if row.line.is_ended and not is_blank:
            last_end = row.line.end
            if is_closing or row.line.depth < base:
                return Stop("end-of-block", last_end)
            below = indent_width(around.lines_below[0]) - row.width if around.lines_below else 0
            if (opens_block(row.code) or row.line.depth > row.depth) and 0 < below <= indent_unit(around):
                return Stop("end-of-statement", last_end)
    return None


def whole_end(around: CursorSurroundings, text: str) -> int:
    """Return the end of the last complete statement of a text; 0 if there is none."""
    base, rows = _depth_before(around), _rows(around, text)
    for row in reversed(rows):
        is_open = row.line.depth > base or (row.line.inside is not None and row.line.inside != around.inside)
        if row.line.start and "ends" in around.marks.traits:  # the word that closes its block may be missing
            is_open = is_open or row.width > around.indent
        may_end = (row.code.endswith(",") and base > 0) or not (goes_on(row.code) or opens_block(row.code))
        is_whole = may_end and not is_open and not needs_next(around, row.code)
        if is_whole and row.line.is_ended and text[row.line.start : row.line.end].strip():
            return row.line.end
    return 0
