"""Reads settings: files in bounded time and memory, values merged over others, with each bad one reported."""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import platformdirs
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_table import rows
from ngram_cache.confined import ConfinedFolder, NoPlainFileError, TooLargeError

# Groups under the same section that belong to the editors' extensions.
EDITORGROUPS = frozenset({"trace", "server", "editor"})

MAX_CHARS = 256 << 10  # the limit for one source, as JSON

# The settings that decide which files are read, and what may leave this machine, by the name of a bad value.
_RULES = {name: {name} for name in ("", "index.enabled", "index.exclude", "languages", "context")}
_RULES["index"] = {"index.enabled", "index.exclude"}

_MAX_NAMED = 3
_MAX_KEY_CHARS = 40
_MAX_PROBLEMS = 5
AnyModel = TypeVar("AnyModel", bound=BaseModel)
REPOSITORY_FILE = ".slipstream.toml"
# The parser's time and memory grow with the square of a dotted key's parts: half a second and 64 MB at most.
MAX_FILE_BYTES = 8 << 10


class Unreadable:
    """The values of a source of settings that exists and cannot be read."""


UNREADABLE = Unreadable()


@dataclass(frozen=True, slots=True)
class Merged:
    """Settings, and a sentence for each invalid value. `unread` are rules whose values could not be read.

    An empty name among them means all rules.
    """

    settings: Settings
    problems: tuple[str, ...] = ()
    unread: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether all rules could be read."""
        return not self.unread


def merge(base: Settings, values: object, source: str) -> Merged:
    """Return `base` with the user's `values` over it, key by key. Bad values are ignored.

    `source` begins each message, as in "config.toml".
    """
    reader = Reader(source)
    settings = reader.read(base, values)
    return Merged(settings, summed_up(reader.all_problems(), source), frozenset(reader.unread))


class Reader:
    """Reads the values of one source key by key, and collects the problems."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.unread: set[str] = set()
        self._problems: list[str] = []
        self._unknown: list[tuple[str, str]] = []

    def all_problems(self) -> list[str]:
        """Return a sentence for each bad value, and one for all unknown keys."""
        if not self._unknown:
            return self._problems
        if len(self._unknown) == 1:
            ((name, suggestion),) = self._unknown
            problem = f"there is no setting {_cut(name)}.{suggestion}"
        else:
            named = ", ".join(_cut(name) for name, _ in self._unknown[:_MAX_NAMED])
            num_more = len(self._unknown) - _MAX_NAMED
            problem = f"there are no settings {named}{f' and {num_more} more' if num_more > 0 else ''}."
        return [*self._problems, f"{self.source}: {problem}"]

    def read(self, base: Settings, values: object) -> Settings:
        """Return `base` with the valid entries of `values` over it, or `base` if they cannot be read."""
        if isinstance(values, Unreadable):
            self.unread.add("")
            return base
        try:
            is_too_long = len(json.dumps(values, default=str)) > MAX_CHARS
        except (ValueError, RecursionError):  # a number of too many digits, or too many levels
            is_too_long = True
        if is_too_long:
            self._problems.append(f"{self.source}: all its settings are ignored, because they are too long.")
            self.unread.add("")
            return base
        return self.overlay(base, values)

    def overlay(self, base: AnyModel, values: object, group: str = "") -> AnyModel:
        """Return `base` with the valid entries of `values` over it.

        An empty list is an empty table: Lua has one value for both.
        """
        if values is None or values == []:
            return base
        if not isinstance(values, Mapping):
            name = group or "the settings"
            self._complain(group, f"{name} must be a table of settings, not {_shown(values)}. It is ignored.")
            return base
        names = {info.alias or name: name for name, info in type(base).model_fields.items()}
        changes: dict[str, Any] = {}
        for key, value in nested(values).items():
            path = f"{group}.{key}" if group else key
            if (name := names.get(key, "")) == "":
                if path in EDITORGROUPS:
                    continue
                suggestion = _suggestion(key, names) if len(self._unknown) < _MAX_NAMED else ""
                self._unknown.append((path, suggestion))
            elif isinstance(current := getattr(base, name), BaseModel):
                changes[name] = self.overlay(current, value, path)
            elif value is not None:
                changes[name] = self._checked(base, name, path, value)
        return base.model_copy(update=changes)

    def _checked(self, base: BaseModel, name: str, path: str, value: object) -> Any:
        """Return `value` in its setting's type, or the value of `base` if it is invalid."""
        current = getattr(base, name)
        if value == [] and isinstance(current, dict):
            value = {}
        try:
            model = type(base).model_validate_json(json.dumps({to_camel(name): value}, default=str))
        except ValidationError:
            wanted = _expected(type(base))[to_camel(name)]
            self._complain(
                path, f"{path} must be {wanted}, not {_shown(value)}. Slipstream uses {_shown(current)}."
            )
            return current
        return getattr(model, name)

    def _complain(self, path: str, problem: str) -> None:
        self.unread |= _RULES.get(path, set())
        self._problems.append(f"{self.source}: {problem}")


def summed_up(problems: Sequence[str], source: str) -> tuple[str, ...]:
    """Return at most `_MAX_PROBLEMS` sentences."""
    if len(problems) <= _MAX_PROBLEMS:
        return tuple(problems)
    num_more = len(problems) - _MAX_PROBLEMS + 1
    return (*problems[: _MAX_PROBLEMS - 1], f"{source}: {num_more} more values are not valid.")


def nested(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return `values` with dotted keys ("index.enabled", as some editors send them) as groups."""
    nested: dict[str, Any] = {}
    for key, value in values.items():
        head, dot, rest = str(key).partition(".")
        if dot and isinstance(group := nested.setdefault(head, {}), dict):
            group[rest] = value
        elif isinstance(value, Mapping) and isinstance(nested.get(head), dict):
            nested[head].update(value)
        else:
            nested[head] = dict(value) if isinstance(value, Mapping) else value
    return nested


@cache
def _expected(model: type[BaseModel]) -> dict[str, str]:
    """Return the values that each setting of a model accepts, in words."""
    return {row.key: row.expected for row in rows(model)}


def _shown(value: object) -> str:
    """Return a value as JSON, cut to the length of a message."""
    plain = int(value) if isinstance(value, float) and value.is_integer() else value
    return _cut(json.dumps(plain, default=str))


def _cut(text: str) -> str:
    """Return a text in visible characters, cut to the length of a message."""
    plain = text if text.isascii() and text.isprintable() else json.dumps(text)
    return plain if len(plain) <= 60 else f"{plain[:57]}..."


def _suggestion(key: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(key, known, n=1) if len(key) <= _MAX_KEY_CHARS else []
    return f" Did you mean {close[0]}?" if close else ""


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
