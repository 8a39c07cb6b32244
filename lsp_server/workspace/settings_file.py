"""Settings files: where they are, and how they are read in bounded time and memory."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import platformdirs

from ngram_cache.confined import ConfinedFolder, NoPlainFileError, TooLargeError

REPOSITORY_FILE = ".slipstream.toml"
MAX_FILE_BYTES = 64 << 10
# The parser's time grows with the square of a dotted key's parts: 32,000 take 30 seconds, 200 half a second.
MAX_DOTS_IN_LINE = 200


def user_file() -> Path:
    """Return the path of the user's own settings file."""
    return platformdirs.user_config_path("slipstream", appauthor=False) / "config.toml"


def read_repository_file(folder: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the values and problems of a folder's own file. A missing or special file has no values.

    A link is not followed, because its target does not belong to the repository.
    """
    try:
        is_link = (folder / REPOSITORY_FILE).is_symlink()
    except OSError:
        is_link = False
    if is_link:
        return {}, (f"{folder / REPOSITORY_FILE} is ignored: it is a symbolic link.",)
    return _read(folder, REPOSITORY_FILE)


def read_user_file(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the values and problems of the user's own file, which may be a link."""
    try:
        path = path.resolve()
    except (OSError, RuntimeError):
        return {}, (f"{path} is ignored: it is a link without a target.",)
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
        _check_dots(text)
        return tomllib.loads(text), ()
    except (ValueError, RecursionError, MemoryError) as error:
        return {}, (f"{folder / name} is ignored: {str(error)[:200] or type(error).__name__}",)


def _check_dots(text: str) -> None:
    """Raise ValueError for a line that may contain a key with too many parts."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MAX_DOTS_IN_LINE:
            raise ValueError(f"line {number} has more than {MAX_DOTS_IN_LINE} dots")
