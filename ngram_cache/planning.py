"""Plans an indexing run, and records its summary. Pure: changes no disk and no index."""

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
    """Callbacks of the caller: progress in files, a request to stop, permission to save, a pause after each
    batch.
    """

    report: Callable[[int, int, str], None] = _report_nothing
    should_stop: Callable[[], bool] = _never
    may_save: Callable[[], bool] = _always
    pause: Callable[[], None] = _yield_processor


SILENT = IndexHooks()


@dataclass(slots=True)
class IndexSummary:
    """The result of one run. `message` is for the user; empty if nothing went wrong."""

    num_documents: int = 0
    num_tokens: int = 0
    num_encoded: int = 0
    num_removed: int = 0
    num_renamed: int = 0
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
