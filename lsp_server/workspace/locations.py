"""The location of documents: the file of a URI on this machine, and its workspace folder.

Pure: does not read the disk.
"""

from __future__ import annotations

import binascii
import re
import sys
from base64 import urlsafe_b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import SplitResult, unquote, unquote_to_bytes, urlsplit

from ngram_cache.file_names import is_in_secret_folder, is_secret_path, name_in

_DRIVE = re.compile(r"/[A-Za-z]:(?:/|$)")
_FILE, _UNSAVED, _CELL = "file", "untitled", "vscode-notebook-cell"
# In a window on another machine the server runs on that one, and so the file is the server's own.
_REMOTE = "vscode-remote"
_NOTHING = SplitResult("", "", "", "", "")


@dataclass(frozen=True, slots=True)
class DocumentLocation:
    """The location of a document, found when it is opened and again when folders change.

    `file` is the document's own, None for one that is not a file of this machine, or a part of one
    (`is_cell`). `stands_for` is the file whose rules and settings hold, None if there is none on this
    machine. `folder` is the innermost workspace folder that holds that file, and `name` its path in there, ""
    for none. A document that `is_nameless` was never given a file's name. The name of one that `is_secret` is
    that of a file with secrets.
    """

    uri: str
    file: Path | None
    stands_for: Path | None
    folder: Path | None
    name: str
    is_cell: bool
    is_nameless: bool
    is_secret: bool

    @property
    def indexed_as(self) -> str:
        """The document's name in the index: its path in its folder, or its URI."""
        return self.name or self.uri


def locate(uri: str, folders: Iterable[Path]) -> DocumentLocation:
    """Find where a document lies in these workspace folders."""
    path = stands_for(uri)
    names = {} if path is None else {folder: name_in(folder, path) for folder in folders}
    holders = [folder for folder, name in names.items() if name is not None]
    folder = max(holders, key=lambda holder: len(holder.parts), default=None)
    inner = names.get(folder) if folder is not None else None
    name, whole = inner.as_posix() if inner is not None else "", _whole_path(uri)
    is_secret = is_secret_path((name or whole).lstrip("/")) or is_in_secret_folder(whole)
    return DocumentLocation(
        uri, path_of(uri), path, folder, name, is_cell(uri), is_nameless(uri), is_secret=is_secret
    )


def path_of(uri: str) -> Path | None:
    """The path that a URI names; None when it names no file of this machine."""
    text = path_text(uri, is_windows=sys.platform == "win32")
    return Path(text) if text else None


def stands_for(uri: str) -> Path | None:
    """The file whose rules and settings hold for a document; None where there is none on this machine.

    That is the file itself, the notebook of a cell, or the file that an unsaved document is to become.
    """
    text = stands_for_text(uri, is_windows=sys.platform == "win32")
    return Path(text) if text else None


def is_nameless(uri: str) -> bool:
    """Whether a document, or the notebook that it is a cell of, was never given a file's name."""
    parts = _split(uri)
    if parts.scheme == _FILE:
        return not (parts.netloc or parts.path)
    return parts.scheme == _UNSAVED and not (parts.netloc or PureWindowsPath(unquote(parts.path)).anchor)


def is_cell(uri: str) -> bool:
    """Whether a document is only a part of its file: one cell of a notebook."""
    return _parsed(uri).scheme == _CELL


def path_text(uri: str, *, is_windows: bool) -> str:
    """`path_of` as text, "" for none. Editors write a drive as `C:` or as `c%3A`."""
    parts = _parsed(uri)
    return _path_in(parts, parts.netloc, is_windows=is_windows) if parts.scheme == _FILE else ""


def stands_for_text(uri: str, *, is_windows: bool) -> str:
    """`stands_for` as text, "" for none."""
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
    """A URI's parts; for a cell those of its notebook, whose scheme follows the cell's number."""
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
    """The path on a host, "" for none."""
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
    try:
        return unquote(urlsplit(uri).path).replace("\\", "/")
    except ValueError:
        return uri
