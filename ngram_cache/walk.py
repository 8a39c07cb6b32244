"""Walks through a folder to find the files to index, in order. Reads no file's text.

Each loop ends at a limit, and as soon as the caller asks for it.
"""

from __future__ import annotations

import heapq
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ngram_cache.confined import ConfinedFolder
from ngram_cache.folder_rules import FolderRules, Layers, SkippedFileError


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """The limits of one walk. Files beyond them are counted as left out.

    `max_text_bytes` limits the total of all files, the newest first.
    """

    max_entries: int = 1_000_000
    max_folder_entries: int = 50_000
    max_folders: int = 100_000
    max_depth: int = 64
    max_path_chars: int = 1_024
    max_text_bytes: int = 128 << 20
    max_walk_s: float = 120.0


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be indexed: `path` is relative to the root, with forward slashes."""

    path: str
    size: int
    mtime_ns: int


@dataclass(slots=True)
class Walk:
    """The files that a walk found, oldest first, and the number of files left out by reason.

    `folders` are those that were read. `problem` is a sentence for the user about files that were left out;
    usually empty.
    """

    files: list[FoundFile] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    problem: str = ""

    def skip(self, reason: SkippedFileError) -> None:
        """Count a file or folder as left out."""
        self.skipped[str(reason)] += 1
        self.problem = self.problem or reason.detail


class FolderWalk:
    """One walk through a folder. If there are more than `max_files` files, the newest are kept.

    `check_file` describes a file, or raises SkippedFileError. The checkpoint of `rules` is called between all
    small steps.
    """

    def __init__(
        self,
        folder: ConfinedFolder,
        rules: FolderRules,
        limits: WalkLimits,
        max_files: int,
        check_file: Callable[[str, os.stat_result], FoundFile],
    ) -> None:
        self._folder = folder
        self._rules = rules
        self._limits = limits
        self._max_files = max_files
        self._check_file = check_file
        self._newest: list[tuple[int, str, FoundFile]] = []
        self._num_entries = 0
        self._until = time.monotonic() + limits.max_walk_s
        self._walk = Walk()

    def run(self, start: str, layers: Layers) -> Walk:
        """Walk through everything below `start`, whose rules are `layers`, within the limits."""
        pending = [(start, layers)]
        num_folders = 0
        while pending:
            path, above = pending.pop()
            num_folders += 1
            try:
                layers = above if path == start else self._rules.inside(path, above)
                inner = self._look_into(path, layers)
            except SkippedFileError as reason:
                self._walk.skip(reason)
                continue
            self._walk.folders.append(path)
            pending += [(folder, layers) for folder in inner]
            if num_folders + len(pending) > self._limits.max_folders or self._is_over():
                self._walk.skipped["too many entries"] += len(pending)
                break
        self._keep_newest()
        return self._walk

    def _look_into(self, path: str, layers: Layers) -> list[str]:
        """Add the files of a folder to the walk; return its folders that are to be entered."""
        inner: list[str] = []
        try:
            with self._folder.scan(path) as entries:
                for num_here, entry in enumerate(entries, 1):
                    self._rules.checkpoint()
                    self._num_entries += 1
                    if num_here > self._limits.max_folder_entries or self._is_over():
                        self._walk.skipped["too many entries"] += 1
                        break
                    if self._consider(entry, f"{path}/{entry.name}" if path else entry.name, layers):
                        inner.append(f"{path}/{entry.name}" if path else entry.name)
        except OSError:
            self._walk.skipped["unreadable"] += 1
        return inner

    def _consider(self, entry: os.DirEntry[str], path: str, layers: Layers) -> bool:
        """Add a file to the walk; return True for a folder that is to be entered."""
        try:
            if self._is_folder(entry, path):
                self._rules.check(path, layers, is_folder=True)
                return True
            self._rules.check(path, layers, is_folder=False)
            self._take(self._check_file(path, entry.stat(follow_symlinks=False)))
        except SkippedFileError as reason:
            self._walk.skip(reason)
        except OSError:
            self._walk.skipped["unreadable"] += 1
        return False

    def _is_folder(self, entry: os.DirEntry[str], path: str) -> bool:
        if entry.is_symlink():
            raise SkippedFileError("symbolic link")
        if len(path) > self._limits.max_path_chars or path.count("/") >= self._limits.max_depth:
            raise SkippedFileError("too deep")
        return entry.is_dir(follow_symlinks=False)

    def _take(self, file: FoundFile) -> None:
        item = (file.mtime_ns, file.path, file)
        if len(self._newest) < self._max_files:
            heapq.heappush(self._newest, item)
            return
        self._walk.skipped["too many files"] += 1
        if self._newest:
            heapq.heappushpop(self._newest, item)

    def _is_over(self) -> bool:
        return self._num_entries > self._limits.max_entries or time.monotonic() > self._until

    def _keep_newest(self) -> None:
        room = self._limits.max_text_bytes
        files = self._walk.files
        for _, _, file in sorted(self._newest, reverse=True):
            room -= file.size
            if room < 0:
                break
            files.append(file)
        if num_left := len(self._newest) - len(files):
            self._walk.skipped["too much text"] += num_left
        files.reverse()
