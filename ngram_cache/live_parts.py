"""Owns the segments that are searched, and which of their documents are live. Knows no locks.

Readers see a tuple that is swapped whole. Writers take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ngram_cache.compaction import is_mostly_dead
from ngram_cache.construction import never_stop
from ngram_cache.search import Part
from ngram_cache.segment import Segment
from ngram_cache.table import VersionTable


class LiveParts:
    """Each version that `table` keeps lies in one of the `parts`, and only those it drafts from are live."""

    def __init__(self, table: VersionTable) -> None:
        self.parts: tuple[Part, ...] = ()
        self._table = table

    def without(self, path: str) -> tuple[tuple[Part, ...], frozenset[int]]:
        """What is drafted from, and of that the versions of `path`, which are not to be: of one moment."""
        while True:
            parts, own = self.parts, self._table.own(path) if path else frozenset()
            if parts is self.parts:
                return parts, own

    def refresh(self, touched: Iterable[int]) -> None:
        """The table says something else of the versions in `touched`."""
        self.publish(self.parts, touched)

    def publish(self, parts: Iterable[Part], touched: Iterable[int]) -> None:
        """Swap the parts: liveness of `touched` brought up to date, those without anything kept dropped."""
        fresh = []
        for part in parts:
            places = [(part.segment.local(version), self._table.is_live(version)) for version in touched]
            flags = [(place, is_live) for place, is_live in places if place is not None]
            changed = part.with_live(flags) if flags else part
            if changed.has_live or any(version in self._table for version in part.segment.documents):
                fresh.append(changed)
        self.parts = tuple(fresh)
        self._table.settle()

    def replace(self, old: Sequence[Part], merged: Segment) -> None:
        """One segment in place of those of `old`, which may have changed in liveness since."""
        gone = {part.segment for part in old}
        rest = [part for part in self.parts if part.segment not in gone]
        self.publish((*rest, Part(merged)), merged.documents)

    def merged(self, parts: Sequence[Part], checkpoint: Callable[[], None] = never_stop) -> Segment:
        """One segment of all that is kept of some parts; `checkpoint` is called between the steps."""
        kept = (
            (version, part.segment.tokens(place))
            for part in parts
            for place, version in enumerate(part.segment.documents)
            if version in self._table
        )
        return Segment.build(kept, checkpoint)

    def reduced(self, parts: Sequence[Part]) -> Segment:
        """The segment of the only part, without what is forgotten."""
        (part,) = parts
        return part.segment.only(self._keeps(part.segment))

    def first_mostly_dead(self, parts: Sequence[Part]) -> list[Part]:
        """The first part that should be written anew; none where there is none."""
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
