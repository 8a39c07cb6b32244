"""The indexes of all workspace folders, seen from the event loop.

Owns one worker per folder and when a buffer is shown to it. Must not know the protocol, nor how an index
is made. Nothing here waits.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import watchfiles

from lsp_server.folder_worker import FolderReport, FolderWorker, TokenSource
from lsp_server.settings import IndexSettings
from ngram_cache import NgramIndex
from ngram_cache.indexing import forget
from ngram_cache.repository import RepositoryOptions

logger = logging.getLogger(__name__)

# A buffer is shown to the index when it has been still for this long.
BUFFER_QUIET_S = 0.3

# Indexing makes way for a completion, but never longer than this at a time.
MAX_PAUSE_S = 0.5
PAUSE_STEP_S = 0.005


class IndexingJobs:
    """The folders' workers. Used on the event loop, except where a method says otherwise.

    `on_report` is called on a worker's thread; `is_engine_busy` must be safe to call there.
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
        self._settings: dict[Path, IndexSettings] = {}
        self._timers: dict[Path, asyncio.TimerHandle] = {}
        self._watch_stop: threading.Event | None = None
        self._watching = False

    def set_tokens(self, tokens: TokenSource) -> None:
        """The engine's tokenizer is known. May be called from any thread."""
        with self._lock:
            self._tokens = tokens
            for worker in self._workers.values():
                worker.set_tokens(tokens)

    def set_folders(self, folders: Mapping[Path, IndexSettings]) -> None:
        """Index exactly these folders, each by its own settings."""
        wanted = {folder: settings for folder, settings in folders.items() if settings.enabled}
        for folder in [old for old in self._workers if wanted.get(old) != self._settings[old]]:
            self._workers.pop(folder).stop()
        new = [folder for folder in wanted if folder not in self._workers]
        with self._lock:
            for folder in new:
                settings = wanted[folder]
                options = RepositoryOptions(max_files=settings.max_files, exclude=settings.exclude)
                worker = FolderWorker(folder, options, self._on_report, self._pause)
                if self._tokens is not None:
                    worker.set_tokens(self._tokens)
                self._workers[folder] = worker
        self._settings = wanted
        if self._watching:
            self.watch_files()

    def index_of(self, folder: Path) -> NgramIndex | None:
        """What documents of a folder draft from."""
        worker = self._workers.get(folder)
        return worker.index if worker is not None else None

    def files_changed(self, paths: Iterable[Path]) -> None:
        """Files were written, deleted or renamed; each worker hears of its own. From any thread."""
        changed = [path for path in paths if not _is_git_work(path)]
        for folder, worker in tuple(self._workers.items()):
            if own := [path for path in changed if path.is_relative_to(folder)]:
                worker.files_changed(own)

    def document_changed(self, folder: Path, path: Path, lines: list[str]) -> None:
        """An open document changed; the index sees it when it has been still for a moment."""
        if (timer := self._timers.pop(path, None)) is not None:
            timer.cancel()
        if folder not in self._workers:
            return
        loop = asyncio.get_running_loop()
        self._timers[path] = loop.call_later(BUFFER_QUIET_S, self._show, folder, path, lines)

    def document_closed(self, folder: Path, path: Path) -> None:
        """The file's own text counts again."""
        if (timer := self._timers.pop(path, None)) is not None:
            timer.cancel()
        if (worker := self._workers.get(folder)) is not None:
            worker.buffer_changed(path, None)

    async def purge(self, folders: Iterable[Path]) -> None:
        """Forget the folders' indexes, here and on disk; those in use are built anew. Raises OSError."""
        for folder in folders:
            if (worker := self._workers.get(folder)) is not None:
                await asyncio.wrap_future(worker.purge())
            else:
                await asyncio.to_thread(forget, folder.resolve())

    def reports(self) -> list[FolderReport]:
        """Every folder's state."""
        return [worker.report for worker in self._workers.values()]

    def watch_files(self) -> None:
        """Watch the folders ourselves, for clients that do not."""
        self._watching = True
        if self._watch_stop is not None:
            self._watch_stop.set()
        self._watch_stop = threading.Event()
        if self._workers:
            arguments = (tuple(self._workers), self._watch_stop)
            threading.Thread(target=self._watch, args=arguments, name="watch", daemon=True).start()

    def stop(self, timeout_s: float = 3.0) -> bool:
        """End all threads. Blocks up to `timeout_s`; True when they have ended."""
        if self._watch_stop is not None:
            self._watch_stop.set()
        for worker in self._workers.values():
            worker.stop()
        until = time.monotonic() + timeout_s
        return all(worker.join(max(0.0, until - time.monotonic())) for worker in self._workers.values())

    def _show(self, folder: Path, path: Path, lines: list[str]) -> None:
        self._timers.pop(path, None)
        if (worker := self._workers.get(folder)) is not None:
            worker.buffer_changed(path, lines.copy())

    def _pause(self) -> None:
        """Wait while a completion is under way. Called on the workers' threads."""
        until = time.monotonic() + MAX_PAUSE_S
        while self._is_engine_busy() and time.monotonic() < until:
            time.sleep(PAUSE_STEP_S)

    def _watch(self, folders: tuple[Path, ...], stop: threading.Event) -> None:
        try:
            for changes in watchfiles.watch(*folders, stop_event=stop, ignore_permission_denied=True):
                self.files_changed({Path(path) for _, path in changes})
        except OSError as error:
            logger.warning("The folders cannot be watched, saved files alone are followed: %s", error)


def _is_git_work(path: Path) -> bool:
    """What git writes all the time and nobody indexes; its list of ignored files is a rule, though."""
    return ".git" in path.parts and path.name != "exclude"
