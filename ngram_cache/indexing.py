"""Owns bringing an index in step with a folder: what to read, encode, forget and save. Knows no tokenizer.

The tokenizer comes in as a function and a fingerprint. All methods but `set_overlay`, `drop_overlay`
and `is_shared` belong to one indexing thread; the index they fill may be read from anywhere meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
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
    StoppedError,
)
from ngram_cache.snapshot import FileRecord, Snapshot

EncodeMany = Callable[[list[str]], Sequence[Sequence[int]]]

_BATCH_FILES = 32
_BATCH_CHARACTERS = 1 << 18
_PUBLISH_FILES = 256
_PUBLISH_TOKENS = 1 << 18
_MAX_SEGMENTS_WHILE_BUILDING = 24
_MAX_TOKENS = 1 << 26  # half a gigabyte

# What was indexed until somebody wants it to stop is saved within this time, or not at all.
_LAST_SAVE_S = 0.5


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
        self.repository = Repository(root, options, hooks.should_stop)
        self.root = self.repository.root
        self._encode_many = encode_many
        self._fingerprint = fingerprint
        self._options = options
        self._hooks = hooks
        self._file = snapshot.snapshot_path(snapshot.index_directory(), self.root, fingerprint)
        self._records: dict[str, FileRecord] = {}
        self._overlays: dict[str, bool] = {}
        self._folders: frozenset[str] = frozenset()
        self._is_loaded = False
        self._has_changed = False

    @property
    def paths(self) -> list[str]:
        """The indexed paths, sorted."""
        return self.index.paths

    @property
    def folders(self) -> frozenset[str]:
        """The folders that are read, relative to the root: none behind a link, none that is ignored."""
        return self._folders

    def document_path(self, path: Path | str) -> str:
        """The name of a file in the index; for one outside of the root its whole path."""
        absolute = Path(os.path.normpath(self.root / path))
        for place in (absolute, absolute.parent.resolve() / absolute.name):
            if place.is_relative_to(self.root):
                return place.relative_to(self.root).as_posix()
        return absolute.as_posix()

    def build(self) -> IndexSummary:
        """Load what was saved, read what is new or changed since, forget what is gone, save.

        Once the hooks say so it stops between any two small steps, and its summary is not complete.
        """
        summary = IndexSummary()
        if not self._is_loaded:
            summary.message = self._load()
        try:
            self._rules_changed()
            walk = self.repository.walk()
            self._folders = frozenset(walk.folders)
            summary.take(walk)
            self._synchronise(walk.files, set(self._records), frozenset(), summary)
        except StoppedError:
            summary.is_complete = False
        return self._finish(summary)

    def reconcile(self, paths: Iterable[Path | str]) -> IndexSummary:
        """Take over changes below `paths`: files or folders created, edited, deleted, renamed, ignored.

        Saved at once only when something is to be forgotten; call `save` for the rest in a quiet moment.
        """
        summary = IndexSummary()
        try:
            self._reconcile(paths, summary)
            if not summary.num_removed:
                self.index.maintain(checkpoint=self._checkpoint)
        except StoppedError:
            summary.is_complete = False
        return self._finish(summary) if summary.num_removed else self._counted(summary)

    def _reconcile(self, paths: Iterable[Path | str], summary: IndexSummary) -> None:
        names = {self.document_path(path) for path in paths}
        names = {"" if name == "." else name for name in names if not Path(name).is_absolute()}
        if any(self.repository.is_rule_file(name) for name in names):
            names = {""}
            self._rules_changed()
        files: dict[str, FoundFile] = {}
        scope: set[str] = set()
        for name in names:
            walk = self.repository.look(name)
            self._folders = frozenset(walk.folders) | (self._folders if name else frozenset())
            summary.take(walk)
            files |= {file.path: file for file in walk.files}
            scope |= {
                path for path in self._records if path == name or path.startswith(f"{name}/" if name else "")
            }
        self._synchronise(list(files.values()), scope, names, summary)

    def save(self) -> str:
        """Save if anything changed since the last time; returns what went wrong, empty when nothing did.

        What the hooks forbid, or do not leave the time for, stays unsaved.
        """
        if not self._has_changed:
            return ""
        stored = self.index.stored()
        files = {path: self._records[path] for path in stored.paths.values()}
        try:
            self._write(Snapshot(self._fingerprint, str(self.root), stored, files))
        except OSError as error:
            return f"The index could not be saved: {error}."
        except StoppedError:
            return ""
        self._has_changed = False
        return ""

    def _write(self, saved: Snapshot) -> None:
        """OSError when it cannot be written, StoppedError when it is not to be, or not in time."""
        until = math.inf

        def checkpoint() -> None:
            nonlocal until
            if self._hooks.should_stop():
                until = min(until, time.monotonic() + _LAST_SAVE_S)
            if not self._hooks.may_save() or time.monotonic() > until:
                raise StoppedError

        snapshot.save(self._file, saved, checkpoint)

    def _checkpoint(self) -> None:
        if self._hooks.should_stop():
            raise StoppedError

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

    def is_shared(self, path: Path | str) -> bool:
        """Whether an open buffer may be drafted from elsewhere; False until its overlay was first set."""
        return self._overlays.get(self.document_path(path), False)

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
            self._checkpoint()
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
        """Read, encode and publish `files`, batch by batch; what is published stays when it is stopped."""
        failed: list[BaseException] = []
        pending: list[tuple[str, Sequence[int]]] = []
        done = 0
        try:
            while done < len(files):
                self._checkpoint()
                batch, num_looked_at = self._read_batch(files[done:], summary)
                done += num_looked_at
                pending += self._encode_batch(batch, summary, failed)
                self._hooks.report(done, len(files), files[done - 1].path)
                self._hooks.pause()
                if self.index.num_tokens + _num_tokens(pending) > _MAX_TOKENS:
                    summary.skipped["too many tokens"] += len(files) - done
                    break
                if len(pending) >= _PUBLISH_FILES or _num_tokens(pending) >= _PUBLISH_TOKENS:
                    self._publish(pending)
                    pending = []
        except StoppedError:
            summary.is_complete = False
        self._publish(pending)
        if failed and not self._records:
            raise failed[0]

    def _read_batch(
        self, files: list[FoundFile], summary: IndexSummary
    ) -> tuple[list[tuple[FoundFile, str]], int]:
        """The first of `files` with their texts, where these are new; and how many were looked at."""
        batch: list[tuple[FoundFile, str]] = []
        num_chars = num_looked_at = 0
        for file in files:
            text = self._text(file, summary.skipped)
            num_looked_at += 1
            if text is None:
                self._forget(file.path, summary)
            elif not self._is_known(file, text):
                batch.append((file, text))
                num_chars += len(text)
            if len(batch) == _BATCH_FILES or num_chars > _BATCH_CHARACTERS:
                break
        return batch, num_looked_at

    def _encode_batch(
        self, batch: list[tuple[FoundFile, str]], summary: IndexSummary, failed: list[BaseException]
    ) -> list[tuple[str, Sequence[int]]]:
        """The tokens of a batch. A file that the tokenizer fails at is left out alone, its error kept."""
        documents = []
        for file, text, tokens in self._encoded(batch, failed):
            if tokens is None:
                summary.skipped["no tokens"] += 1
                self._forget(file.path, summary)
                continue
            self._records[file.path] = FileRecord(file.size, file.mtime_ns, _digest(text))
            documents.append((file.path, tokens))
        summary.num_encoded += len(documents)
        return documents

    def _encoded(
        self, batch: list[tuple[FoundFile, str]], failed: list[BaseException]
    ) -> Iterator[tuple[FoundFile, str, Sequence[int] | None]]:
        if not batch:
            return
        encoded: Sequence[Sequence[int] | None]
        try:
            encoded = self._encode_many([text for _, text in batch])
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if len(batch) == 1:
                failed.append(error)
                encoded = [None]
            else:
                for one in batch:
                    self._checkpoint()
                    yield from self._encoded([one], failed)
                return
        for (file, text), tokens in zip(batch, encoded, strict=True):
            yield file, text, tokens

    def _publish(self, documents: list[tuple[str, Sequence[int]]]) -> None:
        if documents:
            self.index.update_many(documents)
            self._has_changed = True
            with contextlib.suppress(StoppedError):
                self.index.maintain(_MAX_SEGMENTS_WHILE_BUILDING, self._checkpoint)

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
        with contextlib.suppress(StoppedError):
            if is_mostly_new:
                self.index.maintain(1, self._checkpoint)
            else:
                self.index.maintain(checkpoint=self._checkpoint)
        problem = self.save()
        summary.message = f"{summary.message} {problem}".strip()
        return self._counted(summary)

    def _counted(self, summary: IndexSummary) -> IndexSummary:
        summary.num_documents = self.index.num_documents
        summary.num_tokens = self.index.num_tokens
        return summary


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _num_tokens(documents: list[tuple[str, Sequence[int]]]) -> int:
    return sum(len(tokens) for _, tokens in documents)
