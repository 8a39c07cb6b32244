"""Finds the marks that are open at the beginning of the text window, from bounded text before it."""

from __future__ import annotations

import re
from functools import lru_cache

from completion_engine.languages.modes import raw_element
from completion_engine.languages.scanner import Open, Stack
from completion_engine.languages.syntax import Pair
from completion_engine.languages.table import language_of
from completion_engine.suggestions.checkpoints import scan_lines
from completion_engine.text_window import CursorContext

_MAX_CHARS = 16_000
_MAX_ALIGNED_CHARS = 4_000  # a cut text is searched so far for a line that is certainly code
# strings and parts over several lines; human text has fewer
_MAX_MARKS = 2_500
_MIN_PREFIX_CHARS = 48_000  # characters of a document that may itself be cut at its beginning
_MAX_BLANKS = 400
# A line that hardly occurs in strings and comments, so only brackets and embedded parts are open there.
_STATEMENT = re.compile(
    r"^(?:\}[;,)]*$|(?:async def|class|def|export|fn|fun|func|function|impl|import|interface|local function"
    r"|module|namespace|package|pub|public|struct|type|use) [\w({*'\"@.]|#include |@\w+(?:\(|$)"
    r"|<(?:body|main|script|template)\b)",
    re.MULTILINE,
)


def open_before(language: str, cursor: CursorContext) -> tuple[Open, ...]:
    """Return the open marks over line ends at the beginning of the window of `cursor`, with offsets from
    there.
    """
    prefix = cursor.prefix
    end = len(prefix) - len(cursor.before)
    if lone := _lone_part(language, prefix):
        return (Open("", -1 - end, lone, lone.holds),)
    if not end:
        return ()
    start = _start(prefix, end)
    outer = tuple(
        entry._replace(start=entry.start + start - end) for entry in _part_at(language, prefix, start)
    )
    return _open_after(language, prefix[start:end], outer)


def _lone_part(language: str, prefix: str) -> Pair | None:
    """Return the pair around a document that is one embedded part without its marks, as a PHP snippet is."""
    traits = language_of(language)
    if not traits.lone or "<?" in prefix or prefix[:_MAX_BLANKS].lstrip()[:1] == "<":
        return None
    return next(pair for pair in traits.pairs if pair.holds == traits.lone)


def _start(prefix: str, end: int) -> int:
    """Return where to begin the scan: in a long text, at a line that is certainly code, if there is one."""
    start = max(0, end - _MAX_CHARS)
    if not start and len(prefix) < _MIN_PREFIX_CHARS:
        return 0
    found = _STATEMENT.search(prefix, start + 1, min(end, start + _MAX_ALIGNED_CHARS))
    return found.start() if found else start


def _part_at(language: str, prefix: str, at: int) -> tuple[Open, ...]:
    """Return the part in another language at an offset, found by the marks of large parts only."""
    traits = language_of(language)
    markup = traits.markup
    if not at or markup is None or markup.is_nested_in_code:
        return ()
    found: list[Open] = []
    for name, default in markup.raw.items():
        start = prefix.rfind(f"<{name}", 0, at)
        if start > prefix.rfind(f"</{name}", 0, at):
            tag = prefix[start : start + _MAX_BLANKS].partition(">")[0]
            found.append(Open(f"<{name}", start - at, *raw_element(name, default, tag), name))
    start = prefix.rfind("<?", 0, at)
    if traits.lone and start > prefix.rfind("?>", 0, at):
        pair = next(pair for pair in traits.pairs if pair.holds == traits.lone)
        found.append(Open("<?", start - at, pair, traits.lone))
    return (max(found, key=lambda entry: entry.start),) if found else ()


@lru_cache(maxsize=8)
def _open_after(language: str, head: str, outer: tuple[Open, ...]) -> tuple[Open, ...]:
    """Return the marks that are open at the end of a text, those of `outer` included, with offsets from
    there.
    """
    stack: Stack = [entry._replace(start=entry.start + len(head)) for entry in outer]
    num_marks = 0
    for scanned in scan_lines(language, head, stack, is_quick=True):
        num_marks += scanned.num_events
        if num_marks > _MAX_MARKS:
            return outer
    return tuple(entry._replace(start=entry.start - len(head)) for entry in stack)
