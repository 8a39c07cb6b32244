"""One immutable, sorted set of documents, and its search."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ngram_cache.construction import MAX_CONTEXT, IntArray, never_stop, sort_contexts
from ngram_cache.lookup import MAX_DEPTH, Occurrence

MAX_TOKEN = (1 << 21) - 2
_PAD = max(MAX_CONTEXT, MAX_DEPTH)
_KEY_BYTES = 4 * MAX_CONTEXT


def as_tokens(tokens: Sequence[int] | npt.NDArray[np.integer]) -> IntArray:
    """Return token ids as int32 [n]. Raises ValueError for a negative one or one above `MAX_TOKEN`."""
    wide = np.asarray(tokens, dtype=np.int64)
    if wide.ndim != 1:
        raise ValueError(f"tokens are one flat sequence, not of shape {wide.shape}")
    if len(wide) and not 0 <= int(wide.min()) <= int(wide.max()) <= MAX_TOKEN:
        raise ValueError(f"token ids lie between 0 and {MAX_TOKEN}")
    return wide.astype(np.int32)


def as_query(context: Sequence[int] | npt.NDArray[np.integer]) -> bytes:
    """Return the last tokens of a context, reversed, in the byte order and width of segments."""
    tail = context[-MAX_CONTEXT:]
    ids = tail.tolist() if isinstance(tail, np.ndarray) else tail
    try:
        return struct.pack(f">{len(ids)}I", *[token + 1 for token in reversed(ids)])
    except struct.error as error:
        raise ValueError("a context holds token ids: integers from 0") from error


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Documents as one reversed token array, and its positions sorted by context.

    `data` holds, from byte `base` on, big-endian words: 0 at each document boundary and token + 1 elsewhere,
    each document's last token first, documents in ascending order of id. So the context before a token is the
    slice after it, and contexts compare as bytes do. `positions` [m] are the words that have a continuation,
    sorted by their context. Document `documents[i]` has its last token at word `starts[i]`, and `lengths[i]`
    tokens. This takes eight bytes per token.
    """

    data: bytes
    base: int
    num_words: int
    positions: memoryview
    documents: list[int]
    starts: list[int]
    lengths: list[int]

    @classmethod
    def build(
        cls, documents: Iterable[tuple[int, IntArray]], checkpoint: Callable[[], None] = never_stop
    ) -> Segment:
        """Build a segment from (id, tokens) with unique ids. `checkpoint` is as in `sort_contexts`."""
        ordered = sorted(documents, key=lambda document: document[0])
        ids = [identifier for identifier, _ in ordered]
        lengths = [len(tokens) for _, tokens in ordered]
        starts, num_words = layout(lengths)
        words = np.zeros(num_words, dtype=np.int32)
        for start, (_, tokens) in zip(starts, ordered, strict=True):
            np.add(tokens[::-1], 1, out=words[start : start + len(tokens)])
        positions = sort_contexts(words, checkpoint=checkpoint)
        data = words.astype(">u4").tobytes()
        return cls(data, 0, num_words, positions.data, ids, starts, lengths)

    @property
    def num_tokens(self) -> int:
        """Number of tokens of all documents, dead ones included."""
        return self.num_words - 2 * _PAD - len(self.documents) + 1 if self.documents else 0

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return 4 * self.num_words + self.positions.nbytes

    def words(self) -> npt.NDArray[np.uint32]:
        """The stored words [num_words]."""
        return np.frombuffer(self.data, dtype=">u4", count=self.num_words, offset=self.base)

    def local(self, document: int) -> int | None:
        """Return the place of a document in this segment; None if it is elsewhere."""
        place = bisect_left(self.documents, document)
        found = place < len(self.documents) and self.documents[place] == document
        return place if found else None

    def tokens(self, local: int) -> IntArray:
        """Return a document's tokens in reading order."""
        start = self.starts[local]
        stored = self.words()[start : start + self.lengths[local]]
        return stored[::-1].astype(np.int32) - np.int32(1)

    def occurrences(
        self, positions: Iterable[int], depth: int, live: bytes | None, hidden: Set[int]
    ) -> list[Occurrence]:
        """Return the continuations at `positions` in live, visible documents (both given by place),
        undecoded.

        A continuation has `depth` words, and may run beyond the end of its document.
        """
        data, base, width = self.data, self.base, 4 * depth
        starts, lengths, documents = self.starts, self.lengths, self.documents
        found = []
        for position in positions:
            place = bisect_right(starts, position) - 1
            if (live is not None and not live[place]) or place in hidden:
                continue
            at = base + 4 * position
            offset = starts[place] + lengths[place] - position
            found.append((data[at - width : at], documents[place], offset))
        return found

    def only(self, keep: Sequence[bool]) -> Segment:
        """Return this segment without the documents that `keep` rejects, in linear time without sorting."""
        kept = [place for place, wanted in enumerate(keep) if wanted]
        lengths = [self.lengths[place] for place in kept]
        starts, num_words = layout(lengths)
        words = np.zeros(num_words, dtype=">u4")
        moved = np.full(self.num_words, -1, dtype=np.int32)
        stored = self.words()
        for place, start, length in zip(kept, starts, lengths, strict=True):
            old = self.starts[place]
            words[start : start + length] = stored[old : old + length]
            moved[old : old + length] = np.arange(start, start + length, dtype=np.int32)
        positions = moved[np.frombuffer(self.positions, dtype=np.int32)]
        positions = positions[positions >= 0]
        ids = [self.documents[place] for place in kept]
        return Segment(words.tobytes(), 0, num_words, positions.data, ids, starts, lengths)

    def renumbered(self, documents: list[int]) -> Segment:
        """Return the same texts with other ids, in the same order."""
        return replace(self, documents=documents)

    def cursor(self, query: bytes) -> Cursor:
        """Return a cursor at the place of `query` (from `as_query`) in the sorted order."""
        data, base = self.data, self.base

        def context(position: int) -> bytes:
            at = base + 4 * position
            return data[at : at + _KEY_BYTES]

        slot = bisect_left(self.positions, query, key=context)
        return Cursor(self, query, slot)


def layout(lengths: Sequence[int]) -> tuple[list[int], int]:
    """Return where documents of these lengths start in a segment, and its number of words."""
    starts, at = [], _PAD
    for length in lengths:
        starts.append(at)
        at += length + 1
    return starts, max(at - 1, _PAD) + _PAD


def _common_length(left: bytes, right: bytes) -> int:
    """Return how many leading 4-byte words two byte strings share."""
    shorter = min(len(left), len(right))
    if left[:shorter] == right[:shorter]:
        return shorter >> 2
    difference = int.from_bytes(left[:shorter], "big") ^ int.from_bytes(right[:shorter], "big")
    return (8 * shorter - difference.bit_length()) >> 5


class Cursor:
    """An interval of a segment's sorted positions that grows around the place of a query.

    It is empty at first. `next_length` is the number of tokens that the nearest positions outside the
    interval share with the query; `widen` adds all positions that share as many.
    """

    __slots__ = ("_query", "high", "low", "next_length", "segment")

    def __init__(self, segment: Segment, query: bytes, slot: int) -> None:
        self.segment = segment
        self._query = query
        self.low = self.high = slot
        self.next_length = 0
        self._look_outside()

    def __len__(self) -> int:
        return self.high - self.low

    def widen(self, length: int) -> None:
        """Add every position that shares at least `length` tokens with the query."""
        if self.next_length < length:
            return
        segment = self.segment
        data, base, width = segment.data, segment.base, 4 * length
        target = self._query[:width]

        def context(position: int) -> bytes:
            at = base + 4 * position
            return data[at : at + width]

        positions = segment.positions
        low, step = self.low, 1
        while low > 0 and context(positions[max(0, low - step)]) == target:
            low, step = max(0, low - step), 2 * step
        self.low = bisect_left(positions, target, max(0, low - step), low, key=context)
        high, last, step = self.high, len(positions), 1
        while high < last and context(positions[min(last, high + step) - 1]) == target:
            high, step = min(last, high + step), 2 * step
        self.high = bisect_right(positions, target, high, min(last, high + step), key=context)
        self._look_outside()

    def _look_outside(self) -> None:
        segment, query = self.segment, self._query
        longest = 0
        for slot in (self.low - 1, self.high):
            if 0 <= slot < len(segment.positions):
                at = segment.base + 4 * segment.positions[slot]
                longest = max(longest, _common_length(segment.data[at : at + len(query)], query))
        self.next_length = longest
