"""The versions of each path, and which of them is searched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ngram_cache.segment import Segment


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

    Replaced versions stay recorded for their path until `settle`, because readers may still see them.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._paths: dict[int, str] = {}
        self._lost: dict[str, set[int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, version: int) -> bool:
        return version in self._paths

    @property
    def num_versions(self) -> int:
        """Number of versions that are not forgotten, hidden ones included."""
        return len(self._paths)

    def entry(self, path: str) -> Entry:
        """Return the versions of a path; empty for an unknown one."""
        return self._entries.get(path, Entry())

    def own(self, path: str) -> frozenset[int]:
        """Return the versions of a path, and those replaced lately."""
        # read first, because a version is recorded here before the path loses it
        kept = self.entry(path).kept
        return frozenset(kept).union(self._lost.get(path, ()))

    def settle(self) -> None:
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

    def move(self, old: str, new: str) -> set[int]:
        """Give the stored version of `old` to `new`; overlays stay. Raises KeyError without a stored one."""
        moved = self._entries[old]
        if moved.stored is None:
            raise KeyError(old)
        if old == new:
            return set()
        touched = self.assign(old, replace(moved, stored=None))
        return touched | self.assign(new, replace(self.entry(new), stored=moved.stored))

    def check_integrity(self) -> None:
        """AssertionError when the two directions disagree."""
        there = {version: path for path, entry in self._entries.items() for version in entry.kept}
        assert there == self._paths  # noqa: S101  its purpose
