"""The searched segments, which of their documents are live, and which segments to merge.

Readers see a tuple that is replaced as a whole. Writers take turns; callers hold the locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ngram_cache.construction import never_stop
from ngram_cache.search import Part
from ngram_cache.segment import Segment
from ngram_cache.versions import VersionTable

_GROWTH = 2
_MAX_DEAD_SHARE = 0.3


class LiveParts:
    """Holds each version in `table` in one of the `parts`; only the versions that are searched are live."""

    def __init__(self, table: VersionTable) -> None:
        self.parts: tuple[Part, ...] = ()
        self.num_documents = 0  # paths of the table when the parts were replaced
        self._table = table

    def without(self, path: str) -> tuple[tuple[Part, ...], frozenset[int]]:
        """Return a consistent view: the parts to search, and the versions of `path`, which are excluded."""
        while True:
            parts, own = self.parts, self._table.own(path) if path else frozenset()
            if parts is self.parts:
                return parts, own

    def refresh(self, touched: Iterable[int]) -> None:
        """Update the liveness of the versions in `touched` from the table."""
        self.publish(self.parts, touched)

    def publish(self, parts: Iterable[Part], touched: Iterable[int]) -> None:
        """Replace the parts; update the liveness of `touched`, and drop parts without any kept version."""
        fresh = []
        for part in parts:
            places = [(part.segment.local(version), self._table.is_live(version)) for version in touched]
            flags = [(place, is_live) for place, is_live in places if place is not None]
            changed = part.with_live(flags) if flags else part
            if changed.has_live or any(version in self._table for version in part.segment.documents):
                fresh.append(changed)
        self.parts = tuple(fresh)
        self.num_documents = len(self._table)
        self._table.settle()

    def replace(self, old: Sequence[Part], merged: Segment) -> None:
        """Replace the parts `old` by one segment; their liveness may have changed since it was made."""
        gone = {part.segment for part in old}
        rest = [part for part in self.parts if part.segment not in gone]
        self.publish((*rest, Part(merged)), merged.documents)

    def merged(self, parts: Sequence[Part], checkpoint: Callable[[], None] = never_stop) -> Segment:
        """Return one segment of all kept versions in some parts; `checkpoint` is called between the steps."""
        kept = (
            (version, part.segment.tokens(place))
            for part in parts
            for place, version in enumerate(part.segment.documents)
            if version in self._table
        )
        return Segment.build(kept, checkpoint)

    def reduced(self, parts: Sequence[Part]) -> Segment:
        """Return the segment of the only part, without forgotten versions."""
        (part,) = parts
        return part.segment.only(self._keeps(part.segment))

    def first_mostly_dead(self, parts: Sequence[Part]) -> list[Part]:
        """Return the first part that should be rewritten; empty if there is none."""
        return [part for part in parts if is_mostly_dead(part.segment, self._keeps(part.segment))][:1]

    def check_integrity(self) -> None:
        """AssertionError when parts and table contradict each other."""
        self._table.check_integrity()
        found: list[int] = []
        for part in self.parts:
            part.segment.check_integrity()
            is_live = [part.is_live(place) for place in range(len(part.segment.documents))]
            assert is_live == list(map(self._table.is_live, part.segment.documents))  # noqa: S101  its purpose
            found += [version for version in part.segment.documents if version in self._table]
        assert len(found) == len(set(found)) == self._table.num_versions  # noqa: S101  as above

    def _keeps(self, segment: Segment) -> list[bool]:
        return [version in self._table for version in segment.documents]


def choose_tiers(parts: Sequence[Part], max_parts: int) -> list[Part]:
    """Return the smallest parts whose merge leaves at most `max_parts`, with larger ones of a similar size.

    Parts of up to twice the sum are included, which keeps sizes geometric: each token is sorted again only a
    logarithmic number of times.
    """
    by_size = sorted(parts, key=_size)
    num_forced = len(parts) - max_parts + 1
    if num_forced < 2:
        return []
    chosen = by_size[:num_forced]
    total = sum(map(_size, chosen))
    for part in by_size[num_forced:]:
        if _size(part) > _GROWTH * total:
            break
        chosen.append(part)
        total += _size(part)
    return chosen


def choose_small(parts: Sequence[Part], max_parts: int, max_tokens: int) -> list[Part]:
    """Return the smallest parts, of at most `max_tokens` in all, if there are more than `max_parts`."""
    if len(parts) <= max_parts:
        return []
    chosen: list[Part] = []
    total = 0
    for part in sorted(parts, key=_size):
        total += _size(part)
        if total > max_tokens:
            break
        chosen.append(part)
    return chosen if len(chosen) > 1 else []


def is_mostly_dead(segment: Segment, keep: Sequence[bool]) -> bool:
    """Return whether so large a part of the tokens is removed that the segment should be rewritten."""
    num_kept = sum(length for length, kept in zip(segment.lengths, keep, strict=True) if kept)
    return num_kept < (1 - _MAX_DEAD_SHARE) * segment.num_tokens


def _size(part: Part) -> int:
    return part.segment.num_words
