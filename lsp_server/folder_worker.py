"""One workspace folder's index: built, kept up to date, overlaid with open buffers; on its own thread.

Owns the indexer and the order of its work. Must not know the event loop, the protocol, nor tokenizers
beyond two numbers and a function.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lsp_server.documents import plain_newlines
from lsp_server.positions import encodable
from ngram_cache import NgramIndex
from ngram_cache.indexing import Indexer, forget
from ngram_cache.planning import IndexHooks, IndexSummary
from ngram_cache.repository import RepositoryOptions

logger = logging.getLogger(__name__)

State = Literal["waiting", "building", "ready", "error"]

# Changes are saved when nothing has happened for this long.
SAVE_AFTER_S = 15.0


@dataclass(frozen=True, slots=True)
class TokenSource:
    """Token ids of texts; equal fingerprints mean equal ids."""

    fingerprint: str
    encode_many: Callable[[list[str]], list[list[int]]]


@dataclass(frozen=True, slots=True)
class FolderReport:
    """A folder's index as others see it: `done` of `total` files while it is built."""

    folder: Path
    state: State = "waiting"
    path: str = ""
    done: int = 0
    total: int = 0
    num_files: int = 0
    num_tokens: int = 0
    problem: str = ""


class FolderWorker:
    """Waits for tokens, builds, then follows the changes it is told of. All methods may be called anywhere.

    `on_report` is called on the worker's thread.
    """

    def __init__(
        self,
        folder: Path,
        options: RepositoryOptions,
        on_report: Callable[[FolderReport], None],
        pause: Callable[[], None],
    ) -> None:
        self.folder = folder
        self._options = options
        self._on_report = on_report
        self._pause = pause
        self._changed = threading.Condition()
        self._tokens: TokenSource | None = None
        self._built: TokenSource | None = None
        self._paths: set[Path] = set()
        self._buffers: dict[Path, list[str] | None] = {}
        self._shown: dict[Path, list[str]] = {}
        self._purges: list[Future[int]] = []
        self._stopping = False
        self._indexer: Indexer | None = None
        self._is_unsaved = False
        self._report = FolderReport(folder)
        self._thread = threading.Thread(target=self._run, name=f"index {folder.name}", daemon=True)
        self._thread.start()

    @property
    def index(self) -> NgramIndex | None:
        """The index as soon as there is one, even if it is not complete yet."""
        indexer = self._indexer
        return indexer.index if indexer is not None and self._built == self._tokens else None

    @property
    def report(self) -> FolderReport:
        """The state now, with the index's size now."""
        if (indexer := self._indexer) is None:
            return self._report
        return replace(
            self._report, num_files=indexer.index.num_documents, num_tokens=indexer.index.num_tokens
        )

    def set_tokens(self, tokens: TokenSource) -> None:
        """Index with these tokens from now on."""
        with self._changed:
            if self._tokens is None or self._tokens.fingerprint != tokens.fingerprint:
                self._tokens = tokens
                self._changed.notify()

    def files_changed(self, paths: Iterable[Path]) -> None:
        """Files were written, deleted or renamed."""
        with self._changed:
            self._paths.update(paths)
            self._changed.notify()

    def buffer_changed(self, path: Path, lines: list[str] | None) -> None:
        """An open buffer has this content; None when it was closed. The list is the worker's own."""
        with self._changed:
            self._buffers[path] = lines
            self._changed.notify()

    def purge(self) -> Future[int]:
        """Forget what is known of the folder, here and on disk, then build it anew.

        The result is there once all is forgotten: the number of files deleted, or an OSError.
        """
        done: Future[int] = Future()
        with self._changed:
            self._purges.append(done)
            self._changed.notify()
        return done

    def stop(self) -> None:
        """Ask the thread to end; see `join`."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def join(self, timeout_s: float) -> bool:
        """True when the thread has ended within `timeout_s`."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            try:
                task()
            except Exception as error:
                logger.exception("The index of %s is in trouble", self.folder)
                problem = f"The index of {self.folder} failed: {error}"
                self._publish(FolderReport(self.folder, "error", problem=problem))
        for purge in self._purges:
            purge.cancel()
        self._save()

    def _next(self) -> Callable[[], None] | None:
        """The next thing to do; waits for one, and returns None at the end."""
        with self._changed:
            while not self._stopping:
                tokens = self._tokens
                if self._purges:
                    purges, self._purges = self._purges, []
                    return lambda: self._purge(purges)
                if tokens is not None and tokens != self._built:
                    return lambda: self._build(tokens)
                if (indexer := self._indexer) is not None and (self._paths or self._buffers):
                    return self._follow(indexer)
                if not self._changed.wait(SAVE_AFTER_S if self._is_unsaved else None):
                    return self._save
            return None

    def _follow(self, indexer: Indexer) -> Callable[[], None]:
        """One change to take over; the lock is held."""
        if self._paths:
            paths, self._paths = self._paths, set()
            return lambda: self._ready(indexer.reconcile(sorted(paths)))
        path, lines = self._buffers.popitem()
        return lambda: self._overlay(indexer, path, lines)

    def _purge(self, purges: list[Future[int]]) -> None:
        self._indexer = self._built = None
        self._is_unsaved = False
        self._publish(FolderReport(self.folder))
        try:
            num_deleted = forget(self.folder.resolve())
        except OSError as error:
            for done in purges:
                done.set_exception(error)
        else:
            for done in purges:
                done.set_result(num_deleted)

    def _build(self, tokens: TokenSource) -> None:
        self._built = tokens
        hooks = IndexHooks(self._report_progress, self._should_stop, self._pause)
        self._indexer = Indexer(self.folder, tokens.encode_many, tokens.fingerprint, self._options, hooks)
        self._publish(FolderReport(self.folder, "building"))
        with self._changed:
            self._buffers = {**self._shown, **self._buffers}
        summary = self._indexer.build()
        if not self._should_stop():
            self._ready(summary)

    def _ready(self, summary: IndexSummary) -> None:
        problem = summary.message
        if not summary.num_documents and summary.skipped["unreadable"]:
            problem = f"{self.folder} cannot be read, so nothing of it is indexed. {problem}".strip()
        self._is_unsaved = True
        self._publish(FolderReport(self.folder, "ready", problem=problem))

    def _save(self) -> None:
        self._is_unsaved = False
        if self._indexer is not None and (problem := self._indexer.save()):
            self._publish(FolderReport(self.folder, "ready", problem=problem))

    def _overlay(self, indexer: Indexer, path: Path, lines: list[str] | None) -> None:
        if lines is None or sum(map(len, lines)) > self._options.max_file_bytes:
            self._shown.pop(path, None)
            indexer.drop_overlay(path)
        else:
            self._shown[path] = lines
            indexer.set_overlay(path, encodable(plain_newlines("".join(lines))))

    def _should_stop(self) -> bool:
        return self._stopping or bool(self._purges) or self._tokens != self._built

    def _report_progress(self, done: int, total: int, path: str) -> None:
        self._publish(FolderReport(self.folder, "building", path, done, total))

    def _publish(self, report: FolderReport) -> None:
        self._report = report
        if not self._stopping:
            self._on_report(self.report)
