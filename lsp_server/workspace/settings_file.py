"""Settings files: where they are, and how they are read in bounded time and memory."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from lsp_server.workspace.settings_reading import UNREADABLE, Unreadable
from ngram_cache.confined import ConfinedFolder, NoPlainFileError, TooLargeError

REPOSITORY_FILE = ".slipstream.toml"
MAX_FILE_BYTES = 64 << 10
# The parser's time grows with the square of a dotted key's parts: 32,000 take 30 seconds, 200 half a second.
MAX_DOTS_IN_LINE = 200


class FoundSettings(NamedTuple):
    """The values of a settings file, none if it is missing, and the problem of one that cannot be read."""

    values: dict[str, Any] | Unreadable
    problems: tuple[str, ...] = ()


def user_file() -> Path:
    """Return the path of the user's own settings file."""
    return platformdirs.user_config_path("slipstream", appauthor=False) / "config.toml"


def read_repository_file(folder: Path) -> FoundSettings:
    """Read a folder's own file. A link is not followed, because its target is not in the repository."""
    return _read(folder, REPOSITORY_FILE)


def read_user_file(path: Path) -> FoundSettings:
    """Read the user's own file, which may be a link."""
    target = Path(os.path.realpath(path))  # pathlib's own raises for a link to itself
    if os.path.lexists(path) and not os.path.lexists(target):
        return unreadable(path, "it is a link without a target")
    return _read(target.parent, target.name)


def _read(folder: Path, name: str) -> FoundSettings:
    try:
        data = ConfinedFolder(folder).read(name, MAX_FILE_BYTES)
        text = data.decode("utf-8-sig")
        _check_dots(text)
        return FoundSettings(tomllib.loads(text))
    except (FileNotFoundError, NotADirectoryError):
        return FoundSettings({})
    except NoPlainFileError as error:
        return unreadable(folder / name, f"it is {error}")
    except TooLargeError:
        return unreadable(folder / name, f"it is larger than {MAX_FILE_BYTES >> 10} kB")
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return unreadable(folder / name, str(error)[:200] or type(error).__name__)


def unreadable(path: Path, reason: str) -> FoundSettings:
    """Return what is found of a file that cannot be read."""
    return FoundSettings(UNREADABLE, (f"Slipstream could not read {path}: {reason}.",))


def _check_dots(text: str) -> None:
    """Raise ValueError for a line that may contain a key with too many parts."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MAX_DOTS_IN_LINE:
            raise ValueError(f"line {number} has more than {MAX_DOTS_IN_LINE} dots")
