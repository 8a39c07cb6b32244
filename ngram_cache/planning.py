"""Owns what an indexing run is to do and what it tells about itself. Pure: changes no disk and no index."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from ngram_cache.index import NgramIndex
from ngram_cache.repository import FoundFile, Walk
from ngram_cache.snapshot import FileRecord


def _report_nothing(_done: int, _total: int, _path: str) -> None:
    return None


def _never() -> bool:
    return False


def _always() -> bool:
    return True


def _yield_processor() -> None:
    time.sleep(0)


@dataclass(frozen=True, slots=True)
class IndexHooks:
    """How the caller takes part: progress in files, a wish to stop, leave to save, a pause after a batch."""

    report: Callable[[int, int, str], None] = _report_nothing
    should_stop: Callable[[], bool] = _never
    may_save: Callable[[], bool] = _always
    pause: Callable[[], None] = _yield_processor


SILENT = IndexHooks()


@dataclass(slots=True)
class IndexSummary:
    """What one run did. `message` is for the user; empty when all went as usual."""

    num_documents: int = 0
    num_tokens: int = 0
    num_encoded: int = 0
    num_removed: int = 0
    num_renamed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    is_complete: bool = True
    message: str = ""

    def take(self, walk: Walk) -> None:
        """Count what a walk left out."""
        self.skipped += walk.skipped
        self.message = self.message or walk.problem

    def count(self, index: NgramIndex) -> IndexSummary:
        """Note how much there is now; returns itself."""
        self.num_documents, self.num_tokens = index.num_documents, index.num_tokens
        return self


@dataclass(frozen=True, slots=True)
class IndexingPlan:
    """Files to read, oldest first, and paths to forget; `num_surplus` new files are over the limit."""

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
    """Plan how to make an index hold `files` (oldest first) in place of the recorded paths in `scope`.

    Files whose size and time are as recorded are left alone, unless they are `named`. New files are taken
    while there is room for them, the newest first.
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
