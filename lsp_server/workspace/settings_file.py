"""Settings files: where they lie, and how they are read in time and memory that grow with their size.

Owns the limits on a file's size and shape. Must not know which settings there are, nor the protocol.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import platformdirs

from ngram_cache.confined import ConfinedFolder, NoPlainFileError, TooLargeError

REPOSITORY_FILE = ".slipstream.toml"
MAX_FILE_BYTES = 64 << 10
MAX_KEYS = 2_000
MAX_KEY_PARTS = 8
MAX_DEPTH = 16

_MARK = re.compile(r"""["'#\[\]{}=.,\n]""")
_STRINGS = {
    '"': re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL),
    "'": re.compile(r"'[^']*+'"),
    '"""': re.compile(r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}', re.DOTALL),
    "'''": re.compile(r"'''.*?'{3,5}", re.DOTALL),
}


def user_file() -> Path:
    """Where a user's own settings lie."""
    return platformdirs.user_config_path("slipstream", appauthor=False) / "config.toml"


def read_repository_file(folder: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a folder's own file says, and what is wrong with it; no file, or no plain one, says nothing.

    A link is not followed: what it leads to is not the repository's.
    """
    try:
        is_link = (folder / REPOSITORY_FILE).is_symlink()
    except OSError:
        is_link = False
    if is_link:
        return {}, (f"{folder / REPOSITORY_FILE} is ignored: it is a symbolic link.",)
    return _read(folder, REPOSITORY_FILE)


def read_user_file(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a user's own file says, and what is wrong with it. It may be a link, as many keep theirs."""
    try:
        path = path.resolve()
    except (OSError, RuntimeError):
        return {}, (f"{path} is ignored: it is a link that leads nowhere.",)
    return _read(path.parent, path.name)


def _read(folder: Path, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    try:
        data = ConfinedFolder(folder).read(name, MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError, NoPlainFileError):
        return {}, ()
    except TooLargeError:
        return {}, (f"{folder / name} is ignored: it is larger than {MAX_FILE_BYTES >> 10} kB.",)
    except OSError as error:
        return {}, (f"{folder / name} is ignored: {error}",)
    try:
        text = data.decode()
        check_shape(text)
        return tomllib.loads(text), ()
    except (ValueError, RecursionError, MemoryError) as error:
        return {}, (f"{folder / name} is ignored: {str(error)[:200] or type(error).__name__}",)


def check_shape(text: str) -> None:
    """ValueError when a TOML text holds more keys, or deeper ones, than any settings file needs.

    The parser's time and memory grow with the square of a dotted key's parts, and its stack with the
    depth of values. Each character is looked at once; where the parser would stop at a mistake, what
    stands behind it may be judged wrongly, but is never parsed.
    """
    depth = num_keys = num_dots = at = 0
    while (mark := _MARK.search(text, at)) is not None:
        sign, at = mark[0], mark.end()
        if sign in "\"'":
            at = _end_of_string(text, mark.start())
        elif sign == "#":
            end = text.find("\n", at)
            at = end if end >= 0 else len(text)
        elif sign == ".":
            num_dots += 1
        else:
            num_dots = 0
            num_keys += sign in "=["
            depth += (sign in "[{") - (sign in "]}")
        if num_dots >= MAX_KEY_PARTS:
            raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts")
        if num_keys > MAX_KEYS:
            raise ValueError(f"it has more than {MAX_KEYS:,} keys and lists")
        if depth > MAX_DEPTH:
            raise ValueError(f"a value is nested more than {MAX_DEPTH} deep")


def _end_of_string(text: str, start: int) -> int:
    quote = text[start]
    kind = 3 * quote if text.startswith(3 * quote, start) else quote
    found = _STRINGS[kind].match(text, start)
    if found is None:
        raise ValueError("a string has no end")
    return found.end()
