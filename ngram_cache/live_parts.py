"""The versions of each path, which of them is searched, the segments that hold them, and which to merge.

Readers see a tuple that is replaced as a whole. Writers take turns; callers hold the locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ngram_cache.construction import never_stop
from ngram_cache.search import Part
from ngram_cache.segment import Segment

_GROWTH = 2
_MAX_DEAD_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Stored:
    """The part of an index to save: sorted segments and the path of each document in them, no overlays."""

    segments: tuple[Segment, ...]
    paths: dict[int, str]

    @classmethod
    def of(cls, segments: Iterable[Segment], paths: Mapping[int, str]) -> Stored:
        """Return only the documents in `paths`, with new ids from 0 by age."""
        numbers = {version: number for number, version in enumerate(sorted(paths))}
        renumbered = []
        for segment in segments:
            keep = [version in paths for version in segment.documents]
            if any(keep):
                kept = segment if all(keep) else segment.only(keep)
                renumbered.append(kept.renumbered([numbers[version] for version in kept.documents]))
        return cls(tuple(renumbered), {numbers[version]: path for version, path in paths.items()})


@dataclass(frozen=True, slots=True)
class Entry:
    """The versions of one path, by document id; an overlay hides the stored one."""

    stored: int | None = None
    overlay: int | None = None

    @property
    def live(self) -> int | None:
        """The version that is searched."""
        return self.stored if self.overlay is None else self.overlay

    @property
    def kept(self) -> tuple[int, ...]:
        """All versions that are not forgotten."""
        return tuple(version for version in (self.stored, self.overlay) if version is not None)

    def with_version(self, version: int, *, is_overlay: bool) -> Entry:
        """Return the entry with a newer version in place of an older one; an older one changes nothing."""
        current = self.overlay if is_overlay else self.stored
        if current is not None and current > version:
            return self
        return replace(self, overlay=version) if is_overlay else replace(self, stored=version)


class VersionTable:
    """Maps paths to versions and back. Writers take turns; single reads are safe from any thread.

    Replaced versions stay recorded until `forget_replaced`, because readers may still see them.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._paths: dict[int, str] = {}
        self._lost: dict[str, set[int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, version: int) -> bool:
        return version in self._paths

    def entry(self, path: str) -> Entry:
        """Return the versions of a path; empty for an unknown one."""
        return self._entries.get(path, Entry())

    def own(self, path: str) -> frozenset[int]:
        """Return the versions of a path, and those replaced lately."""
        # read first, because a version is recorded here before the path loses it
        kept = self.entry(path).kept
        return frozenset(kept).union(self._lost.get(path, ()))

    def forget_replaced(self) -> None:
        """Forget replaced versions, once no reader sees them any more."""
        self._lost = {}

    def path_of(self, version: int) -> str:
        """Return the path of a version; empty if it was forgotten."""
        return self._paths.get(version, "")

    def is_live(self, version: int) -> bool:
        """Return whether a version is searched."""
        path = self._paths.get(version)
        return path is not None and self._entries[path].live == version

    def stored(self) -> dict[int, str]:
        """Return the stored version of each path that has one."""
        entries = self._entries.copy()
        return {entry.stored: path for path, entry in entries.items() if entry.stored is not None}

    def overlaid(self) -> list[str]:
        """The paths that have an overlay."""
        entries = self._entries.copy()
        return [path for path, entry in entries.items() if entry.overlay is not None]

    def assign(self, path: str, entry: Entry) -> set[int]:
        """Give a path these versions; return all whose liveness may have changed."""
        old = self.entry(path)
        if old.kept:
            self._lost[path] = {*self._lost.get(path, ()), *old.kept}
        for version in old.kept:
            del self._paths[version]
        if entry.kept:
            self._entries[path] = entry
        else:
            self._entries.pop(path, None)
        self._paths.update(dict.fromkeys(entry.kept, path))
        return {*old.kept, *entry.kept}


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
        self._table.forget_replaced()

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
        """Return the first part that should be rewritten without its removed tokens; empty for none."""
        for part in parts:
            lengths = zip(part.segment.lengths, self._keeps(part.segment), strict=True)
            num_kept = sum(length for length, is_kept in lengths if is_kept)
            if num_kept < (1 - _MAX_DEAD_SHARE) * part.segment.num_tokens:
                return [part]
        return []

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


def _size(part: Part) -> int:
    return part.segment.num_words
