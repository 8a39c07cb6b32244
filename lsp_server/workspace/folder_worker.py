"""One workspace folder's index: built, kept up to date, overlaid with open buffers; on its own thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from completion_engine.text_window import without_surrogates
from lsp_server.sharing.supervision import SupervisedThread
from lsp_server.workspace.documents import plain_newlines
from lsp_server.workspace.measurements import FolderReport
from ngram_cache import NgramIndex
from ngram_cache.indexing import Indexer
from ngram_cache.overlays import TokenSource
from ngram_cache.planning import IndexHooks, IndexSummary
from ngram_cache.repository import RepositoryOptions, StoppedError
from ngram_cache.saved_index import forget

logger = logging.getLogger(__name__)

# Changes are saved after this time without another one.
SAVE_AFTER_S = 15.0

# Indexing pauses for a completion, but at most this long at a time.
MAX_PAUSE_S = 0.5
PAUSE_STEP_S = 0.005

# For more changed paths than this, the whole folder is walked again.
MAX_PATHS = 2_000

# After this number of failures in a row, a folder is no longer indexed.
MAX_FAILURES = 3

# Longest wait for the previous worker, which ends within a second.
PREDECESSOR_S = 10.0


class FolderWorker:
    """Waits for the tokenizer, builds the index, then applies changes. Methods may be called on any thread.

    `on_report` and `is_engine_busy` are called on the worker's thread. The worker first waits for the end of
    `after`, the previous worker, because both save to the same file.
    """

    def __init__(
        self,
        folder: Path,
        options: RepositoryOptions,
        on_report: Callable[[FolderReport], None],
        is_engine_busy: Callable[[], bool],
        after: FolderWorker | None = None,
    ) -> None:
        self.folder = folder
        self.options = options
        self._on_report = on_report
        self._is_engine_busy = is_engine_busy
        self._after = after
        self._changed = threading.Condition()
        self._tokens: TokenSource | None = None
        self._built: TokenSource | None = None
        self._paths: set[Path] = set()
        self._buffers: dict[Path, list[str] | None] = {}
        self._taken: set[Path] = set()  # buffers that the thread has added to the index
        self._shown: dict[Path, list[str]] = {}
        # The open buffers that are known to be allowed as a source of drafts for other documents.
        self.shared: frozenset[Path] = frozenset()
        self._purges: list[Future[int]] = []
        self._stopping = False
        self._may_save = True
        self._num_failures = 0
        self._is_buffers_turn = False
        self.indexer: Indexer | None = None  # once it is started
        self._is_unsaved = False
        self._report = FolderReport(folder)
        self._thread = SupervisedThread(f"index {folder.name}", self._run, self._on_crash)
        self._thread.start()

    @property
    def index(self) -> NgramIndex | None:
        """Return the index as soon as it exists, even if it is incomplete."""
        # read first, so that a state read later is as new or newer
        is_current = self._built == self._tokens
        return indexer.index if (indexer := self.indexer) is not None and is_current else None

    @property
    def report(self) -> FolderReport:
        """Return the present state, with the present size of the index."""
        if (indexer := self.indexer) is None:
            return self._report
        return replace(
            self._report, num_files=indexer.index.num_documents, num_tokens=indexer.index.num_tokens
        )

    def set_tokens(self, tokens: TokenSource) -> None:
        """Index with this tokenizer from now on."""
        with self._changed:
            if self._tokens is None or self._tokens.fingerprint != tokens.fingerprint:
                self._tokens = tokens
                self._num_failures = 0
                self._changed.notify()

    def files_changed(self, paths: Iterable[Path]) -> None:
        """Handle files that were written, deleted or renamed."""
        with self._changed:
            self._paths.update(paths)
            if len(self._paths) > MAX_PATHS:
                self._paths = {self.folder}
            self._changed.notify()

    def buffer_changed(self, path: Path, lines: list[str] | None) -> None:
        """Store the content of an open buffer; None if it was closed. The worker keeps the list."""
        with self._changed:
            if lines is not None or path in self._taken:
                self._buffers[path] = lines
            else:
                self._buffers.pop(path, None)
            self._changed.notify()

    def purge(self) -> Future[int]:
        """Forget the folder's index, here and on disk, then build it again.

        The result is the number of files deleted, or an OSError. It is cancelled if the worker ends before.
        """
        done: Future[int] = Future()
        with self._changed:
            if self._stopping:
                done.cancel()
                return done
            self._purges.append(done)
            self._changed.notify()
        return done

    def stop(self, *, may_save: bool = True) -> None:
        """Ask the thread to end within a second; see `join`. Without `may_save` it saves nothing more."""
        with self._changed:
            self._stopping = True
            self._may_save = self._may_save and may_save
            self._changed.notify_all()

    def join(self, timeout_s: float) -> bool:
        """Return whether the thread ends within `timeout_s`."""
        return self._thread.join(timeout_s)

    def _run(self) -> None:
        """The thread: runs task after task, whatever ends each one, and completes all waiting results."""
        if self._after is not None:
            self._after.join(PREDECESSOR_S)
            self._after = None
        while (task := self._next()) is not None:
            try:
                task()
                # It may have changed the rules for open buffers.
                shared = filter(self.indexer.is_shared, self._shown) if self.indexer else ()
                self.shared = frozenset(shared)
                self._num_failures = 0
            except BaseException as error:
                self._failed(error)
        self._save()
        self._end()

    def _on_crash(self, _error: BaseException, is_final: bool) -> None:
        """The loop between tasks failed; the thread goes on with the next task, or ends."""
        if is_final:
            self._end()

    def _failed(self, error: BaseException) -> None:
        """Build the index again, because its state is unknown; stop indexing after several failures."""
        self._num_failures += 1
        self.shared = frozenset()
        logger.error("The index of %s failed (%d)", self.folder, self._num_failures, exc_info=error)
        if self._num_failures < MAX_FAILURES:
            with self._changed:
                self._built = None
            return
        problem = (
            f"The index of {self.folder} failed {MAX_FAILURES} times, so Slipstream stopped trying: {error!r}"
        )
        self._publish(FolderReport(self.folder, "error", problem=problem[:500]))

    def _end(self) -> None:
        with self._changed:
            self._stopping = True
            purges, self._purges = self._purges, []
        for purge in purges:
            purge.cancel()

    def _next(self) -> Callable[[], None] | None:
        """Wait for the next thing to do and return it; None at the end."""
        with self._changed:
            while not self._stopping:
                tokens = self._tokens
                if self._purges:
                    purges, self._purges = self._purges, []
                    return lambda: self._purge(purges)
                is_left_alone = self._num_failures >= MAX_FAILURES
                if tokens is not None and tokens != self._built and not is_left_alone:
                    return lambda: self._build(tokens)
                indexer = self.indexer
                if indexer is not None and (self._paths or self._buffers) and not is_left_alone:
                    return self._follow(indexer)
                if not self._changed.wait(SAVE_AFTER_S if self._is_unsaved else None):
                    return self._save
            return None

    def _follow(self, indexer: Indexer) -> Callable[[], None]:
        """Return the next change to apply, of files and buffers in turns. The lock is held."""
        takes_buffer = bool(self._buffers) and (self._is_buffers_turn or not self._paths)
        self._is_buffers_turn = not takes_buffer
        if takes_buffer:
            path, lines = self._buffers.popitem()
            (self._taken.discard if lines is None else self._taken.add)(path)
            return lambda: self._overlay(indexer, path, lines)
        paths, self._paths = self._paths, set()
        return lambda: self._ready(indexer.reconcile(sorted(paths)))

    def _purge(self, purges: list[Future[int]]) -> None:
        # From now on none of them can be cancelled; those that were cancelled are dropped.
        purges = [purge for purge in purges if purge.set_running_or_notify_cancel()]
        self.indexer = self._built = None
        self._is_unsaved = False
        self._publish(FolderReport(self.folder))
        self._num_failures = 0
        try:
            num_deleted = forget(self.folder)
        except BaseException as error:
            for done in purges:
                done.set_exception(error)
            if not isinstance(error, OSError):
                raise
        else:
            for done in purges:
                done.set_result(num_deleted)

    def _build(self, tokens: TokenSource) -> None:
        def report(done: int, total: int, path: str) -> None:
            self._publish(FolderReport(self.folder, "building", path, done, total))

        hooks = IndexHooks(report, self._should_stop, lambda: self._may_save, self._pause)
        self.indexer = Indexer(self.folder, tokens.encode_many, tokens.fingerprint, self.options, hooks)
        self._built = tokens
        self._publish(FolderReport(self.folder, "building"))
        with self._changed:
            self._buffers = {**self._shown, **self._buffers}
        summary = self.indexer.build()
        if not self._should_stop():
            self._ready(summary)

    def _ready(self, summary: IndexSummary) -> None:
        problem = summary.message
        if not summary.num_documents and summary.skipped["unreadable"]:
            problem = f"{self.folder} cannot be read, so it is not indexed. {problem}".strip()
        self._is_unsaved = True
        self._publish(FolderReport(self.folder, "ready", problem=problem))

    def _save(self) -> None:
        self._is_unsaved = False
        if self._may_save and self.indexer is not None and (problem := self.indexer.save()):
            self._publish(FolderReport(self.folder, "ready", problem=problem))

    def _overlay(self, indexer: Indexer, path: Path, lines: list[str] | None) -> None:
        """Add a buffer to the index; if the tokenizer fails on it, it is hidden until it changes."""
        self._shown.pop(path, None)
        if lines is None or sum(map(len, lines)) > self.options.max_file_bytes:
            indexer.drop_overlay(path)
            return
        try:
            indexer.set_overlay(path, without_surrogates(plain_newlines("".join(lines))))
        except StoppedError:
            self._shown[path] = lines  # to the index that is built next
        except BaseException:
            logger.exception("A buffer cannot be shown to the index of %s", self.folder)
            indexer.drop_overlay(path)
        else:
            self._shown[path] = lines

    def _pause(self) -> None:
        """Wait while a completion runs."""
        until = time.monotonic() + MAX_PAUSE_S
        while self._is_engine_busy() and time.monotonic() < until and not self._should_stop():
            time.sleep(PAUSE_STEP_S)

    def _should_stop(self) -> bool:
        return self._stopping or bool(self._purges) or self._tokens != self._built

    def _publish(self, report: FolderReport) -> None:
        self._report = report
        if not self._stopping:
            self._on_report(self.report)
