"""The layers of settings: those of the server, narrowed by each folder's own file. Reads no file.

A repository's own settings can only switch features off, exclude files and lower limits. The table of
settings defines which settings a repository may change, and how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from lsp_server.workspace.settings import Settings, all_settings
from lsp_server.workspace.settings_file import REPOSITORY_FILE
from lsp_server.workspace.settings_reading import Merged, Reader, excess, merge, nested, summed_up
from lsp_server.workspace.settings_table import Narrowing

Layer = Literal["config.toml", "initializationOptions", "the editor's settings"]

# Later layers win.
LAYERS: tuple[Layer, ...] = ("config.toml", "initializationOptions", "the editor's settings")


class Configuration:
    """Settings from several sources. Each change returns a sentence for each invalid value."""

    def __init__(self) -> None:
        self._layers: dict[Layer, object] = {}
        self._repositories: dict[Path, object] = {}
        self._narrowed: dict[tuple[Path, ...], Settings] = {}
        self.settings = Settings()

    def set_layer(self, layer: Layer, values: object) -> tuple[str, ...]:
        """Replace the values of one layer."""
        self._layers[layer] = values
        settings = Settings()
        problems: tuple[str, ...] = ()
        for name in LAYERS:
            merged = merge(settings, self._layers.get(name), name)
            settings = merged.settings
            if name == layer:
                problems = merged.problems
        self.settings = settings
        self._narrowed.clear()
        return problems

    def set_repository(self, folder: Path, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Replace the values of a folder's own settings file."""
        if self._repositories.get(folder) != values:
            self._repositories[folder] = values
            self._narrowed.clear()
        return self._narrow(self.settings, folder).problems

    def drop_repository(self, folder: Path) -> None:
        """Drop the values of a folder's own settings file."""
        if self._repositories.pop(folder, None) is not None:
            self._narrowed.clear()

    def of(self, *folders: Path) -> Settings:
        """Return the settings narrowed by the files of all these folders; without one, those outside of
        folders.
        """
        known = tuple(folder for folder in folders if folder in self._repositories)
        if not known:
            return self.settings
        if known not in self._narrowed:
            settings = self.settings
            for folder in known:
                settings = self._narrow(settings, folder).settings
            self._narrowed[known] = settings
        return self._narrowed[known]

    def _narrow(self, settings: Settings, folder: Path) -> Merged:
        return narrow(settings, self._repositories[folder], str(folder / REPOSITORY_FILE))


def narrow(base: Settings, values: object, source: str) -> Merged:
    """Return `base` narrowed by a repository's `values`."""
    if reason := excess(values):
        return Merged(base, (f"{source}: all its settings are ignored, because {reason}.",))
    reader = Reader(source)
    wanted = reader.overlay(base, values)
    problems = reader.all_problems()
    given = _given_keys(values)
    changes: dict[str, dict[str, Any]] = {"": {}, "index": {}}
    refused = []
    for setting in all_settings():
        if setting.key not in given:
            continue
        if (rule := setting.about.narrow) is None:
            refused.append(setting.key)
            continue
        read = attrgetter(setting.attribute)
        group, _, name = setting.attribute.rpartition(".")
        changes[group][name] = _narrowed(rule, read(base), read(wanted))
    if refused:
        problems.append(
            f"{source}: a repository may not set {', '.join(refused)}."
            " It may only switch features off, exclude files and lower limits."
        )
    if "index.exclude" in given and any(map(_takes_back, wanted.index.exclude)):
        problems.append(f"{source}: a repository may not include files again: no pattern may begin with !.")
    index = base.index.model_copy(update=changes["index"])
    return Merged(base.model_copy(update={**changes[""], "index": index}), summed_up(problems, source))


def _given_keys(values: object) -> set[str]:
    given: set[str] = set()
    for key, value in nested(values).items() if isinstance(values, Mapping) else ():
        given |= {key, *(f"{key}.{name}" for name in value)} if isinstance(value, dict) else {key}
    return given


def _narrowed(rule: Narrowing, current: Any, wanted: Any) -> Any:
    if rule in _RULES:
        return _RULES[rule](current, wanted)
    return rule if wanted == rule else current


def _takes_back(pattern: str) -> bool:
    """Return whether a line of a pattern includes files again that an earlier pattern excludes."""
    return any(line.startswith("!") for line in pattern.split("\n"))


def _more_excluded(current: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*current, *(pattern for pattern in wanted if not _takes_back(pattern)))))


def _only_off(current: dict[str, bool], wanted: dict[str, bool]) -> dict[str, bool]:
    off = dict.fromkeys((language for language, enabled in wanted.items() if not enabled), False)
    return {**(dict.fromkeys(current, False) if "*" in off else current), **off}


_RULES: dict[Narrowing, Callable[[Any, Any], Any]] = {
    "lower": min,
    "exclude": _more_excluded,
    "languages": _only_off,
}
