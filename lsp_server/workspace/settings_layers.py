"""The layers of settings: those of the server, narrowed by each folder's own file. Reads no file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from lsp_server.workspace.narrowing import narrow
from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_file import REPOSITORY_FILE
from lsp_server.workspace.settings_reading import Merged, merge

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
