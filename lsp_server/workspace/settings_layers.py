"""The layers of settings: those of the server, narrowed by each folder's own file. Reads no file.

A repository's own settings can only switch features off, exclude files and lower limits. The table of
settings defines which settings a repository may change, and how.

If rules of a source cannot be read, the last ones that could be read stay in force. Without any, the settings
exclude every file, so that nothing is indexed and nothing leaves this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from lsp_server.workspace.settings import Settings, all_settings
from lsp_server.workspace.settings_reading import (
    REPOSITORY_FILE,
    UNREADABLE,
    Merged,
    Unreadable,
    merge,
    summed_up,
)
from lsp_server.workspace.settings_table import Narrowing
from ngram_cache.repository import RepositoryOptions

Layer = Literal["config.toml", "initializationOptions", "the editor's settings"]

# Later layers win.
LAYERS: tuple[Layer, ...] = ("config.toml", "initializationOptions", "the editor's settings")

_KEPT = "{}: the rules that were read before stay in force until these can be read."
_CLOSED = "{}: until these rules can be read, {} is indexed or sent to servers."


class Configuration:
    """Settings from several sources. Each change returns a sentence for each invalid value."""

    def __init__(self) -> None:
        self._layers: dict[Layer, object] = {}
        self._repositories: dict[Path, Mapping[str, Any] | Unreadable] = {}
        self._narrowed: dict[tuple[Path, ...], Settings] = {}
        self.settings = Settings()

    def set_layer(self, layer: Layer, values: object) -> tuple[str, ...]:
        """Replace the values of one layer, unless their rules cannot be read and those before could."""
        before, self._layers[layer] = self._layers.get(layer, UNREADABLE), values
        new = self._merge_layers()[layer]
        if new.is_whole:
            return new.problems
        if not merge(Settings(), before, layer).is_whole:
            return (*new.problems, _CLOSED.format(layer, "no file"))
        self._layers[layer] = before
        self._merge_layers()
        return (*new.problems, _KEPT.format(layer))

    def lacks_rules(self, layer: Layer) -> bool:
        """Return whether a layer closes everything, because its rules could never be read."""
        return layer in self._layers and not merge(Settings(), self._layers[layer], layer).is_whole

    def _merge_layers(self) -> dict[Layer, Merged]:
        settings, found, unread = Settings(), dict[Layer, Merged](), frozenset[str]()
        for name in LAYERS:
            found[name] = merge(settings, self._layers.get(name), name)
            settings = found[name].settings
            # A later layer replaces what an earlier one sets.
            unread = unread - found[name].given | found[name].unread
        self.settings = _closed(settings) if unread else settings
        self._narrowed.clear()
        return found

    def set_repository(self, folder: Path, values: Mapping[str, Any] | Unreadable) -> tuple[str, ...]:
        """Replace the values of a folder's own file, unless they cannot be read and those before could."""
        source = str(folder / REPOSITORY_FILE)
        new, before = narrow(self.settings, values, source), self._repositories.get(folder, UNREADABLE)
        if not new.is_whole and narrow(self.settings, before, source).is_whole:
            return (*new.problems, _KEPT.format(source))
        if self._repositories.get(folder) != values:
            self._repositories[folder] = values
            self._narrowed.clear()
        return (
            new.problems if new.is_whole else (*new.problems, _CLOSED.format(source, f"no file of {folder}"))
        )

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
                settings = narrow(settings, self._repositories[folder], "").settings
            self._narrowed[known] = settings
        return self._narrowed[known]

    def index_options(self, folder: Path, around: Sequence[Path] = ()) -> RepositoryOptions | None:
        """Return how a folder is indexed, None if it is not, given the folders around it with own files."""
        settings, own = self.of(folder, *around).index, self.of(folder).index
        if not settings.enabled:
            return None
        return RepositoryOptions(
            max_files=settings.max_files,
            exclude=own.exclude,
            exclude_around=tuple((outer, self.of(outer).index.exclude) for outer in around),
        )


def _closed(settings: Settings) -> Settings:
    """Return settings that exclude every file."""
    changes = {"enabled": False, "exclude": (*settings.index.exclude, "*")}
    return settings.model_copy(update={"index": settings.index.model_copy(update=changes)})


def narrow(base: Settings, values: object, source: str) -> Merged:
    """Return `base` narrowed by a repository's `values`. If they cannot be read, every file is excluded."""
    wanted = merge(base, values, source)
    if not wanted.is_whole:
        return replace(wanted, settings=_closed(base))
    settings, refused, problems = base, list[str](), [*wanted.problems]
    for setting in all_settings():
        if setting.key not in wanted.given:
            continue
        if (rule := setting.about.narrow) is None:
            refused.append(setting.key)
        else:
            value = _narrowed(rule, setting.of(base), setting.of(wanted.settings))
            settings = setting.replaced_in(settings, value)
    if refused:
        problems.append(
            f"{source}: a repository may not set {', '.join(refused)}."
            " It may only switch features off, exclude files and lower limits."
        )
    if any(map(_takes_back, set(wanted.settings.index.exclude) - set(base.index.exclude))):
        problems.append(f"{source}: a repository may not include files again: no pattern may begin with !.")
    return replace(wanted, settings=settings, problems=summed_up(problems, source))


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
