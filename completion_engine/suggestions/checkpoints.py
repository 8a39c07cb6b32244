"""Scans whole lines in segments with cached results, so that an edit scans only its own segment again.

Whether a segment ends with a line depends on that line's text only. So a text window that moves has the same
segments, except at its ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

from completion_engine.languages.scanner import Event, Open, Stack, scan

_MIN_CHARS = 600
_MAX_CHARS = 1_200  # a segment with a longer line is not cached
_NUM_LINES = 8  # after `_MIN_CHARS`, a segment ends with each line at a probability of one in this many
_MAX_EVENTS = 400  # most events of a cached segment
_MAX_TAIL_CHARS = 400  # text before a position that determines whether a mark there counts
_FAR = 1_000  # a mark opened this far before a segment is in neither its text nor its tail


class _Segment(NamedTuple):
    """A scanned segment and what is open after it; offsets count from the beginning of the segment.

    `events` are those that concern lines or earlier marks, `num_events` counts all.
    """

    events: tuple[Event, ...]
    num_events: int
    stack: tuple[Open, ...]


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
    is_short = len(text) <= 2 * _MAX_CHARS
    segment = _scan_cached(language, text, outer, before, is_quick=is_quick) if is_short else None
    return segment or _scan(language, text, outer, before, is_quick=is_quick)


@lru_cache(maxsize=256)
def _scan_cached(
    language: str, text: str, outer: tuple[Open, ...], before: str, *, is_quick: bool
) -> _Segment | None:
    """Return the scanned segment; None for one with too many events to cache."""
    segment = _scan(language, text, outer, before, is_quick=is_quick)
    return segment if segment.num_events <= _MAX_EVENTS else None


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
