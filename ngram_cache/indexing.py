"""Owns bringing an index in step with a folder: what to read, encode, forget and save. Knows no tokenizer.

The tokenizer comes in as a function and a fingerprint. All methods but `set_overlay` and `drop_overlay`
belong to one indexing thread; the index they fill may be read from anywhere meanwhile.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from pathlib import Path

from ngram_cache import snapshot
from ngram_cache.index import NgramIndex
from ngram_cache.planning import SILENT, IndexHooks, IndexSummary, is_same, make_plan
from ngram_cache.redaction import blank_secrets
from ngram_cache.repository import (
    DEFAULT_OPTIONS,
    FoundFile,
    Repository,
    RepositoryOptions,
    SkippedFileError,
)
from ngram_cache.snapshot import FileRecord, Snapshot

EncodeMany = Callable[[list[str]], Sequence[Sequence[int]]]

_BATCH_FILES = 32
_BATCH_CHARACTERS = 1 << 18
_PUBLISH_FILES = 256
_PUBLISH_TOKENS = 1 << 18
_MAX_SEGMENTS_WHILE_BUILDING = 24


def forget(root: Path, directory: Path | None = None) -> int:
    """Delete what is saved about a folder; returns the number of files deleted."""
    return snapshot.purge(directory or snapshot.index_directory(), root)


class Indexer:
    """Keeps `index` in step with the files below `root`.

    `encode_many` turns texts into token ids without special tokens; `fingerprint` names its vocabulary,
    and an index saved under another one is not used. Documents are named by their path relative to the
    root, with forward slashes: see `document_path`.
    """

    def __init__(
        self,
        root: Path,
        encode_many: EncodeMany,
        fingerprint: str,
        options: RepositoryOptions = DEFAULT_OPTIONS,
        hooks: IndexHooks = SILENT,
    ) -> None:
        self.index = NgramIndex()
        self.repository = Repository(root, options)
        self.root = self.repository.root
        self._encode_many = encode_many
        self._fingerprint = fingerprint
        self._options = options
        self._hooks = hooks
        self._file = snapshot.snapshot_path(snapshot.index_directory(), self.root, fingerprint)
        self._records: dict[str, FileRecord] = {}
        self._overlays: dict[str, bool] = {}
        self._is_loaded = False
        self._has_changed = False

    @property
    def paths(self) -> list[str]:
        """The indexed paths, sorted."""
        return self.index.paths

    def document_path(self, path: Path | str) -> str:
        """The name of a file in the index; for one outside of the root its whole path."""
        absolute = Path(os.path.normpath(self.root / path))
        for place in (absolute, absolute.parent.resolve() / absolute.name):
            if place.is_relative_to(self.root):
                return place.relative_to(self.root).as_posix()
        return absolute.as_posix()

    def build(self) -> IndexSummary:
        """Load what was saved, read what is new or changed since, forget what is gone, save."""
        summary = IndexSummary()
        if not self._is_loaded:
            summary.message = self._load()
        self._rules_changed()
        walk = self.repository.walk()
        summary.skipped += walk.skipped
        self._synchronise(walk.files, set(self._records), frozenset(), summary)
        return self._finish(summary)

    def reconcile(self, paths: Iterable[Path | str]) -> IndexSummary:
        """Take over changes below `paths`: files or folders created, edited, deleted, renamed, ignored.

        Saved at once only when something is to be forgotten; call `save` for the rest in a quiet moment.
        """
        summary = IndexSummary()
        names = {self.document_path(path) for path in paths}
        names = {"" if name == "." else name for name in names if not Path(name).is_absolute()}
        if any(self.repository.is_rule_file(name) for name in names):
            names = {""}
            self._rules_changed()
        files: dict[str, FoundFile] = {}
        scope: set[str] = set()
        for name in names:
            walk = self.repository.look(name)
            summary.skipped += walk.skipped
            files |= {file.path: file for file in walk.files}
            scope |= {
                path for path in self._records if path == name or path.startswith(f"{name}/" if name else "")
            }
        self._synchronise(list(files.values()), scope, names, summary)
        if summary.num_removed:
            return self._finish(summary)
        self.index.maintain()
        return self._counted(summary)

    def save(self) -> str:
        """Save if anything changed since the last time; returns what went wrong, empty when nothing did."""
        if not self._has_changed:
            return ""
        stored = self.index.stored()
        files = {path: self._records[path] for path in stored.paths.values()}
        try:
            snapshot.save(self._file, Snapshot(self._fingerprint, str(self.root), stored, files))
        except OSError as error:
            return f"The index could not be saved: {error}."
        self._has_changed = False
        return ""

    def set_overlay(self, path: Path | str, text: str) -> None:
        """Draft from an open buffer's text; secrets and ignored files are left out as on the disk."""
        name = self.document_path(path)
        if not self._may_overlay(name):
            return
        try:
            self.repository.check_text(text)
        except SkippedFileError:
            self.index.drop_overlay(name)
            return
        self.index.set_overlay(name, self._encode_many([blank_secrets(text)])[0])

    def drop_overlay(self, path: Path | str) -> None:
        """Return to the file's stored text."""
        name = self.document_path(path)
        self._overlays.pop(name, None)
        self.index.drop_overlay(name)

    def _load(self) -> str:
        self._is_loaded = True
        try:
            loaded = snapshot.load(self._file, fingerprint=self._fingerprint, root=str(self.root))
            self.index.restore(loaded.stored)
        except FileNotFoundError:
            return ""
        except (snapshot.SnapshotError, ValueError, OSError) as error:
            self._has_changed = True
            return f"The saved index is built anew: {error}."
        self._records = loaded.files
        return ""

    def _synchronise(
        self, files: list[FoundFile], scope: set[str], named: Set[str], summary: IndexSummary
    ) -> None:
        """Make the index hold `files` in place of the paths in `scope`; `named` ones are read in any case."""
        plan = make_plan(files, self._records, scope, named, self._options.max_files)
        if plan.num_surplus:
            summary.skipped["too many files"] += plan.num_surplus
        gone = set(plan.gone)
        wanted = self._rename(plan.wanted, gone, summary)
        for path in gone:
            self._forget(path, summary)
        self._encode(wanted, summary)

    def _rename(self, wanted: Iterable[FoundFile], gone: set[str], summary: IndexSummary) -> list[FoundFile]:
        """Move documents whose text reappears under a new path; returns the files that are left to encode."""
        moved = {(self._records[path].size, self._records[path].digest): path for path in gone}
        sizes = {size for size, _ in moved}
        left = []
        for file in wanted:
            is_new = file.path not in self._records and file.size in sizes
            text = self._text(file, Counter()) if is_new else None
            old = moved.pop((file.size, _digest(text)), None) if text is not None else None
            if old is None:
                left.append(file)
                continue
            gone.discard(old)
            self.index.rename(old, file.path)
            record = self._records.pop(old)
            self._records[file.path] = FileRecord(file.size, file.mtime_ns, record.digest)
            self._has_changed = True
            summary.num_renamed += 1
        return left

    def _encode(self, files: list[FoundFile], summary: IndexSummary) -> None:
        batch: list[tuple[FoundFile, str]] = []
        pending: list[tuple[str, Sequence[int]]] = []
        for done, file in enumerate(files, 1):
            if self._hooks.should_stop():
                summary.is_complete = False
                break
            text = self._text(file, summary.skipped)
            if text is None:
                self._forget(file.path, summary)
            elif not self._is_known(file, text):
                batch.append((file, text))
            is_last = done == len(files)
            if (
                is_last
                or len(batch) == _BATCH_FILES
                or sum(len(text) for _, text in batch) > _BATCH_CHARACTERS
            ):
                pending += self._encode_batch(batch, summary)
                batch = []
                self._hooks.report(done, len(files), file.path)
                self._hooks.pause()
            if is_last or len(pending) >= _PUBLISH_FILES or _num_tokens(pending) >= _PUBLISH_TOKENS:
                self._publish(pending)
                pending = []
        self._publish(pending)

    def _encode_batch(
        self, batch: list[tuple[FoundFile, str]], summary: IndexSummary
    ) -> list[tuple[str, Sequence[int]]]:
        encoded = self._encode_many([text for _, text in batch]) if batch else []
        documents = []
        for (file, text), tokens in zip(batch, encoded, strict=True):
            self._records[file.path] = FileRecord(file.size, file.mtime_ns, _digest(text))
            documents.append((file.path, tokens))
        summary.num_encoded += len(documents)
        return documents

    def _publish(self, documents: list[tuple[str, Sequence[int]]]) -> None:
        if documents:
            self.index.update_many(documents)
            self.index.maintain(_MAX_SEGMENTS_WHILE_BUILDING)
            self._has_changed = True

    def _text(self, file: FoundFile, skipped: Counter[str]) -> str | None:
        """A file's text as it may be drafted, None (and counted) when it is not to be indexed."""
        try:
            return blank_secrets(self.repository.read(file))
        except SkippedFileError as reason:
            skipped[str(reason)] += 1
            return None

    def _is_known(self, file: FoundFile, text: str) -> bool:
        record = self._records.get(file.path)
        if record is None or record.digest != _digest(text):
            return False
        if not is_same(record, file):
            self._records[file.path] = FileRecord(file.size, file.mtime_ns, record.digest)
            self._has_changed = True
        return True

    def _forget(self, path: str, summary: IndexSummary) -> None:
        if self._records.pop(path, None) is not None:
            self.index.remove(path)
            self._has_changed = True
            summary.num_removed += 1

    def _may_overlay(self, name: str) -> bool:
        if name not in self._overlays:
            self._overlays[name] = self.repository.allows(name)
        return self._overlays[name]

    def _rules_changed(self) -> None:
        self.repository.refresh()
        open_before, self._overlays = self._overlays, {}
        for name in open_before:
            if not self._may_overlay(name):
                self.index.drop_overlay(name)

    def _finish(self, summary: IndexSummary) -> IndexSummary:
        is_mostly_new = summary.num_encoded > len(self._records) // 2
        self.index.maintain(*((1,) if is_mostly_new else ()))
        problem = self.save()
        summary.message = f"{summary.message} {problem}".strip()
        return self._counted(summary)

    def _counted(self, summary: IndexSummary) -> IndexSummary:
        summary.num_documents = self.index.num_documents
        summary.num_tokens = self.index.num_tokens
        return summary


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _num_characters(batch: list[tuple[FoundFile, str]]) -> int:
    return sum(len(text) for _, text in batch)


def _num_tokens(documents: list[tuple[str, Sequence[int]]]) -> int:
    return sum(len(tokens) for _, tokens in documents)
