"""Opens files inside one folder: follows no link, and reads regular files only.

Where the platform can, each step opens an entry of the folder that is already open, so replacing a folder by
a link meanwhile has no effect. On other platforms the resolved path is compared.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from pathlib import Path

_STEPS_DOWN = os.open in os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
_PLAIN = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe does not wait for its writer
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER = _PLAIN | getattr(os, "O_DIRECTORY", 0)
_PIECE_BYTES = 1 << 20
_MAX_PROBED = 1_000


class NoPlainFileError(OSError):
    """The path is not a regular file, but a link, a folder, a pipe or a device."""


class TooLargeError(OSError):
    """The file has more bytes than the limit."""


class ConfinedFolder:
    """A folder that may be read, by paths relative to it with forward slashes; empty for itself.

    All methods raise OSError for a missing path, a path below a link, or one on another file system.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))  # `Path.resolve` raises for a link to itself

    @cached_property
    def ignores_case(self) -> bool:
        """Whether names that differ only in case are the same file in this folder."""
        with suppress(OSError), self.scan("") as entries:
            for entry in islice(entries, _MAX_PROBED):
                swapped = entry.name.swapcase()
                if swapped != entry.name and entry.name.isascii():
                    return self._is_same(entry.name, swapped)
        return sys.platform in {"win32", "darwin"}

    def _is_same(self, name: str, other: str) -> bool:
        try:
            return os.path.samestat(self.status(name), self.status(other))
        except FileNotFoundError:
            return False

    def read(self, path: str, max_bytes: int) -> bytes:
        """Return the bytes of a regular file. Raises TooLargeError if there are more than `max_bytes`."""
        data = self.read_start(path, max_bytes + 1)
        if len(data) > max_bytes:
            raise TooLargeError(f"larger than {max_bytes} bytes")
        return data

    def read_start(self, path: str, num_bytes: int) -> bytes:
        """Return the first `num_bytes` bytes of a regular file, or all if there are fewer."""
        folder, _, name = path.rpartition("/")
        with self._opened(folder) as parent:
            where = name if parent is not None else self.root / path
            # The type is checked first, because opening a device can have an effect.
            _check_plain(os.stat(where, dir_fd=parent, follow_symlinks=False))
            handle = os.open(where, _PLAIN, dir_fd=parent)
        with os.fdopen(handle, "rb", buffering=0) as file:
            _check_plain(os.fstat(handle))
            pieces = []
            while num_bytes and (piece := file.read(min(num_bytes, _PIECE_BYTES))):
                pieces.append(piece)
                num_bytes -= len(piece)
        return b"".join(pieces)

    def status(self, path: str) -> os.stat_result:
        """Return the status of `path`. A link is not followed."""
        folder, _, name = path.rpartition("/")
        with self._opened(folder) as parent:
            if parent is None:
                return (self.root / path).lstat()
            return os.stat(name or ".", dir_fd=parent, follow_symlinks=False)

    @contextmanager
    def scan(self, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Yield the entries of a folder, in no order, while the context is open."""
        with (
            self._opened(path) as folder,
            os.scandir(self.root / path if folder is None else folder) as entries,
        ):
            yield entries

    @contextmanager
    def _opened(self, path: str) -> Iterator[int | None]:
        """Yield a descriptor of a folder below the root; None if the platform opens by whole paths only."""
        if not _STEPS_DOWN:
            _check_resolved(self.root, path)
            yield None
            return
        handle = os.open(self.root, _FOLDER)
        try:
            device = os.fstat(handle).st_dev
            for name in path.split("/") if path else []:
                if name in {"", ".", ".."}:
                    raise NoPlainFileError(f"{path} is not a path inside a folder")
                inner = os.open(name, _FOLDER, dir_fd=handle)
                os.close(handle)
                handle = inner
                if os.fstat(handle).st_dev != device:
                    raise NoPlainFileError(f"{path} is on another file system")
            yield handle
        finally:
            os.close(handle)


def _check_plain(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NoPlainFileError("a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file")


def _check_resolved(root: Path, path: str) -> None:
    if ".." in path.split("/") or os.path.realpath(root / path) != os.path.normpath(root / path):
        raise NoPlainFileError(f"{path} is below a link")
    if path and os.path.ismount(root / path):
        raise NoPlainFileError(f"{path} is on another file system")
