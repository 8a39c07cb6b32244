"""Searches several segments as if they were one, and defines views of an index that never change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ngram_cache.lookup import (
    MAX_DEPTH,
    MAX_OCCURRENCES,
    NOTHING,
    Evidence,
    Lookup,
    Occurrence,
    Successors,
    TreeLimits,
    counted,
    grow_tree,
    shorter_match,
)
from ngram_cache.segment import Cursor, Segment, as_query


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A segment, and which of its documents are live: one byte each; None if all are."""

    segment: Segment
    live: bytes | None = None

    def is_live(self, place: int) -> bool:
        """Return whether the document at `place` is searched."""
        return self.live is None or self.live[place] != 0

    @property
    def has_live(self) -> bool:
        """Whether any document is searched."""
        return self.live is None or any(self.live)

    @property
    def num_live_tokens(self) -> int:
        """Number of tokens of the documents that are searched."""
        lengths = self.segment.lengths
        if self.live is None:
            return sum(lengths)
        return sum(length for length, flag in zip(lengths, self.live, strict=True) if flag)

    def with_live(self, flags: Iterable[tuple[int, bool]]) -> Part:
        """Return the same segment with new liveness for some documents, given by place."""
        live = bytearray(self.live or b"\1" * len(self.segment.documents))
        for place, flag in flags:
            live[place] = flag
        return Part(self.segment, None if all(live) else bytes(live))


def search(
    parts: Sequence[Part],
    context: Sequence[int] | npt.NDArray[np.integer],
    hidden: Set[int],
    limits: TreeLimits,
) -> Lookup:
    """Return the continuations of the longest suffix of `context` that occurs in a live, visible document.

    If there are at most `MAX_OCCURRENCES` occurrences (dead ones included), the result does not depend on how
    the documents are divided into segments.
    """
    query = as_query(context)
    depth = min(limits.max_depth, MAX_DEPTH)
    cursors = [_LiveCursor(part, hidden, query, depth) for part in parts] if query else []
    length, longest, num_occurrences = _longest_match(cursors, 1)
    if not longest:
        return NOTHING
    shorter_length = shorter_match(length, num_occurrences)
    shorter: list[Occurrence] = []
    if shorter_length and _next_length(cursors) >= shorter_length:
        gathered, _ = _widen_and_gather(cursors, shorter_length)
        known = {(document, offset) for _, document, offset in longest}
        shorter = [occurrence for occurrence in gathered if occurrence[1:] not in known]
    nodes = grow_tree(Evidence(longest, shorter, length, shorter_length), TreeLimits(limits.max_nodes, depth))
    return Lookup(length, num_occurrences, nodes)


def count_documents(
    parts: Sequence[Part],
    sequence: Sequence[int] | npt.NDArray[np.integer],
    hidden: Set[int],
    max_occurrences: int,
) -> Counter[int]:
    """Count the occurrences of a sequence in live, visible documents.

    If a segment has more than `max_occurrences`, that many evenly spread ones are read.
    """
    query = as_query(sequence)
    found: Counter[int] = Counter()
    for part in parts if query else ():
        live = _LiveCursor(part, hidden, query, 1)
        if live.cursor.next_length >= len(query) >> 2:
            live.cursor.widen(len(query) >> 2)
            found.update(document for _, document, _ in live.gather(max_occurrences))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class IndexView:
    """An index at one moment, which never changes. It keeps its segments in memory.

    Documents in `hidden` are not searched. Views of one index that hide the same path have the same `source`,
    even if their texts differ.
    """

    parts: tuple[Part, ...]
    hidden: Set[int]
    source: Hashable

    def successors(self, context: Sequence[int], min_match: int) -> Successors:
        """Return the tokens that followed the longest suffix of `context` [n]; none below `min_match` tokens.

        The same view always returns the same for the same context.
        """
        query = as_query(context)
        cursors = [_LiveCursor(part, self.hidden, query, 1) for part in self.parts] if query else []
        length, longest, num_occurrences = _longest_match(cursors, max(1, min_match))
        return Successors(length, num_occurrences, counted(longest)) if longest else Successors.none()


class _LiveCursor:
    """A cursor over occurrences in live, visible documents."""

    __slots__ = ("_depth", "_hidden", "_part", "cursor")

    def __init__(self, part: Part, hidden: Set[int], query: bytes, depth: int) -> None:
        self.cursor: Cursor = part.segment.cursor(query)
        self._part = part
        self._depth = depth
        self._hidden = {place for document in hidden if (place := part.segment.local(document)) is not None}

    def gather(self, num_wanted: int) -> list[Occurrence]:
        """Return the occurrences in the interval: all, or those at `num_wanted` evenly spread positions."""
        cursor, part = self.cursor, self._part
        segment, positions = part.segment, part.segment.positions
        size = len(cursor)
        if size <= num_wanted:
            chosen = positions[cursor.low : cursor.high].tolist()
        else:
            chosen = [positions[cursor.low + step * size // num_wanted] for step in range(num_wanted)]
        return segment.occurrences(chosen, self._depth, part.live, self._hidden)


def _next_length(cursors: list[_LiveCursor]) -> int:
    return max((live.cursor.next_length for live in cursors), default=0)


def _longest_match(cursors: list[_LiveCursor], min_match: int) -> tuple[int, list[Occurrence], int]:
    """Return length, occurrences and their number of the longest match; none below `min_match` tokens."""
    length = _next_length(cursors)
    while length >= min_match:
        found, num_occurrences = _widen_and_gather(cursors, length)
        if found:
            return length, found, num_occurrences
        length = _next_length(cursors)
    return 0, [], 0


def _widen_and_gather(cursors: list[_LiveCursor], length: int) -> tuple[list[Occurrence], int]:
    """Return the occurrences of a match of `length` tokens, sampled if there are many, and their number."""
    for live in cursors:
        live.cursor.widen(length)
    total = sum(len(live.cursor) for live in cursors)
    found: list[Occurrence] = []
    num_sampled = 0
    for live in cursors:
        size = len(live.cursor)
        if not size:
            continue
        wanted = size if total <= MAX_OCCURRENCES else max(1, MAX_OCCURRENCES * size // total)
        found += live.gather(wanted)
        num_sampled += wanted
    if total <= MAX_OCCURRENCES:
        return found, len(found)
    return found, round(total * len(found) / num_sampled)
