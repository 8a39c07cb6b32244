"""Watches the indexed folders, for editors that do not: exactly these folders, and no links.

A library that watches everything below a folder follows links, holds the interpreter while it searches
folders, and uses one of the user's watches for each folder. Here every folder is named, and their number is
bounded.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import watchfiles
from watchfiles import Change

logger = logging.getLogger(__name__)

# Watched folders of one workspace folder, those nearest to it. One call names them all to the system, and it
# holds the interpreter.
MAX_FOLDERS = 4_096
FOLDERS_AT_ONCE = 512
# New folders get watches of their own; beyond this number, one new watch for all folders is cheaper.
MAX_THREADS = 16
# After this time, changes from before the watch was ready are looked for.
SETTLE_MS = 500
# A watch that ends by itself is started again after a pause, which grows each time.
FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 60.0
CALM_S = 120.0

# Changes are filtered by the names of files only, because the caller chooses the folders.
_is_of_interest = watchfiles.DefaultFilter(ignore_dirs=())


@dataclass(slots=True)
class _Watched:
    """The watch of a workspace `folder`; `threads` end some moments after `stop`.

    `wanted` are the last requested folders, while they are the watched ones.
    """

    folder: Path
    wanted: tuple[frozenset[str], frozenset[Path]] | None = None
    folders: frozenset[Path] = frozenset()
    threads: list[threading.Thread] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)


class FolderWatches:
    """Watches folders. Methods may be called on any thread; `on_change` is called on the watches' own."""

    def __init__(self, on_change: Callable[[set[Path]], None]) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._watched: dict[Path, _Watched] = {}
        self._leaving: list[threading.Thread] = []
        self._has_stopped = False

    def follow(self, folder: Path, inner: Set[str], beside: Set[Path] = frozenset()) -> None:
        """Watch exactly these folders for a workspace `folder`, `inner` ones and those `beside` it.

        Repeating a call is free.
        """
        wanted = frozenset(inner), frozenset(beside)
        with self._lock:
            watched = self._watched.get(folder) or _Watched(folder)
            if self._has_stopped or wanted == watched.wanted:
                return
            nearest = _nearest({*(folder / name for name in wanted[0]), *wanted[1]})
            new = [path for path in nearest if path not in watched.folders]
            watched.threads = [thread for thread in watched.threads if thread.is_alive()]
            num_threads = len(watched.threads) + len(new) / FOLDERS_AT_ONCE
            if watched.folders - set(nearest) or num_threads > MAX_THREADS:
                self._drop(folder)
                watched, new = _Watched(folder), nearest
            self._watched[folder] = watched
            for first in range(0, len(new), FOLDERS_AT_ONCE):
                some = new[first : first + FOLDERS_AT_ONCE]
                name, arguments = f"watch {folder.name}", (watched, some)
                thread = threading.Thread(target=self._run, args=arguments, name=name, daemon=True)
                thread.start()
                watched.threads.append(thread)
                watched.folders |= frozenset(some)
            watched.wanted = wanted

    def keep(self, folders: Iterable[Path]) -> None:
        """Stop watching for all workspace folders that are not in `folders`."""
        with self._lock:
            for folder in self._watched.keys() - set(folders):
                self._drop(folder)

    def stop(self, timeout_s: float) -> bool:
        """End all threads; return True if they ended within `timeout_s`."""
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

    def _run(self, watched: _Watched, folders: Sequence[Path]) -> None:
        """The thread: restarts a watch that ends other than by `stop`, and reports missed changes."""
        pause_s = FIRST_PAUSE_S
        while True:
            begin_s = time.monotonic()
            try:
                if not self._watch(watched, folders):
                    return
            except BaseException as error:
                level = logging.WARNING if pause_s == FIRST_PAUSE_S else logging.DEBUG
                logger.log(level, "Folders of %s are watched anew: %r", watched.folder, error)
            if time.monotonic() - begin_s > CALM_S:
                pause_s = FIRST_PAUSE_S
            if watched.stop.wait(pause_s):
                return
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    def _watch(self, watched: _Watched, folders: Sequence[Path]) -> bool:
        """Report changes until the watch ends; return False if nothing is left to watch."""
        there = [path for path in folders if path.is_dir()]
        if not there:
            return watched.folder in folders  # no event announces a new folder
        missed = _outermost(there, watched.folder)
        changes = watchfiles.watch(
            *there,
            watch_filter=_is_of_interest,
            stop_event=watched.stop,
            rust_timeout=SETTLE_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=False,
            ignore_permission_denied=True,
        )
        for change in changes:
            paths = {Path(path): kind for kind, path in change}
            self._unwatch(watched, {path for path, kind in paths.items() if kind is not Change.modified})
            if changed := {*paths, *missed}:
                self._on_change(changed)
            missed = set()
        return not watched.stop.is_set()

    def _unwatch(self, watched: _Watched, names: set[Path]) -> None:
        """Drop the watches of folders that were removed or created, and those below; callers ask again."""
        with self._lock:
            gone = names & watched.folders
            if gone:
                watched.wanted = None
                watched.folders = frozenset(
                    path for path in watched.folders if gone.isdisjoint((path, *path.parents))
                )


def _outermost(folders: Iterable[Path], root: Path) -> set[Path]:
    """Return those of `folders` that are in `root` and below no other one."""
    inner = {path for path in folders if path.is_relative_to(root)}
    return {path for path in inner if path == root or path.parent not in inner}


def _nearest(folders: Iterable[Path]) -> list[Path]:
    """Return at most the allowed number of folders, the outermost first. Names that are not UTF-8 are
    dropped.
    """
    named = [path for path in folders if str(path).encode(errors="ignore").decode() == str(path)]
    return sorted(named, key=lambda path: (len(path.parts), path))[:MAX_FOLDERS]
