"""The indexes of all workspace folders, as the event loop sees them, and the files near a document in them.

Holds one worker per folder, and decides when a buffer is given to it. Nothing here waits.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath

from completion_engine.context.snippet_choice import RepositoryView
from completion_engine.cutting.language_names import language_of_path
from completion_engine.next_edit.edits import EditDocument
from lsp_server.workspace.folder_worker import FolderWorker
from lsp_server.workspace.locations import DocumentLocation
from lsp_server.workspace.measurements import FolderReport
from lsp_server.workspace.watching import FolderWatches
from ngram_cache import NgramIndex
from ngram_cache.file_names import name_in
from ngram_cache.overlays import TokenSource
from ngram_cache.repository import Repository, RepositoryOptions, SkippedFileError
from ngram_cache.saved_index import forget

logger = logging.getLogger(__name__)

# A buffer is given to the index when it has not changed for this time.
BUFFER_QUIET_S = 0.3

# Returns a new list of a document's lines.
ReadLines = Callable[[], list[str]]
MAX_FILES = 6
MAX_BYTES = 300_000  # a larger file is left out
_MAX_OCCURRENCES = 512
# A name has other tokens after each of these characters.
_BEFORE_NAMES = ("", " ", "(", ".", "{", ",", ":", "[", "\t", "<", "*", "&", '"')


class FolderIndexes:
    """The workers of the folders. Used on the event loop, except where a method says otherwise.

    `on_report` is called on a worker's thread; `is_engine_busy` must be safe to call there. All threads end
    within a second of `stop`.
    """

    def __init__(
        self,
        on_report: Callable[[FolderReport], None],
        is_engine_busy: Callable[[], bool],
    ) -> None:
        self._on_report = on_report
        self._is_engine_busy = is_engine_busy
        self._lock = threading.Lock()
        self._tokens: TokenSource | None = None
        self._workers: dict[Path, FolderWorker] = {}
        self._leaving: list[FolderWorker] = []
        self._open: dict[Path, tuple[Path, ReadLines]] = {}
        self._timers: dict[Path, asyncio.TimerHandle] = {}
        self._watches = FolderWatches(self._seen)
        self._on_watched: Callable[[set[Path]], None] | None = None
        self.has_stopped = False

    def set_tokens(self, tokens: TokenSource) -> None:
        """Store the engine's tokenizer. May be called from any thread."""
        with self._lock:
            self._tokens = tokens
            for worker in self._workers.values():
                worker.set_tokens(tokens)

    @property
    def tokens(self) -> TokenSource | None:
        """The tokenizer by which folders are indexed; None until it is loaded."""
        return self._tokens

    def set_folders(self, wanted: Mapping[Path, RepositoryOptions]) -> bool:
        """Index exactly these folders, each by its own options. Does nothing after `stop`.

        A folder for which the system cannot start a thread is reported, and tried again by the next call;
        returns False then.
        """
        has_begun = True
        with self._lock:
            if self.has_stopped:
                return True
            for folder, worker in tuple(self._workers.items()):
                if wanted.get(folder) != worker.options:
                    # The new settings may exclude files that it holds.
                    worker.stop(may_save=folder not in wanted)
                    self._leaving = [old for old in self._leaving if not old.join(0)] + [worker]
                    del self._workers[folder]
            new = [folder for folder in wanted if folder not in self._workers]
            for folder in new:
                try:
                    self._workers[folder] = self._begun(folder, wanted[folder])
                except RuntimeError as error:
                    has_begun = False
                    self._on_report(
                        FolderReport(folder, "error", problem=f"{folder} is not indexed: {error}.")
                    )
        for path, (folder, read) in self._open.items():
            if folder in new:
                self.document_changed(folder, path, read)
        self._watches.keep(wanted)
        return has_begun

    def _begun(self, folder: Path, options: RepositoryOptions) -> FolderWorker:
        """Return a running worker. Raises RuntimeError if the system cannot start a thread."""
        before = next((old for old in reversed(self._leaving) if old.folder == folder), None)
        worker = FolderWorker(folder, options, self._reported, self._is_engine_busy, before)
        if self._tokens is not None:
            worker.set_tokens(self._tokens)
        return worker

    def _all_workers(self) -> dict[Path, FolderWorker]:
        with self._lock:
            return dict(self._workers)

    def index_of(self, folder: Path) -> NgramIndex | None:
        """Return the index from which a folder's documents are drafted."""
        worker = self._all_workers().get(folder)
        return worker.index if worker is not None else None

    def other_files(self, folder: Path, near: str, opened: frozenset[str]) -> OtherFiles | None:
        """Return the files of a folder beside the open ones; None until they are indexed."""
        worker, tokens = self._all_workers().get(folder), self._tokens
        if worker is None or tokens is None or (index := worker.index) is None:
            return None
        return OtherFiles(folder, worker.options, index, tokens, opened, near)

    def is_shared(self, location: DocumentLocation) -> bool:
        """Return whether other documents of the folder may be drafted from an open document."""
        worker = self._workers.get(location.folder) if location.folder is not None else None
        return worker is not None and location.indexed_path in worker.shared

    def files_changed(self, paths: Iterable[Path]) -> None:
        """Pass written, deleted or renamed files to their workers. May be called from any thread."""
        # Git writes below `.git` all the time, where no index reads anything but its list of ignored files.
        changed = [path for path in paths if ".git" not in path.parts or path.name == "exclude"]
        for worker in self._all_workers().values():
            if own := [path for path in changed if _concerns(worker, path)]:
                worker.files_changed(own)

    def document_changed(self, folder: Path, path: Path, read: ReadLines) -> None:
        """Let the index read an open document's lines once it has not changed for a moment."""
        self._cancel_timer(path)
        if path in self._open and self._open[path][0] != folder:
            self.document_closed(path)
        self._open[path] = folder, read
        if folder not in self._all_workers():
            return
        loop = asyncio.get_running_loop()
        self._timers[path] = loop.call_later(BUFFER_QUIET_S, self._show, folder, path, read)

    def document_closed(self, path: Path) -> None:
        """Let the index use the file's own text again."""
        self._cancel_timer(path)
        folder, _ = self._open.pop(path, (None, ()))
        if folder is not None and (worker := self._all_workers().get(folder)) is not None:
            worker.buffer_changed(path, None)

    def _cancel_timer(self, path: Path) -> None:
        if (timer := self._timers.pop(path, None)) is not None:
            timer.cancel()

    async def purge(self, folders: Iterable[Path]) -> None:
        """Forget the folders' indexes, here and on disk; open folders are indexed again. Raises OSError."""
        for folder in folders:
            if (worker := self._all_workers().get(folder)) is not None:
                await asyncio.wrap_future(worker.purge())
            else:
                await asyncio.to_thread(forget, folder)

    def reports(self) -> list[FolderReport]:
        """Return the state of each folder."""
        return [worker.report for worker in self._all_workers().values()]

    def watch_files(self, on_watched: Callable[[set[Path]], None]) -> None:
        """Watch the folders in the server, for clients that do not watch files.

        `on_watched` is called on a thread of the watches with the changed paths.
        """
        self._on_watched = on_watched
        for worker in self._all_workers().values():
            self._follow(worker)

    def stop(self, timeout_s: float = 3.0) -> bool:
        """End all threads. Blocks up to `timeout_s`; return True if they have ended."""
        with self._lock:
            workers = [*self._workers.values(), *self._leaving]
            for worker in workers:
                worker.stop()
            self.has_stopped = True
        until = time.monotonic() + timeout_s
        has_ended = [worker.join(max(0.0, until - time.monotonic())) for worker in workers]
        return self._watches.stop(max(0.0, until - time.monotonic())) and all(has_ended)

    def _show(self, folder: Path, path: Path, read: ReadLines) -> None:
        self._timers.pop(path, None)
        if (worker := self._all_workers().get(folder)) is not None:
            worker.buffer_changed(path, read())
            if self._on_watched is not None:
                self._follow(worker)  # again, if a watch could not start

    def _reported(self, report: FolderReport) -> None:
        """Publish the result of a worker; on the worker's thread."""
        self._on_report(report)
        worker = self._all_workers().get(report.folder)
        if self._on_watched is not None and report.state == "ready" and worker is not None:
            self._follow(worker)

    def _follow(self, worker: FolderWorker) -> None:
        if (indexer := worker.indexer) is not None:
            beside = {file.parent for file in indexer.repository.rules.outer_files}
            try:
                self._watches.follow(worker.folder, indexer.folders, beside)
            except RuntimeError as error:  # there is no thread for it
                logger.warning("Changes in %s are not seen yet: %s", worker.folder, error)

    def _seen(self, paths: set[Path]) -> None:
        """Handle a change that the server's watches saw; on their threads.

        Other files lie beside rules too.
        """
        workers = self._all_workers().values()
        ours = {path for path in paths if any(_concerns(worker, path) for worker in workers)}
        if ours and self._on_watched is not None:
            self.files_changed(ours)
            self._on_watched(ours)


def _concerns(worker: FolderWorker, path: Path) -> bool:
    indexer = worker.indexer
    if indexer is None:
        return name_in(worker.folder, path) is not None
    return indexer.repository.concerns(path)


@dataclass(frozen=True, slots=True)
class OtherFiles:
    """The files of `folder` that are not open: `index` holds them, under `options`, without those in `open`.

    The files nearest to the path `near` come first.
    """

    folder: Path
    options: RepositoryOptions
    index: NgramIndex
    tokens: TokenSource
    open: frozenset[str]
    near: str

    def holding(self, names: Sequence[str], modules: Sequence[str] = ()) -> Iterator[EditDocument]:
        """Yield files that hold one of the names as they are on the disk now; none that a rule excludes.

        Files that are named as one of the modules come first.
        """
        repository = Repository(self.folder, self.options)
        view = RepositoryView(self.index, self.tokens)
        by_name = view.files_with(names, _BEFORE_NAMES, _MAX_OCCURRENCES)
        paths = set(chain.from_iterable(by_name.values())) - self.open
        ordered = sorted(paths, key=lambda path: self._distance(path, modules))
        for path in ordered[:MAX_FILES]:
            try:
                found = repository.find(path)
                text = repository.read(found) if found.size <= MAX_BYTES else ""
            except SkippedFileError:
                continue
            if any(name in text for name in names):
                uri, language = (self.folder / path).as_uri(), language_of_path(path)
                yield EditDocument(uri, path, language, tuple(text.split("\n")))

    def _distance(self, path: str, modules: Sequence[str]) -> tuple[bool, int, str]:
        file = PurePosixPath(path)
        is_named = file.name.partition(".")[0] in modules or file.parent.name in modules
        common = os.path.commonpath([f"/{path}", f"/{self.near}"]).count("/")
        return not is_named, self.near.count("/") - common, path
