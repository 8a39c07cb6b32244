"""Keeps an index in step with a folder: reads, encodes, removes and saves.

All methods but `set_overlay`, `drop_overlay` and `is_shared` belong to one indexing thread. Any thread may
read the index meanwhile.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

from ngram_cache.folder_rules import is_rule_file
from ngram_cache.index import NgramIndex
from ngram_cache.overlays import EncodeMany, FileEncoder, Overlays, digest, num_tokens_of
from ngram_cache.planning import SILENT, IndexHooks, IndexSummary, is_same, look_at, make_plan
from ngram_cache.redaction import blank_secrets
from ngram_cache.repository import (
    DEFAULT_OPTIONS,
    FoundFile,
    Repository,
    RepositoryOptions,
    SkippedFileError,
    StoppedError,
)
from ngram_cache.saved_index import SavedIndex
from ngram_cache.snapshot import FileRecord

_BATCH_FILES = 32
_BATCH_CHARACTERS = 1 << 18
_PUBLISH_FILES = 256
_PUBLISH_TOKENS = 1 << 18
_MAX_SEGMENTS_WHILE_BUILDING = 24
_MAX_TOKENS = 1 << 26  # about 0.5 GB


class Indexer:
    """Keeps `index` in step with the files below `root`.

    `encode_many` turns texts into token ids without special tokens; `fingerprint` names its vocabulary,
    and an index saved under another one is not used. Documents are named by their path relative to the
    root, with forward slashes: see `Repository.document_path`.
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
        self._options = options
        self._hooks = hooks
        self._saved = SavedIndex(self.root, fingerprint, hooks)
        self._overlays = Overlays(self.index, self.repository, encode_many)
        self._records: dict[str, FileRecord] = {}
        self._folders: frozenset[str] = frozenset()
        self._is_loaded = False
        self._has_changed = False

    @property
    def paths(self) -> list[str]:
        """The indexed paths, sorted."""
        return self.index.paths

    @property
    def folders(self) -> frozenset[str]:
        """The folders that are read, relative to the root; a new object only if they change."""
        return self._folders

    def build(self) -> IndexSummary:
        """Load the saved index, read new and changed files, remove missing ones, and save.

        If the hooks ask to stop, it stops soon, and the summary is incomplete.
        """
        summary = IndexSummary()
        if not self._is_loaded:
            self._is_loaded = True
            self._records, summary.message = self._saved.restore(self.index)
            self._has_changed = self._has_changed or bool(summary.message)
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
        """Apply changes below `paths`: files or folders that were created, edited, deleted, renamed or
        ignored.

        Saves at once only if something must be forgotten; otherwise the caller calls `save` later.
        """
        summary = IndexSummary()
        try:
            self._reconcile(paths, summary)
            if not summary.num_removed:
                self.index.maintain(checkpoint=self._checkpoint)
        except StoppedError:
            summary.is_complete = False
        return self._finish(summary) if summary.num_removed else summary.count(self.index)

    def _reconcile(self, paths: Iterable[Path | str], summary: IndexSummary) -> None:
        names = {self.repository.document_path(path) for path in paths}
        names = {"" if name == "." else name for name in names if not Path(name).is_absolute()}
        has_news = any(is_rule_file(name) for name in names)
        if has_news or self.repository.rules.have_changed():
            names = {""}
            self._rules_changed()
        change = look_at(self.repository, names, self._records.keys(), self._folders, self._checkpoint)
        for walk in change.walks:
            summary.take(walk)
        self._folders = change.folders
        self._synchronise(change.files, change.scope, names, summary)

    def save(self) -> str:
        """Save if anything changed since the last time. Returns the problem, or an empty string.

        If the hooks forbid it, or leave no time for it, nothing is saved.
        """
        if not self._has_changed:
            return ""
        stored = self.index.stored()
        files = {path: self._records[path] for path in stored.paths.values()}
        try:
            self._saved.write(stored, files)
        except (OSError, ValueError) as error:
            return f"The index could not be saved: {error}."
        except StoppedError:
            return ""
        self._has_changed = False
        return ""

    def _checkpoint(self) -> None:
        if self._hooks.should_stop():
            raise StoppedError

    def set_overlay(self, path: Path | str, text: str) -> None:
        """Search an open buffer's text, without secrets; ignored files are left out, as for files on disk."""
        self._overlays.set(self.repository.document_path(path), text)

    def is_shared(self, path: Path | str) -> bool:
        """Return whether other documents may be drafted from an open buffer; False until `set_overlay`."""
        name = self.repository.inner_path(path)
        return name is not None and self._overlays.is_shared(name)

    def drop_overlay(self, path: Path | str) -> None:
        """Return to the file's stored text."""
        self._overlays.drop(self.repository.document_path(path))

    def _synchronise(
        self, files: list[FoundFile], scope: Set[str], named: Set[str], summary: IndexSummary
    ) -> None:
        """Make the index hold `files` instead of the paths in `scope`; `named` files are read in any case."""
        plan = make_plan(files, self._records, scope, named, self._options.max_files)
        if plan.num_surplus:
            summary.skipped["too many files"] += plan.num_surplus
        for path in plan.gone:
            self._checkpoint()
            self._forget(path, summary)
        self._encode(plan.wanted, summary)

    def _encode(self, files: Sequence[FoundFile], summary: IndexSummary) -> None:
        """Read, encode and publish `files` in batches. Published batches stay if it is stopped."""
        encoder = FileEncoder(self._encode_many, self._checkpoint)
        pending: list[tuple[str, Sequence[int]]] = []
        done = 0
        try:
            while done < len(files):
                self._checkpoint()
                batch, num_looked_at = self._read_batch(files[done:], summary)
                done += num_looked_at
                pending += self._encode_batch(batch, summary, encoder)
                self._hooks.report(done, len(files), files[done - 1].path)
                self._hooks.pause()
                if self.index.num_tokens + num_tokens_of(pending) > _MAX_TOKENS:
                    summary.skipped["too many tokens"] += len(files) - done
                    break
                if len(pending) >= _PUBLISH_FILES or num_tokens_of(pending) >= _PUBLISH_TOKENS:
                    self._publish(pending)
                    pending = []
        except StoppedError:
            summary.is_complete = False
        self._publish(pending)
        if encoder.failure is not None and not self._records:
            raise encoder.failure

    def _read_batch(
        self, files: Sequence[FoundFile], summary: IndexSummary
    ) -> tuple[list[tuple[FoundFile, str]], int]:
        """Return the first of `files` with their texts if these are new, and how many files were read."""
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
        self, batch: list[tuple[FoundFile, str]], summary: IndexSummary, encoder: FileEncoder
    ) -> list[tuple[str, Sequence[int]]]:
        """Return the tokens of a batch, without files on which the tokenizer fails; their error is kept."""
        documents = []
        for file, text, tokens in encoder.encode(batch):
            if tokens is None:
                summary.skipped["no tokens"] += 1
                self._forget(file.path, summary)
                continue
            self._records[file.path] = FileRecord(file.size, file.mtime_ns, digest(text))
            documents.append((file.path, tokens))
        summary.num_encoded += len(documents)
        return documents

    def _publish(self, documents: list[tuple[str, Sequence[int]]]) -> None:
        if documents:
            self.index.update_many(documents)
            self._has_changed = True
            with contextlib.suppress(StoppedError):
                self.index.maintain(_MAX_SEGMENTS_WHILE_BUILDING, self._checkpoint)

    def _text(self, file: FoundFile, skipped: Counter[str]) -> str | None:
        """Return a file's text without secrets; None, counted in `skipped`, if it is not to be indexed."""
        try:
            return blank_secrets(self.repository.read(file))
        except SkippedFileError as reason:
            skipped[str(reason)] += 1
            return None

    def _is_known(self, file: FoundFile, text: str) -> bool:
        record = self._records.get(file.path)
        if record is None or record.digest != digest(text):
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

    def _rules_changed(self) -> None:
        self.repository.rules.refresh()
        self._overlays.follow_rules()

    def _finish(self, summary: IndexSummary) -> IndexSummary:
        is_mostly_new = summary.num_encoded > len(self._records) // 2
        with contextlib.suppress(StoppedError):
            if is_mostly_new:
                self.index.maintain(1, self._checkpoint)
            else:
                self.index.maintain(checkpoint=self._checkpoint)
        problem = self.save()
        summary.message = f"{summary.message} {problem}".strip()
        return summary.count(self.index)
