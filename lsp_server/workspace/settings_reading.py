"""Reads settings: files in bounded time and memory, values merged over others, with each bad one reported."""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs
from pydantic import ValidationError

from lsp_server.workspace.settings import Settings, all_settings
from lsp_server.workspace.settings_table import groups
from ngram_cache.confined import ConfinedFolder, NoPlainFileError, TooLargeError

# Groups under the same section that belong to the editors' extensions.
EDITORGROUPS = frozenset({"trace", "server", "editor"})
_GROUPS = groups(Settings)

MAX_CHARS = 256 << 10  # the limit for one source, as JSON

# The settings that decide which files are read, and what may leave this machine.
_RULES = ("index.enabled", "index.exclude", "languages", "context")
_ALL_RULES = frozenset({""})

_MAX_NAMED = 3
_MAX_KEY_CHARS = 40
_MAX_PROBLEMS = 5
REPOSITORY_FILE = ".slipstream.toml"
# The parser's time and memory grow with the square of a dotted key's parts: half a second and 64 MB at most.
MAX_FILE_BYTES = 8 << 10


class Unreadable:
    """The values of a source of settings that exists and cannot be read."""


UNREADABLE = Unreadable()


@dataclass(frozen=True, slots=True)
class Merged:
    """Settings, and a sentence for each invalid value. `unread` are rules whose values could not be read.

    An empty name among them means all rules. `given` are the keys of the source.
    """

    settings: Settings
    problems: tuple[str, ...] = ()
    unread: frozenset[str] = frozenset()
    given: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def is_whole(self) -> bool:
        """Whether all rules could be read."""
        return not self.unread


def merge(base: Settings, values: object, source: str) -> Merged:
    """Return `base` with the user's `values` over it, key by key. Bad values are ignored.

    `source` begins each message, as in "config.toml". An empty list is an empty table: Lua has one value for
    both.
    """
    if isinstance(values, Unreadable):
        return Merged(base, unread=_ALL_RULES)
    try:
        is_too_long = len(json.dumps(values, default=str)) > MAX_CHARS
    except (ValueError, RecursionError):  # a number of too many digits, or too many levels
        is_too_long = True
    if is_too_long:
        problem = f"{source}: all its settings are ignored, because they are too long."
        return Merged(base, (problem,), _ALL_RULES)
    if values is None or values == []:
        return Merged(base)
    if not isinstance(values, Mapping):
        return Merged(base, (f"{source}: {_no_table('the settings', values)}",), _ALL_RULES)
    return _overlaid(base, _by_key(values), source)


def _overlaid(base: Settings, values: Mapping[str, object], source: str) -> Merged:
    known = {setting.key: setting for setting in all_settings()}
    settings, problems, unread, unknown = base, list[str](), set[str](), list[str]()
    for key, value in values.items():
        problem = ""
        if key in _GROUPS:
            problem = _no_table(key, value) if value != [] else ""
        elif (setting := known.get(key)) is None:
            unknown.append(key)
        else:
            try:
                settings = setting.replaced_in(settings, setting.parse(value))
            except ValidationError:
                current = _shown(setting.of(base))
                problem = f"{key} must be {setting.expected}, not {_shown(value)}. Slipstream uses {current}."
        if problem:
            problems.append(f"{source}: {problem}")
            unread |= {rule for rule in _RULES if rule == key or rule.startswith(f"{key}.")}
    if unknown:
        problems.append(f"{source}: {_unknown(unknown, known)}")
    return Merged(settings, summed_up(problems, source), frozenset(unread), frozenset(values))


def _by_key(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the values by dotted key ("index.enabled"), as some editors send them already."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key in _GROUPS and isinstance(value, Mapping):
            found |= {f"{key}.{name}": each for name, each in value.items()}
        else:
            found[str(key)] = value
    is_ours = {key: key.partition(".")[0] not in EDITORGROUPS for key in found}
    return {key: value for key, value in found.items() if value is not None and is_ours[key]}


def _no_table(name: str, value: object) -> str:
    return f"{name} must be a table of settings, not {_shown(value)}. It is ignored."


def _unknown(keys: Sequence[str], known: Collection[str]) -> str:
    """Return a sentence about unknown keys; it names a few."""
    if len(keys) > 1:
        more = f" and {len(keys) - _MAX_NAMED} more" if len(keys) > _MAX_NAMED else ""
        return f"there are no settings {', '.join(map(_cut, keys[:_MAX_NAMED]))}{more}."
    close = difflib.get_close_matches(keys[0], known, n=1) if len(keys[0]) <= _MAX_KEY_CHARS else []
    return f"there is no setting {_cut(keys[0])}.{f' Did you mean {close[0]}?' if close else ''}"


def summed_up(problems: Sequence[str], source: str) -> tuple[str, ...]:
    """Return at most `_MAX_PROBLEMS` sentences."""
    if len(problems) <= _MAX_PROBLEMS:
        return tuple(problems)
    num_more = len(problems) - _MAX_PROBLEMS + 1
    return (*problems[: _MAX_PROBLEMS - 1], f"{source}: {num_more} more values are not valid.")


def _shown(value: object) -> str:
    """Return a value as JSON, cut to the length of a message."""
    plain = int(value) if isinstance(value, float) and value.is_integer() else value
    return _cut(json.dumps(plain, default=str))


def _cut(text: str) -> str:
    """Return a text in visible characters, cut to the length of a message."""
    plain = text if text.isascii() and text.isprintable() else json.dumps(text)
    return plain if len(plain) <= 60 else f"{plain[:57]}..."


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
        values = tomllib.loads(data.decode("utf-8-sig"))
        json.dumps(values, default=str)  # raises for values that are nested too deep, or have too many digits
        return FoundSettings(values)
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
