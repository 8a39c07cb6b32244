"""Owns what of a folder may be indexed. The only module that walks the disk; knows no tokens, no index.

Never follows a symbolic link, never raises for what it finds: what is left out is counted by reason.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ngram_cache.file_kinds import TOOL_FOLDERS, Kind, is_secret_path, kind_of
from ngram_cache.ignore import IGNORE_FILES, IgnoreLayer, is_ignored
from ngram_cache.redaction import has_private_key

_MAX_DATA_BYTES = 64 << 10
_MAX_LINE = 5_000
_MAX_MEAN_LINE = 400
_MAX_IGNORE_BYTES = 1 << 20
_MAX_ENTRIES = 1_000_000


@dataclass(frozen=True, slots=True)
class RepositoryOptions:
    """What may be indexed: `exclude` are patterns as in a `.gitignore`, which nothing can take back."""

    max_files: int = 20_000
    max_file_bytes: int = 1 << 20
    exclude: tuple[str, ...] = ()


DEFAULT_OPTIONS = RepositoryOptions()


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be indexed: `path` is relative to the root, with forward slashes."""

    path: str
    size: int
    mtime_ns: int


class SkippedFileError(Exception):
    """A file is not to be indexed; the message is a short reason, the same for all such files."""


@dataclass(slots=True)
class Walk:
    """What a walk found, oldest first, and how often what was left out."""

    files: list[FoundFile] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


class Repository:
    """One folder and the rules that say what of it is read."""

    def __init__(self, root: Path, options: RepositoryOptions = DEFAULT_OPTIONS) -> None:
        self.root = root.resolve()
        self._options = options
        self._excluded = IgnoreLayer.parse("\n".join(options.exclude))
        self._outer = self._outer_layers()

    def walk(self, folder: str = "") -> Walk:
        """All files below `folder` that may be indexed, at most `max_files`, then the newest ones."""
        walk = Walk()
        layers = self._layers_for(folder)
        if layers is None:
            walk.skipped["ignored"] += 1
            return walk
        pending = [(folder, layers)]
        num_entries = 0
        while pending:
            current, layers = pending.pop()
            for entry in self._entries(current, walk):
                num_entries += 1
                path = f"{current}/{entry.name}" if current else entry.name
                try:
                    inner = self._consider(entry, path, layers, walk)
                except SkippedFileError as reason:
                    walk.skipped[str(reason)] += 1
                    continue
                if inner is not None:
                    pending.append((path, inner))
            if num_entries > _MAX_ENTRIES:
                walk.skipped["too many entries"] += len(pending)
                break
        walk.files.sort(key=lambda file: (file.mtime_ns, file.path))
        surplus = len(walk.files) - self._options.max_files
        if surplus > 0:
            walk.skipped["too many files"] += surplus
            del walk.files[:surplus]
        return walk

    def look(self, path: str) -> Walk:
        """What may be indexed at `path`, be it a file, a folder or nothing at all."""
        place = self.root / path
        if place.is_dir() and not place.is_symlink():
            return self.walk(path)
        walk = Walk()
        try:
            walk.files.append(self.find(path))
        except SkippedFileError as reason:
            walk.skipped[str(reason)] += 1
        return walk

    def find(self, path: str) -> FoundFile:
        """The one file at `path`; SkippedFileError when there is none or it may not be indexed."""
        folder, _, name = path.rpartition("/")
        layers = self._layers_for(folder)
        if layers is None:
            raise SkippedFileError("ignored")
        self._check_rules(path, layers, is_folder=False)
        try:
            status = (self.root / path).lstat()
        except OSError as error:
            raise SkippedFileError("unreadable") from error
        return self._check_file(path, name, status)

    def read(self, file: FoundFile) -> str:
        """A file's text with `\\n` line ends; SkippedFileError when it is not text worth indexing."""
        data = self._read_bytes(self.root / file.path, self._options.max_file_bytes)
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
        """SkippedFileError when a text holds a private key or was not written by a person."""
        if has_private_key(text):
            raise SkippedFileError("private key")
        lines = text.split("\n")
        if max(map(len, lines)) > _MAX_LINE or len(text) > max(_MAX_LINE, _MAX_MEAN_LINE * len(lines)):
            raise SkippedFileError("generated")

    def allows(self, path: str) -> bool:
        """Whether the rules let `path` in, whether or not there is such a file."""
        layers = self._layers_for(path.rpartition("/")[0])
        try:
            if layers is not None:
                self._check_rules(path, layers, is_folder=False)
        except SkippedFileError:
            return False
        return layers is not None

    def is_rule_file(self, path: str) -> bool:
        """Whether a change of `path` may change what is ignored."""
        return path.rpartition("/")[2] in IGNORE_FILES or path == ".git/info/exclude"

    def refresh(self) -> None:
        """Read the rules again that lie outside the walked folders."""
        self._outer = self._outer_layers()

    def _entries(self, folder: str, walk: Walk) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / folder) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError:
            walk.skipped["unreadable"] += 1
            return []

    def _consider(
        self, entry: os.DirEntry[str], path: str, layers: list[IgnoreLayer], walk: Walk
    ) -> list[IgnoreLayer] | None:
        """Take a file into the walk, or return the layers with which to enter a folder."""
        if entry.is_symlink():
            raise SkippedFileError("symbolic link")
        is_folder = entry.is_dir(follow_symlinks=False)
        self._check_rules(path, layers, is_folder=is_folder)
        if is_folder:
            return [*layers, *self._own_layers(path)]
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            raise SkippedFileError("unreadable") from error
        walk.files.append(self._check_file(path, entry.name, status))
        return None

    def _check_rules(self, path: str, layers: list[IgnoreLayer], *, is_folder: bool) -> None:
        name = path.rpartition("/")[2]
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise SkippedFileError("name not UTF-8") from error
        if is_folder and name in TOOL_FOLDERS:
            raise SkippedFileError("tool folder")
        if is_ignored([self._excluded], path, is_folder=is_folder):
            raise SkippedFileError("excluded")
        if is_ignored(layers, path, is_folder=is_folder):
            raise SkippedFileError("ignored")
        if not is_folder and is_secret_path(path):
            raise SkippedFileError("secret")

    def _check_file(self, path: str, name: str, status: os.stat_result) -> FoundFile:
        if not stat.S_ISREG(status.st_mode):
            raise SkippedFileError("symbolic link" if stat.S_ISLNK(status.st_mode) else "no plain file")
        kind = kind_of(name)
        if kind is Kind.GENERATED:
            raise SkippedFileError("generated")
        if kind is Kind.UNKNOWN and not self._is_script(path, name):
            raise SkippedFileError("no source file")
        limit = self._options.max_file_bytes
        if status.st_size > (min(limit, _MAX_DATA_BYTES) if kind is Kind.DATA else limit):
            raise SkippedFileError("too large")
        return FoundFile(path, status.st_size, status.st_mtime_ns)

    def _is_script(self, path: str, name: str) -> bool:
        if "." in name:
            return False
        try:
            return self._read_bytes(self.root / path, None)[:2] == b"#!"
        except SkippedFileError:
            return False

    def _layers_for(self, folder: str) -> list[IgnoreLayer] | None:
        """The layers that hold inside `folder`; None when the rules keep it out."""
        layers = [*self._outer, *self._own_layers("")]
        path = ""
        for name in folder.split("/") if folder else []:
            path = f"{path}/{name}" if path else name
            try:
                self._check_rules(path, layers, is_folder=True)
            except SkippedFileError:
                return None
            if (self.root / path).is_symlink():
                return None
            layers += self._own_layers(path)
        return layers

    def _own_layers(self, folder: str) -> Iterator[IgnoreLayer]:
        for name in IGNORE_FILES:
            text = self._read_rules(self.root / folder / name)
            if text:
                yield IgnoreLayer.parse(text, base=folder)

    def _outer_layers(self) -> list[IgnoreLayer]:
        """The rules of the work tree that the root lies in, unless they ignore the root itself."""
        layers: list[IgnoreLayer] = []
        for top in (self.root, *self.root.parents):
            if not (top / ".git").exists():
                continue
            above = self.root.relative_to(top).as_posix() if top != self.root else ""
            layers.append(IgnoreLayer.parse(self._read_rules(top / ".git/info/exclude"), above=above))
            folder = top
            for name in self.root.relative_to(top).parts:
                below = self.root.relative_to(folder).as_posix()
                layers += [
                    IgnoreLayer.parse(self._read_rules(folder / file), above=below) for file in IGNORE_FILES
                ]
                folder /= name
            break
        return [] if any(layer.ignores_root() for layer in layers) else layers

    def _read_rules(self, path: Path) -> str:
        try:
            return self._read_bytes(path, _MAX_IGNORE_BYTES).decode("utf-8", "replace")
        except SkippedFileError:
            return ""

    @staticmethod
    def _read_bytes(path: Path, max_bytes: int | None) -> bytes:
        """A plain file's bytes, its first two alone without `max_bytes`. Links and pipes are not opened."""
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise SkippedFileError("unreadable") from error
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise SkippedFileError("no plain file")
            try:
                data = file.read(2 if max_bytes is None else max_bytes + 1)
            except OSError as error:
                raise SkippedFileError("unreadable") from error
        if max_bytes is not None and len(data) > max_bytes:
            raise SkippedFileError("too large")
        return data
