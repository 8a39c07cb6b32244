"""Plans an indexing run, records its summary, and finds what changed at some names: which files are there
now, and which indexed paths they replace. Changes no disk and no index.

A branch switch names thousands of paths, so the time grows with the sum of indexed and found paths, not with
their product.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from ngram_cache.index import NgramIndex
from ngram_cache.repository import FoundFile, KnownLayers, Repository, Walk
from ngram_cache.snapshot import FileRecord

_CHECKED_PATHS = 1 << 12


@dataclass(frozen=True, slots=True)
class IndexHooks:
    """Callbacks of the caller: progress in files, a request to stop, permission to save, a pause after each
    batch.
    """

    report: Callable[[int, int, str], None] = lambda _done, _total, _path: None
    should_stop: Callable[[], bool] = lambda: False
    may_save: Callable[[], bool] = lambda: True
    pause: Callable[[], None] = lambda: time.sleep(0)


SILENT = IndexHooks()


@dataclass(slots=True)
class IndexSummary:
    """The result of one run. `message` is for the user; empty if nothing went wrong."""

    num_documents: int = 0
    num_tokens: int = 0
    num_encoded: int = 0
    num_removed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    is_complete: bool = True
    message: str = ""

    def take(self, walk: Walk) -> None:
        """Count the files that a walk left out."""
        self.skipped += walk.skipped
        self.message = self.message or walk.problem

    def count(self, index: NgramIndex) -> IndexSummary:
        """Record the present size of the index; return self."""
        self.num_documents, self.num_tokens = index.num_documents, index.num_tokens
        return self


@dataclass(frozen=True, slots=True)
class IndexingPlan:
    """The files to read, oldest first, and paths to forget; `num_surplus` new files exceed the limit."""

    wanted: tuple[FoundFile, ...]
    gone: frozenset[str]
    num_surplus: int


def make_plan(
    files: Sequence[FoundFile],
    records: Mapping[str, FileRecord],
    scope: Iterable[str],
    named: Set[str],
    max_files: int,
) -> IndexingPlan:
    """Plan how to make an index hold `files` (oldest first) instead of the recorded paths in `scope`.

    Files with the recorded size and time are not read again, unless they are `named`. New files are taken up
    to the limit, the newest first.
    """
    gone = frozenset(scope) - {file.path for file in files}
    room = max_files - len(records.keys() - gone)
    wanted: list[FoundFile] = []
    num_surplus = 0
    for file in reversed(files):
        record = records.get(file.path)
        if record is None and room <= 0:
            num_surplus += 1
            continue
        room -= record is None
        if record is None or file.path in named or not is_same(record, file):
            wanted.append(file)
    return IndexingPlan(tuple(reversed(wanted)), gone, num_surplus)


def is_same(record: FileRecord, file: FoundFile) -> bool:
    """Whether a file looks unchanged since it was recorded."""
    return (record.size, record.mtime_ns) == (file.size, file.mtime_ns)


class Places:
    """The paths at and below some names; testing a path is fast for any number of names."""

    def __init__(self, names: Iterable[str]) -> None:
        self._starts: list[str] = []
        for start in sorted(f"{name}/" if name else "" for name in names):
            if not (self._starts and start.startswith(self._starts[-1])):
                self._starts.append(start)

    @property
    def names(self) -> list[str]:
        """The names that are not below another name."""
        return [start.removesuffix("/") for start in self._starts]

    def __contains__(self, path: str) -> bool:
        # No name is a prefix of another, so only the last one that sorts before `path` can be its prefix.
        start = f"{path}/"
        at = bisect_right(self._starts, start)
        return at > 0 and start.startswith(self._starts[at - 1])


@dataclass(slots=True)
class Change:
    """The result: `files` replace the indexed paths in `scope`; `folders` are all folders read now."""

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
    """Walk the places, as far as the time for one walk allows."""
    known: KnownLayers = {}
    walks: list[Walk] = []
    until = time.monotonic() + repository.options.limits.max_walk_s
    for number, name in enumerate(places.names):
        checkpoint()
        if time.monotonic() > until:
            left_out = Walk()
            left_out.skipped["too many entries"] = len(places.names) - number
            return [*walks, left_out]
        # Names are sorted by folder, so layers of folders that do not contain this name are not needed again.
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
