"""Ends a text in the middle of a line before what the rest of the line holds already.

Each function takes text and returns it or a beginning of it.
"""

from __future__ import annotations

import re

from completion_engine.languages.open_marks import SYMMETRIC
from completion_engine.suggestions.regions import CursorRegion
from completion_engine.suggestions.rest_of_line import (
    OPENING,
    imbalance,
    is_prose,
    num_covered,
    only_closes,
    prose_start,
    unpaired_marks,
)

_SEPARATORS = (",", ";")
_COMMENTS = ("//", "/*", "--", "#")
_CELL = re.compile(r"(?:\\.|[^|\\\n])*")
_TEX_CELL = re.compile(r"(?:\\[^\\\n]|[^&\\\n])*")
_WORD = re.compile(r"\w")
_MAX_LINE_CHARS = 400
_LINE_END = re.compile(r"[ \t]+\\{1,2}\Z")


def within_slot(region: CursorRegion, text: str) -> str:
    """Return the text up to the end of the innermost pair or cell, if the rest of the line begins with it.

    The author has filled the line around the cursor, so what follows that mark is there already.
    """
    if (end := _end_of_cell(region, text)) >= 0 or (end := _end_in_prose(region, text)) >= 0:
        return text[:end].rstrip()
    entry = region.stack[-1] if region.stack else None
    end = region.closed.get(entry.start, 0) if entry else 0
    if entry is None or not 0 < end <= len(region.line_suffix) or _WORD.search(region.line_suffix[:end]):
        return text
    if only_closes(region, end):
        return text
    for event in region.read(text).events:
        if event.kind == "close" and event.entry == entry:
            return text[: event.end]
    return text


def _end_of_cell(region: CursorRegion, text: str) -> int:
    """Return where a text ends its cell of a table, if the rest of the line begins with its end; else -1."""
    rest, cell = region.line_suffix.lstrip(), None
    if rest.startswith("|") and region.line_prefix.lstrip().startswith("|") and region.language.is_text:
        cell = _CELL.match(text)
    elif rest.startswith(("&", "\\\\")) and region.language_id in ("latex", "latex-math"):
        cell = _TEX_CELL.match(text)
    return cell.end() if cell else -1


def _end_in_prose(region: CursorRegion, text: str) -> int:
    """Return where a text closes the mark of prose that the rest of the line begins with and goes on after.

    -1 if there is no such mark, or the text does not close it.
    """
    rest = region.line_suffix.lstrip()
    if not _WORD.search(rest) or "\n" in text or not (is_prose(region) or region.language.is_marked):
        return -1
    if rest[0] in SYMMETRIC and rest[0] in unpaired_marks(region):
        return _closing_mark(text, rest[0])
    return _closing_bracket(prose_start(region), text, rest[0]) if rest[0] in OPENING else -1


def _closing_mark(text: str, mark: str) -> int:
    """Return where a mark closes prose: after a sign, and not before a letter; -1 if it does not."""
    closing = re.search(rf"(?<=[^\s\\]){re.escape(mark)}(?!\w)", text)
    return closing.start() if closing else -1


def _closing_bracket(before: str, text: str, mark: str) -> int:
    """Return where a bracket of a text closes the one that is open in the prose before it; -1 without one."""
    steps = {OPENING[mark]: 1, mark: -1}
    num_open = 0
    for char in before:
        num_open = max(0, num_open + steps.get(char, 0))
    depth = 0
    for at, char in enumerate(text):
        depth += steps.get(char, 0)
        if depth < 0:
            return at if num_open else -1
    return -1


def before_line_end(region: CursorRegion, text: str) -> str:
    """The text without a mark that only the end of a line may have, such as `\\` in a table of LaTeX.

    A rest that continues a statement, such as ` else {`, follows no semicolon.
    """
    if region.inside is not None and not region.inside.is_comment:
        return text
    rest, leading = region.line_suffix[num_covered(region, text) :].lstrip(), region.language.leading
    if leading is not None and leading.match(rest) and not rest.startswith(_COMMENTS):
        text = text.removesuffix(";")
    return _LINE_END.sub("", text)


def before_separator(region: CursorRegion, text: str) -> str:
    """The text up to the bracket that it closes in place of the rest of the line.

    That is if a separator of the rest would otherwise follow a line that goes on, or another separator.
    """
    rest = region.line_suffix[num_covered(region, text) :].strip()
    last = text.rstrip().rpartition("\n")[2][-_MAX_LINE_CHARS:]
    traits = region.language
    goes_on = (
        last.endswith((*_SEPARATORS, "(", "[", "{"))
        or traits.unfinished.search(last)
        or traits.opener.search(last)
    )
    if not rest.startswith(_SEPARATORS) or not goes_on:
        return text
    for event in region.read(text).events:
        start = event.entry.start if event.kind == "close" and event.entry else 0
        if 0 < region.closed.get(start, 0) <= len(region.line_suffix):
            return text[: event.end]
    return text


def before_extra_closing(region: CursorRegion, text: str) -> str:
    """The text up to the last closing mark that leaves the line at least as balanced as it was.

    A text may close all that the rest closes, and lack a separator between: `) }` where `); }` stands.
    """
    if "\n" in text or not region.line_suffix.strip():
        return text
    before = imbalance(region, "", 0)
    ends = [event.end for event in region.read(text).events if event.kind == "close"]
    for end in (len(text), *reversed(ends)):
        if imbalance(region, text[:end], num_covered(region, text[:end])) <= before:
            return text[:end]
    return text
