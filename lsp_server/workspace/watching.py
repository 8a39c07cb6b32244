"""Watches the folders that are indexed, for editors that do not: those alone, and no link.

Owns the threads that wait for changes. Must not know what is indexed of a folder, nor how. A library that
watches all that lies below a folder steps through links, holds the interpreter while it looks for folders,
and takes a watch of the user's for each: here every folder is named, and there is a bound.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import watchfiles

logger = logging.getLogger(__name__)

# Of one workspace folder, those nearest to it. So many are named to the system in one call, which holds
# the interpreter.
MAX_FOLDERS = 4_096
FOLDERS_AT_ONCE = 512
# Watches of new folders come beside the others, until so many would be better as one.
MAX_THREADS = 16
# What changed before a watch was in place is looked for after this time.
SETTLE_MS = 500


@dataclass(slots=True)
class _Watched:
    """What is watched of a workspace folder; `threads` end some moments after `stop`."""

    folders: frozenset[Path] = frozenset()
    threads: list[threading.Thread] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)


class FolderWatches:
    """All methods may be called on any thread; `on_change` is called on the watches' own."""

    def __init__(self, on_change: Callable[[set[Path]], None]) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._watched: dict[Path, _Watched] = {}
        self._leaving: list[threading.Thread] = []
        self._has_stopped = False

    def follow(self, folder: Path, inner: Iterable[Path]) -> None:
        """Watch these folders, which lie in a workspace `folder`, and others of it no more."""
        nearest = sorted(inner, key=lambda path: (len(path.parts), path))[:MAX_FOLDERS]
        with self._lock:
            if self._has_stopped:
                return
            watched = self._watched.setdefault(folder, _Watched())
            new = [path for path in nearest if path not in watched.folders]
            if (
                watched.folders - set(nearest)
                or len(watched.threads) + len(new) / FOLDERS_AT_ONCE > MAX_THREADS
            ):
                self._drop(folder)
                watched, new = self._watched.setdefault(folder, _Watched()), nearest
            watched.folders = frozenset(nearest)
            for some in _batches(new):
                thread = threading.Thread(
                    target=self._watch, args=(some, watched.stop), name=f"watch {folder.name}", daemon=True
                )
                watched.threads.append(thread)
                thread.start()

    def keep(self, folders: Iterable[Path]) -> None:
        """Other workspace folders than these are no longer of interest."""
        with self._lock:
            for folder in self._watched.keys() - set(folders):
                self._drop(folder)

    def stop(self, timeout_s: float) -> bool:
        """End all threads; True when they have ended in time."""
        with self._lock:
            self._has_stopped = True
            for folder in tuple(self._watched):
                self._drop(folder)
            leaving = tuple(self._leaving)
        until = time.monotonic() + timeout_s
        for thread in leaving:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in leaving)

    def _drop(self, folder: Path) -> None:
        watched = self._watched.pop(folder)
        watched.stop.set()
        self._leaving = [thread for thread in self._leaving if thread.is_alive()] + watched.threads

    def _watch(self, folders: list[Path], stop: threading.Event) -> None:
        missed = {path for path in folders if path.is_dir()}
        if not missed:
            return
        missed -= {path for path in missed if path.parent in missed}
        try:
            changes = watchfiles.watch(
                *filter(Path.is_dir, folders),
                stop_event=stop,
                rust_timeout=SETTLE_MS,
                yield_on_timeout=True,
                raise_interrupt=False,
                recursive=False,
                ignore_permission_denied=True,
            )
            for change in changes:
                if paths := {Path(path) for _, path in change} | missed:
                    self._on_change(paths)
                missed = set()
        except BaseException as error:
            logger.warning("Folders cannot be watched, saved files alone are followed: %r", error)


def _batches(folders: list[Path]) -> Iterator[list[Path]]:
    for first in range(0, len(folders), FOLDERS_AT_ONCE):
        yield folders[first : first + FOLDERS_AT_ONCE]
