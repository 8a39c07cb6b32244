"""The open folders, and the location of a document: its file here, and the folders whose rules apply to it.

Does not read the disk, whose state is given as a `FileIdentity`.
"""

from __future__ import annotations

import asyncio
import binascii
import contextlib
import re
import sys
from base64 import urlsafe_b64decode
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import SplitResult, unquote, unquote_to_bytes, urlsplit

from ngram_cache.file_names import is_in_secret_folder, is_secret_path, name_in

_DRIVE = re.compile(r"/[A-Za-z]:(?:/|$)")
_FILE, _UNSAVED, _CELL = "file", "untitled", "vscode-notebook-cell"
# A window on a remote machine runs the server there, so the file is local to the server.
_REMOTE = "vscode-remote"
_NOTHING = SplitResult("", "", "", "", "")

# Each folder needs a thread and an index.
MAX_FOLDERS = 64
# A disk that takes longer to respond delays nothing else.
READING_S = 1.0


@dataclass(slots=True)
class WorkspaceFolders:
    """The open folders by URI; several URIs may name one folder.

    Until the settings of `unread` folders are read, they are not indexed, and get no suggestions. Reading
    also finds the real path of a folder and the folders `around` it that have a settings file.
    """

    by_uri: dict[str, Path] = field(default_factory=dict)
    unread: set[Path] = field(default_factory=set)
    around: dict[Path, tuple[Path, ...]] = field(default_factory=dict)
    _real_paths: dict[Path, Path] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)  # set once fewer folders are unread

    def __contains__(self, folder: Path) -> bool:
        return folder in self.by_uri.values()

    @property
    def paths(self) -> tuple[Path, ...]:
        """Return each open folder once."""
        return tuple(dict.fromkeys(self.by_uri.values()))

    @property
    def real_paths(self) -> dict[Path, Path]:
        """Return each open folder with its real path, or with itself until that is known."""
        return {folder: self._real_paths.get(folder, folder) for folder in self.paths}

    async def until_read(self, folders: Collection[Path]) -> None:
        """Wait until the settings of these folders are read, for at most `READING_S`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READING_S):
                while not self.unread.isdisjoint(folders):
                    await self._news.wait()

    def read(self, folder: Path, real_path: Path) -> bool:
        """Record that an open folder's settings were read; return True if its real path is new."""
        self._no_longer_unread(folder)
        is_news = self._real_paths.get(folder, folder) != real_path
        self._real_paths[folder] = real_path
        return is_news

    def add(self, uri: str, folder: Path) -> bool:
        """Record an open folder; return False if there are too many, and it is left out."""
        if uri not in self.by_uri and len(self.by_uri) >= MAX_FOLDERS:
            return False
        if folder not in self:
            self.unread.add(folder)
        self.by_uri[uri] = folder
        return True

    def remove(self, uri: str) -> Path | None:
        """Record that a URI is closed; return its folder, unless another URI names it."""
        folder = self.by_uri.pop(uri, None)
        if folder is None or folder in self:
            return None
        self._no_longer_unread(folder)
        self._real_paths.pop(folder, None)
        self.around.pop(folder, None)
        return folder

    def _no_longer_unread(self, folder: Path) -> None:
        self.unread.discard(folder)
        self._news.set()
        self._news = asyncio.Event()


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Which file a path leads to: `path` is its real path, the same for each spelling.

    `home` is the folder whose ignore rules apply if no workspace folder contains the file. `configured` are
    the folders from there down, outermost first, that have a settings file.
    """

    path: Path
    home: Path
    configured: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentLocation:
    """The location of a document, found when it is opened and again when folders change.

    `file` is the document's own file; None if it is not a file of this machine, or is a part of one
    (`is_cell`). `stands_for` is the file whose rules and settings apply, by the client's path; None if there
    is none on this machine. `identity` is the file that this path leads to, None until the disk is read.
    `folder` is the innermost workspace folder with that file, and `name` its path in there, empty for none.
    `ruled_in` are the folders whose rules and settings apply, each with the file's path there. An
    `is_nameless` document never had a file name. An `is_secret` one has the name of a file with secrets.
    """

    uri: str
    file: Path | None
    stands_for: Path | None
    identity: FileIdentity | None
    folder: Path | None
    name: str
    ruled_in: tuple[tuple[Path, Path], ...]
    is_cell: bool
    is_nameless: bool
    is_secret: bool

    @property
    def indexed_as(self) -> str:
        """The document's name in the index: its path in its folder, or its URI."""
        return self.name or self.uri

    @property
    def indexed_path(self) -> Path | None:
        """Return the path of the document, or of its notebook, as the index of its folder names it."""
        return self.folder / self.name if self.folder is not None else self.file

    @property
    def rule_folders(self) -> tuple[Path, ...]:
        """Return the folders whose rules and settings apply."""
        return tuple(folder for folder, _ in self.ruled_in)


def locate(uri: str, folders: Mapping[Path, Path], identity: FileIdentity | None = None) -> DocumentLocation:
    """Return the location of a document in these workspace folders, which are given with their real paths.

    A file is where its real path leads. A workspace folder that contains it only through a link applies its
    rules too, because rules only restrict.
    """
    called = stands_for(uri)
    by_name = _held(called, {folder: folder for folder in folders}) if called else None
    really = _held(identity.path, folders) if identity else None
    folder, name = really or by_name or (None, "")
    ruled_in = {} if by_name is None or called is None else {by_name[0]: called}
    if identity is not None:
        ruled_in |= dict.fromkeys(_ruling(really, folders, identity), identity.path)
    is_secret = _is_secret(by_name, _whole_path(uri))
    if identity is not None:
        is_secret = is_secret or _is_secret(really, identity.path.as_posix())
    return DocumentLocation(
        uri=uri,
        file=_file_of(uri, folder, name, identity),
        stands_for=called,
        identity=identity,
        folder=folder,
        name=name,
        ruled_in=tuple(ruled_in.items()),
        is_cell=is_cell(uri),
        is_nameless=is_nameless(uri),
        is_secret=is_secret,
    )


def _held(path: Path, folders: Mapping[Path, Path]) -> tuple[Path, str] | None:
    """Return the innermost of `folders`, given with their paths, that contains a path, and its path there."""
    names = {folder: name_in(place, path) for folder, place in folders.items()}
    holders = [folder for folder, name in names.items() if name is not None]
    folder = max(holders, key=lambda holder: len(folders[holder].parts), default=None)
    inner = names.get(folder) if folder is not None else None
    return None if folder is None or inner is None else (folder, inner.as_posix())


def _ruling(
    really: tuple[Path, str] | None, folders: Mapping[Path, Path], identity: FileIdentity
) -> tuple[Path, ...]:
    """Return the folders whose rules apply to a file's real path: the workspace folder and outer ones."""
    if really is None:
        return identity.home, *identity.configured
    real = folders[really[0]]
    around = (folder for folder in identity.configured if folder != real and name_in(folder, real))
    return really[0], *around


def _is_secret(held: tuple[Path, str] | None, whole: str) -> bool:
    name = held[1] if held else whole
    return is_secret_path(name.lstrip("/")) or is_in_secret_folder(whole)


def _file_of(uri: str, folder: Path | None, name: str, identity: FileIdentity | None) -> Path | None:
    """Return the document's own file, by the path that the index of its folder uses."""
    path = path_of(uri)
    if path is None or identity is None:
        return path
    return folder / name if folder is not None else identity.path


def path_of(uri: str) -> Path | None:
    """Return the path that a URI names; None if it names no file of this machine."""
    text = path_text(uri, is_windows=sys.platform == "win32")
    return Path(text) if text else None


def stands_for(uri: str) -> Path | None:
    """Return the file whose rules and settings apply to a document; None if there is none on this machine.

    That is the file itself, the notebook of a cell, or the file that an unsaved document will become.
    """
    text = stands_for_text(uri, is_windows=sys.platform == "win32")
    return Path(text) if text else None


def is_nameless(uri: str) -> bool:
    """Return whether a document, or the notebook around it, never had a file name."""
    parts = _split(uri)
    if parts.scheme == _FILE:
        return not (parts.netloc or parts.path)
    return parts.scheme == _UNSAVED and not (parts.netloc or PureWindowsPath(unquote(parts.path)).anchor)


def is_cell(uri: str) -> bool:
    """Return whether a document is one cell of a notebook."""
    return _parsed(uri).scheme == _CELL


def path_text(uri: str, *, is_windows: bool) -> str:
    """Return `path_of` as text, empty for none. Editors write a drive as `C:` or as `c%3A`."""
    parts = _parsed(uri)
    return _path_in(parts, parts.netloc, is_windows=is_windows) if parts.scheme == _FILE else ""


def stands_for_text(uri: str, *, is_windows: bool) -> str:
    """Return `stands_for` as text, empty for none."""
    parts, kind = _split(uri), PureWindowsPath if is_windows else PurePosixPath
    if parts.scheme == _FILE and not is_cell(uri):
        host = parts.netloc
    elif parts.scheme in {_FILE, _UNSAVED}:
        # The host is a share of Windows, or the machine that the editor is connected to.
        host = parts.netloc if is_windows and "+" not in unquote(parts.netloc) else ""
    else:
        return ""
    text = _path_in(parts, host, is_windows=is_windows)
    return text if kind(text).is_absolute() else ""


def _parsed(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError:
        return _NOTHING


def _split(uri: str) -> SplitResult:
    """Return a URI's parts; for a cell those of its notebook, whose scheme follows the cell's number."""
    parts = _parsed(uri)
    if parts.scheme != _CELL:
        return parts
    _, _, encoded = unquote(parts.fragment).partition("s")
    try:
        scheme = urlsafe_b64decode(encoded).decode("ascii")
    except (binascii.Error, ValueError):
        scheme = ""
    if scheme == _REMOTE:
        return parts._replace(scheme=_FILE, netloc="")
    return parts._replace(scheme=scheme or _FILE)


def _path_in(parts: SplitResult, host: str, *, is_windows: bool) -> str:
    """Return the path on a host, empty for none."""
    # Names of files may be bytes that are not UTF-8.
    path = unquote_to_bytes(parts.path).decode("utf-8", "surrogateescape")
    share = f"//{host}" if host not in {"", "localhost"} else ""
    if "\0" in path or not path:
        return ""
    if is_windows and not share and _DRIVE.match(path):
        return path[1:]
    return f"{share}{path}"


def _whole_path(uri: str) -> str:
    """The path of a URI of any scheme, decoded; the whole URI if it cannot be parsed."""
    parts = _parsed(uri)
    return uri if parts is _NOTHING else unquote(parts.path).replace("\\", "/")
