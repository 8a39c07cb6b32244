"""Scans whole lines in segments with cached results, so that an edit scans only its own segment again.

Whether a segment ends with a line depends on that line's text only. So a text window that moves has the same
segments, except at its ends. The marks that are open at its beginning are found from bounded text before it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

from completion_engine.languages.modes import raw_element
from completion_engine.languages.open_marks import Event, Open, Stack
from completion_engine.languages.scanner import scan
from completion_engine.languages.syntax import Pair
from completion_engine.languages.table import language_of
from completion_engine.text_window import CursorContext

_MIN_CHARS = 600
_MAX_CHARS = 1_200  # a segment with a longer line is not cached
_NUM_LINES = 8  # after `_MIN_CHARS`, a segment ends with each line at a probability of one in this many
_MAX_EVENTS = 400  # most events of a cached segment
_MAX_SEGMENTS = 256
_MAX_TAIL_CHARS = 400  # text before a position that determines whether a mark there counts
_FAR = 1_000  # a mark opened this far before a segment is in neither its text nor its tail

_MAX_HEAD_CHARS = 16_000
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


class _Segment(NamedTuple):
    """A scanned segment and what is open after it; offsets count from the beginning of the segment.

    `events` are those that concern lines or earlier marks, `num_events` counts all.
    """

    events: tuple[Event, ...]
    num_events: int
    stack: tuple[Open, ...]


# The latest segments, the newest last. Engines of several threads share them.
_segments: OrderedDict[tuple[str, str, tuple[Open, ...], str, bool], _Segment] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Scanned:
    """One segment of a scan: it begins at `start`, where marks were open whose own starts are `origins`."""

    segment: _Segment
    start: int
    origins: dict[int, int]

    @property
    def num_events(self) -> int:
        """The number of all events in it."""
        return self.segment.num_events

    def events(self) -> Iterator[Event]:
        """The events in it that concern lines or earlier marks."""
        start = self.start
        for kind, begin, end, entry, num_dropped in self.segment.events:
            moved = entry and _moved(entry, start, self.origins)
            yield Event(kind, begin + start, end + start, moved, num_dropped)


def forget_texts() -> None:
    """Drop the text of all documents from the caches, after one of them was closed."""
    _segments.clear()
    open_after_lines.cache_clear()
    _open_after.cache_clear()


def tail_of(prefix: str) -> str:
    """Return the last part of a text that determines whether a later mark counts."""
    tail = prefix[-_MAX_TAIL_CHARS:]
    if len(tail) == len(prefix):
        return tail
    start = tail.find("\n")
    return tail[start:] if start >= 0 else "\0" + tail


def scan_lines(
    language: str, lines: str, stack: Stack, *, before: str = "", is_quick: bool = False
) -> Iterator[Scanned]:
    """Scan whole lines as `scan` does, segment by segment; `stack` changes at the end of each segment."""
    for start, end in pairwise(_ends_of_segments(lines)):
        near = lines[max(0, start - 2 * _MAX_TAIL_CHARS) : start]
        tail = tail_of(near if start > 2 * _MAX_TAIL_CHARS else before + near)
        outer = tuple(_as_seen_from(stack, start))
        origins = {seen.start: entry.start for seen, entry in zip(outer, stack, strict=True)}
        segment = _scan_segment(language, lines[start:end], outer, tail, is_quick=is_quick)
        stack[:] = [_moved(entry, start, origins) for entry in segment.stack]
        yield Scanned(segment, start, origins)


def _ends_of_segments(lines: str) -> list[int]:
    """Return the offsets at which segments end, after a first 0. The first line is a segment of its own."""
    at = lines.find("\n") + 1
    ends, size = [0, at] if at else [0], 0
    for line in lines[at:].split("\n"):
        at += len(line) + 1
        size += len(line) + 1
        if size < _MIN_CHARS:
            continue
        if size >= _MAX_CHARS or crc32(line.encode("utf-8", "replace")) % _NUM_LINES == 0:
            ends.append(at)
            size = 0
    return [*(end for end in ends if end < len(lines)), len(lines)] if lines else ends


def _as_seen_from(stack: Stack, start: int) -> Iterator[Open]:
    """The open marks with offsets from `start`; those of marks far before it depend on their order alone."""
    for depth, entry in enumerate(stack):
        offset = entry.start - start
        yield _at(entry, offset if offset >= -_FAR else depth - len(stack) - _FAR)


def _moved(entry: Open, start: int, origins: dict[int, int]) -> Open:
    return _at(entry, origins[entry.start] if entry.start < 0 else entry.start + start)


def _at(entry: Open, start: int) -> Open:
    """An entry with another start; `_replace` takes three times as long."""
    mark, _, pair, language, tag, is_pending = entry
    return Open(mark, start, pair, language, tag, is_pending)


def _scan_segment(
    language: str, text: str, outer: tuple[Open, ...], before: str, *, is_quick: bool
) -> _Segment:
    key = language, text, outer, before, is_quick
    segment = _segments.pop(key, None) or _scan(language, text, outer, before, is_quick=is_quick)
    if len(text) <= 2 * _MAX_CHARS and segment.num_events <= _MAX_EVENTS:
        _segments[key] = segment
        if len(_segments) > _MAX_SEGMENTS:
            _segments.popitem(last=False)
    return segment


def _scan(language: str, text: str, outer: tuple[Open, ...], before: str, *, is_quick: bool) -> _Segment:
    stack: Stack = list(outer)
    kept: list[Event] = []
    num_events = 0
    for event in scan(language, text, stack, before=before, is_quick=is_quick, skips_leaves=not is_quick):
        num_events += 1
        is_inner = event.kind == "close" and event.entry is not None and event.entry.start >= 0
        if event.kind != "open" and not is_inner:
            kept.append(event)
    return _Segment(tuple(kept), num_events, tuple(stack))


@lru_cache(maxsize=8)
def open_after_lines(language: str, lines: str, outer: tuple[Open, ...], before: str) -> tuple[Open, ...]:
    """The marks that are open after whole lines, with offsets from their beginning; the same while a line is
    typed.
    """
    stack = list(outer)
    for _ in scan_lines(language, lines, stack, before=before):
        pass
    return tuple(stack)


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
    start = max(0, end - _MAX_HEAD_CHARS)
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
            found.append(Open(f"<{name}", start - at, *raw_element(name, default, tag, language), name))
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
