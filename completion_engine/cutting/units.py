"""The ends of units: positions at which a text that is shown while the user types may end.

A unit ends with a line or, inside a line, after a whole argument, member, item or word. It never ends within
a word, a number or a string that it opened, after an opening mark or an operator, or after a keyword that
needs more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from completion_engine.cutting.lexer import CLOSING, Open, scan
from completion_engine.cutting.lines import goes_on
from completion_engine.cutting.surroundings import CursorSurroundings

UnitKind = Literal["line", "item", "word"]

MIN_CHARS = 3  # characters of the shortest unit, without blanks
# A unit ends a text if its probability is at least the threshold to this power.
_STRICTNESS: dict[UnitKind, float] = {"line": 1.2, "item": 1.5, "word": 1.0}
MOST_LENIENT = max(_STRICTNESS.values())
# The end of a number, a word, a bracket, a string or a line.
_NUMBER_END = r"\d[\w.]*(?:(?<=[eE])[+-]\w*)?(?=[^\w.+-]|[+-].)"
_NAME_END = r"(?<![\\&\w$])[^\W\d][\w$\u0300-\u036f\u0900-\u0dff]*(?=[^\w$\u0300-\u036f\u0900-\u0dff])"
WORD_END = re.compile(rf"{_NUMBER_END}|{_NAME_END}|[)\]}}]|[\"'`](?=.)|\S(?=[ \t]*\n)", re.DOTALL)
_PROSE_END = re.compile(rf"[.,;:!?)](?=\s)|{_NUMBER_END}|{_NAME_END}|\S(?=[ \t]*\n)")
_QUOTES = ("'", '"', "`")
_LINE_END = re.compile(r"[ \t]*\n")
_ITEM_END = re.compile(r"[)\]}\"'`](?![.(\[\w])|.(?=[ \t]*(?:[,;)\]}]|:(?!:)|\Z))|[.,;:!?](?=\s)", re.DOTALL)
_BLOCK_HEAD = re.compile(r"(?:[^\s:(\[]\s*[:{>]|\S,)\Z")
_NEEDS_MORE = re.compile(
    r"(?<![\w.$])(?:abstract|and|as|assert|async|await|case|class|const|declare|def|defer|del|dyn|elif|else|enum|export"
    r"|extends|extern|final|fn|for|foreach|from|fun|func|function|go|goto|if|impl|implements|import|in"
    r"|instanceof|interface|is|lambda|let|match|move|mut|new|not|or|override|package|private|protected|pub"
    r"|public|raise|range|readonly|ref|return|select|static|struct|switch|throw|trait|type|typedef|typeof"
    r"|unless|unsafe|unsigned|until|use|using|val|var|where|while|with|yield)\Z"
)
_PROSE_NEEDS_MORE = re.compile(
    r"(?<!\w)(?:an?|and|are|as|at|be|by|for|from|has|have|if|in|into|is|its?|not|of|on|or|than|that|the|their"
    r"|this|to|was|when|which|will|with)\Z",
    re.IGNORECASE,
)
_MAX_KEYWORD_CHARS = 16


class UnitEnd(NamedTuple):
    """A unit ends after `num_chars` characters of a text."""

    num_chars: int
    kind: UnitKind


def unit_ends(around: CursorSurroundings, text: str) -> Iterator[UnitEnd]:
    """Yield the ends of units of a text that is written at the cursor, in order.

    A longer text has the same ends, but where a regular expression may be open. The last word may still grow.
    """
    marks = list(_open_texts(around, text))
    is_code = not around.is_text or (around.inside is not None and not around.lasts(around.inside))
    for match in (WORD_END if is_code else _PROSE_END).finditer(text):
        end = match.end()
        while len(marks) > 1 and marks[1][0] <= end:
            del marks[0]
        ends_line = _LINE_END.match(text, end) is not None
        opens = match[0] in _QUOTES and marks[0][0] != end and not ends_line
        is_prefix = is_code and not marks[0][1] and match[0] not in CLOSING and text[end : end + 1] in _QUOTES
        if opens or is_prefix or not is_enough(text[:end]):
            continue
        if not _may_end(around, text[:end], marks[0][1], ends_line=ends_line):
            continue
        is_item = _ITEM_END.match(text, end - 1) is not None
        yield UnitEnd(end, "line" if ends_line else "item" if is_item else "word")


def longest_likely(
    units: Iterable[UnitEnd], ends: Sequence[int], confidences: Sequence[float], threshold: float
) -> int:
    """Return the end of the longest unit that is likely enough to be right; 0 without one.

    Token i ends after `ends[i]` characters, and is right with a probability of `confidences[i]` after right
    text.
    """
    longest, confidence, at, start = 0, 1.0, 0, 0
    for unit in units:
        while start < unit.num_chars and at < len(ends):
            confidence *= confidences[at]
            at, start = at + 1, ends[at]
        if confidence >= threshold ** _STRICTNESS[unit.kind]:
            longest = unit.num_chars
    return longest


def is_enough(text: str) -> bool:
    """Return whether a text has enough characters to be worth a look."""
    return len("".join(text.split())) >= MIN_CHARS


def _may_end(around: CursorSurroundings, text: str, opened: tuple[Open, ...], *, ends_line: bool) -> bool:
    """Return whether a text may end where the strings and comments of `opened` are open."""
    line = (around.line_prefix + text).rpartition("\n")[2]
    if not opened:
        if ends_line:
            return _BLOCK_HEAD.search(line) is not None or not goes_on(line)
        needs_more = _PROSE_NEEDS_MORE if around.is_text else _NEEDS_MORE
        return needs_more.search(line[-_MAX_KEYWORD_CHARS:]) is None
    top = opened[-1]
    was_open = top.start < len(around.before)
    if top.kind == "string" and (len(opened) > 1 or not (was_open or around.lasts(top))):
        return False
    if ends_line:
        return not line.endswith(top.mark)
    is_prose = was_open or (top.kind == "comment" and line.lstrip().startswith(top.mark))
    return is_prose and _PROSE_NEEDS_MORE.search(line[-_MAX_KEYWORD_CHARS:]) is None


def _open_texts(around: CursorSurroundings, text: str) -> Iterator[tuple[int, tuple[Open, ...]]]:
    """Yield the strings and comments that are open from each position on at which they change."""
    shift, stack = len(around.before), list(around.stack)
    opened = _texts(stack)
    yield 0, opened
    for event in scan(around.language, around.before + text, stack, shift):
        if (now := _texts(stack)) != opened:
            opened = now
            yield event.end - shift, opened


def _texts(stack: list[Open]) -> tuple[Open, ...]:
    return tuple(entry for entry in stack if entry.kind in ("string", "comment"))
