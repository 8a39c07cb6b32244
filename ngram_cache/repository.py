"""Finds the files of a folder that may be indexed, and reads them.

Never follows a symbolic link, and never raises for what it finds. Files that are left out are counted by
reason.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ngram_cache.confined import ConfinedFolder, NoPlainFileError, TooLargeError
from ngram_cache.file_names import FileKind, kind_of, name_in, real_path
from ngram_cache.folder_rules import FolderRules, KnownLayers, SkippedFileError
from ngram_cache.redaction import has_private_key
from ngram_cache.walk import FolderWalk, FoundFile, Walk, WalkLimits

__all__ = [
    "FoundFile",
    "KnownLayers",
    "Repository",
    "RepositoryOptions",
    "SkippedFileError",
    "StoppedError",
    "Walk",
    "WalkLimits",
]

_MAX_DATA_BYTES = 64 << 10
_MAX_LINE = 5_000
_MAX_MEAN_LINE = 400
_MAX_TIME_NS = (1 << 63) - 1  # some file systems hold later times than fit in an index


@dataclass(frozen=True, slots=True)
class RepositoryOptions:
    """The options of an index. `exclude` are `.gitignore` patterns that no ignore file can revoke.

    `exclude_around` are such patterns of folders around the repository's, by their resolved paths.
    """

    max_files: int = 20_000
    max_file_bytes: int = 1 << 20
    exclude: tuple[str, ...] = ()
    exclude_around: tuple[tuple[Path, tuple[str, ...]], ...] = ()
    limits: WalkLimits = field(default_factory=WalkLimits)


DEFAULT_OPTIONS = RepositoryOptions()


class StoppedError(Exception):
    """The caller asked to stop, so there is no result."""


class Repository:
    """One folder, and the rules that select its files.

    `should_stop` is called between two small steps. If it returns True, StoppedError is raised.
    """

    def __init__(
        self,
        root: Path,
        options: RepositoryOptions = DEFAULT_OPTIONS,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._folder = ConfinedFolder(real_path(root))
        self._called = Path(os.path.abspath(root))  # noqa: PTH100  the link that it may be is kept
        self.options = options
        self._should_stop = should_stop
        self.rules = FolderRules(self._folder, options.exclude, self._checkpoint, options.exclude_around)

    @property
    def root(self) -> Path:
        """The folder's resolved path."""
        return self._folder.root

    def walk(self, folder: str = "", known: KnownLayers | None = None) -> Walk:
        """Return all files below `folder` that may be indexed; if more than `max_files`, the newest."""
        walk = Walk()
        try:
            layers = self.rules.at(folder, known)
        except SkippedFileError as reason:
            walk.skip(reason)
            return walk
        options = self.options
        search = FolderWalk(self._folder, self.rules, options.limits, options.max_files, self._check_file)
        return search.run(folder, layers)

    def look(self, path: str, known: KnownLayers | None = None) -> Walk:
        """Find the files to index at `path`, which may be a file, a folder or missing.

        For many paths, pass the same dict each time, so that the rules on their way are read only once.
        """
        walk = Walk()
        try:
            if stat.S_ISDIR(self._status(path).st_mode):
                return self.walk(path, known)
            walk.files.append(self.find(path, known))
        except SkippedFileError as reason:
            walk.skip(reason)
        return walk

    def find(self, path: str, known: KnownLayers | None = None) -> FoundFile:
        """Return the file at `path`. Raises SkippedFileError if it is missing or may not be indexed."""
        self.rules.check(path, self.rules.at(path.rpartition("/")[0], known), is_folder=False)
        return self._check_file(path, self._status(path))

    def read(self, file: FoundFile) -> str:
        """Return a file's text with `\n` line ends. Raises SkippedFileError if it is not useful text."""
        self._checkpoint()
        try:
            data = self._folder.read(file.path, self.options.max_file_bytes)
        except TooLargeError as error:
            raise SkippedFileError("too large") from error
        except NoPlainFileError as error:
            raise SkippedFileError("not a regular file") from error
        except (OSError, ValueError) as error:
            raise SkippedFileError("unreadable") from error
        if b"\0" in data:
            raise SkippedFileError("binary")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SkippedFileError("not UTF-8") from error
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.check_text(text)
        return text

    def check_text(self, text: str) -> None:
        """Raise SkippedFileError if a text contains a private key or was not written by a person."""
        if has_private_key(text):
            raise SkippedFileError("private key")
        lines = text.split("\n")
        if max(map(len, lines)) > _MAX_LINE or len(text) > max(_MAX_LINE, _MAX_MEAN_LINE * len(lines)):
            raise SkippedFileError("generated")

    def allows(self, path: str, known: KnownLayers | None = None) -> bool:
        """Return whether the rules allow `path`, even if it does not exist. Links are not allowed."""
        if Path(path).is_absolute():
            return False
        try:
            self.rules.check(path, self.rules.at(path.rpartition("/")[0], known), is_folder=False)
            self.rules.check_reachable(path)
        except SkippedFileError:
            return False
        return True

    def inner_path(self, path: Path | str) -> str | None:
        """Return the name of a file in the index, from its path only; None for a path outside. Reads no disk.

        The path may begin with a link that leads to the root.
        """
        absolute = Path(os.path.normpath(self.root / path))
        for root in (self.root, self._called):
            if (name := name_in(root, absolute)) is not None:
                return name.as_posix()
        return None

    def document_path(self, path: Path | str) -> str:
        """Return the name of a file in the index, also for a link; for a file outside, its full path.

        Raises OSError for a path that is too long.
        """
        if (name := self.inner_path(path)) is not None:
            return name
        absolute = Path(os.path.normpath(self.root / path))
        behind = real_path(absolute.parent) / absolute.name
        return self.inner_path(behind) or absolute.as_posix()

    def concerns(self, path: Path) -> bool:
        """Return whether a change of `path` can change what is indexed. Reads no disk."""
        return self.inner_path(path) is not None or path in self.rules.outer_files

    def _checkpoint(self) -> None:
        if self._should_stop():
            raise StoppedError

    def _status(self, path: str) -> os.stat_result:
        try:
            return self._folder.status(path)
        except (OSError, ValueError) as error:
            raise SkippedFileError("unreadable") from error

    def _check_file(self, path: str, status: os.stat_result) -> FoundFile:
        if not stat.S_ISREG(status.st_mode):
            raise SkippedFileError("symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file")
        name = path.rpartition("/")[2]
        kind = kind_of(name)
        if kind is FileKind.GENERATED:
            raise SkippedFileError("generated")
        if kind is FileKind.UNKNOWN and not self._is_script(path, name):
            raise SkippedFileError("no source file")
        limit = self.options.max_file_bytes
        if status.st_size > (min(limit, _MAX_DATA_BYTES) if kind is FileKind.DATA else limit):
            raise SkippedFileError("too large")
        return FoundFile(path, status.st_size, max(-_MAX_TIME_NS, min(status.st_mtime_ns, _MAX_TIME_NS)))

    def _is_script(self, path: str, name: str) -> bool:
        if "." in name:
            return False
        try:
            return self._folder.read_start(path, 2) == b"#!"
        except OSError:
            return False
