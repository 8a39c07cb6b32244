"""The comma between an item that a suggestion ends with and the next item of its list, on the line below."""

from __future__ import annotations

import re

from completion_engine.languages.open_marks import CLOSING, Open
from completion_engine.suggestions.regions import CursorRegion, Reading
from completion_engine.suggestions.syntax import SyntaxWindow
from completion_engine.text_window import indent_width

GOES_ON = (
    r"throws|extends|implements|where|with|requires|is|as|in|and|or|from|if|for|else|returns|public|private"
    r"|external|internal|view|pure|payable|virtual|override|noexcept|const|async"
)
_ITEM_END = re.compile(r"(?:(?<![-=])>|[\w\"'`)\]}])$")
_ITEM = re.compile(rf"(?!(?:{GOES_ON})\b)[\w\"'`@]")
_QUOTES = "\"'`"


def with_comma(syntax: SyntaxWindow, region: CursorRegion, text: str) -> str:
    """Return the text with a comma at its end if it is an item of a list that goes on below.

    The items beside it must have commas, and no parser may find the document correct without one.
    """
    below = region.lines_below[:2]
    if not below or region.inside is not None or region.line_suffix.strip() or not _ITEM_END.search(text):
        return text
    reading = region.read(text)
    entry = reading.stack[-1] if reading.stack else None
    if entry is None or not entry.is_bracket or entry.start >= 0 or entry.start not in region.closed:
        return text
    if not _is_next_item(region, reading, entry, below):
        return text
    is_wrong = syntax.has_error(text, to_next_line=True)
    if text[-1] in _QUOTES and below[0].strip()[0] in _QUOTES:  # strings after each other may be one
        is_wrong = bool(is_wrong) and syntax.has_error(text + ",", to_next_line=True) is False
    return text if is_wrong is False else text + ","


def _is_next_item(region: CursorRegion, reading: Reading, entry: Open, below: list[str]) -> bool:
    """Whether the next line is an item of the bracket `entry` that the text ends in, too."""
    text, following = reading.text, below[0].strip()
    is_block = entry.mark == "{" and text[-1] == "}"  # needs no comma in many languages
    last = region.line_text(reading, len(reading.lines) - 1)
    is_item = _ITEM.match(following) or (following[0] in "([{" and following[0] == last.strip()[0])
    if is_block or not is_item or not _is_balanced(following):
        return False
    begins_here = entry.start >= -len(region.line_prefix)
    if not begins_here and indent_width(below[0]) != indent_width(last):
        return False
    if region.language_id in ("json", "jsonc"):
        return True
    written = (region.before[entry.start :] + text)[len(entry.mark) :].strip()
    above = written.removesuffix(last.strip()).rstrip()  # the items on the lines above
    has_commas = above.endswith(",") or (begins_here and "," in written)
    if following.endswith(","):
        return has_commas or (not above and entry.mark != "{")
    is_last = len(below) > 1 and below[1].strip()[0] in CLOSING
    return is_last and has_commas and entry.mark != "{"


def _is_balanced(line: str) -> bool:
    """Whether a line closes as many brackets as it opens."""
    return all(line.count(first) == line.count(last) for first, last in ("()", "[]", "{}"))
