"""What a document's URI says of this machine's files. Pure: asks no disk."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

_DRIVE = re.compile(r"/[A-Za-z]:(?:/|$)")


def path_of(uri: str) -> Path | None:
    """The path that a URI names; None when it names no file of this machine."""
    text = path_text(uri, is_windows=sys.platform == "win32")
    return Path(text) if text else None


def path_text(uri: str, *, is_windows: bool) -> str:
    """The same as text, "" for none. Editors write a drive as `C:` or as `c%3A`."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    if parts.scheme != "file":
        return ""
    # Names of files may be bytes that are no UTF-8.
    path = unquote_to_bytes(parts.path).decode("utf-8", "surrogateescape")
    share = f"//{parts.netloc}" if parts.netloc not in {"", "localhost"} else ""
    if "\0" in path or not path:
        return ""
    if is_windows and not share and _DRIVE.match(path):
        return path[1:]
    return f"{share}{path}"
