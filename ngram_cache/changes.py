"""Owns what a change of some names is about: the files that are there, and what is known at and below them.

Its cost follows what is known and what is found, not one times the other: a branch switch names thousands.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field

from ngram_cache.repository import FoundFile, KnownLayers, Repository, Walk

_CHECKED_PATHS = 1 << 12


class Places:
    """The paths at and below some names; whether it holds a path hardly depends on how many these are."""

    def __init__(self, names: Iterable[str]) -> None:
        self._starts: list[str] = []
        for start in sorted(f"{name}/" if name else "" for name in names):
            if not (self._starts and start.startswith(self._starts[-1])):
                self._starts.append(start)

    @property
    def names(self) -> list[str]:
        """The names that lie below no other."""
        return [start.removesuffix("/") for start in self._starts]

    def __contains__(self, path: str) -> bool:
        # None of the starts begins another, so only the last one up to here can begin this path.
        start = f"{path}/"
        at = bisect_right(self._starts, start)
        return at > 0 and start.startswith(self._starts[at - 1])


@dataclass(slots=True)
class Change:
    """What was found: `files` in place of the indexed paths in `scope`; all `folders` that are read now."""

    files: list[FoundFile]
    scope: Set[str]
    folders: frozenset[str]
    walks: list[Walk] = field(default_factory=list)


def look_at(
    repository: Repository,
    names: Set[str],
    indexed: Set[str],
    folders: frozenset[str],
    checkpoint: Callable[[], None],
) -> Change:
    """Return the changes of `names`, given that these paths are `indexed` and these `folders` are read."""
    places = Places(names)
    walks = _walks(repository, places, checkpoint)
    files = {file.path: file for walk in walks for file in walk.files}
    found = {folder for walk in walks for folder in walk.folders}
    scope = names
    if found or not names <= indexed:
        scope = _in(places, indexed, checkpoint)
        found.update(folders - _in(places, folders, checkpoint))
        folders = frozenset(found) if found != folders else folders
    return Change(list(files.values()), scope, folders, walks)


def _walks(repository: Repository, places: Places, checkpoint: Callable[[], None]) -> list[Walk]:
    """Walk the places, as many as the time for one walk allows."""
    known: KnownLayers = {}
    walks: list[Walk] = []
    until = time.monotonic() + repository.limits.max_walk_s
    for number, name in enumerate(places.names):
        checkpoint()
        if time.monotonic() > until:
            left_out = Walk()
            left_out.skipped["too many entries"] = len(places.names) - number
            return [*walks, left_out]
        # The names of a folder follow one another, so what is not on the way to this one is needed no more.
        for folder in [folder for folder in known if folder and not f"{name}/".startswith(f"{folder}/")]:
            del known[folder]
        walks.append(repository.look(name, known))
    return walks


def _in(places: Places, paths: Set[str], checkpoint: Callable[[], None]) -> set[str]:
    found = set()
    for number, path in enumerate(paths):
        if number % _CHECKED_PATHS == 0:
            checkpoint()
        if path in places:
            found.add(path)
    return found
