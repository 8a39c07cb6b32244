"""The layers of settings: those of the server, narrowed by each folder's own file.

Owns the layers' order. Reads no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from lsp_server.workspace.narrowing import narrow
from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_file import REPOSITORY_FILE
from lsp_server.workspace.settings_reading import merge

Layer = Literal["config.toml", "initializationOptions", "the editor's settings"]

# Later ones win.
LAYERS: tuple[Layer, ...] = ("config.toml", "initializationOptions", "the editor's settings")


class Configuration:
    """Settings from several places. Each change returns what is wrong with the values, as sentences."""

    def __init__(self) -> None:
        self._layers: dict[Layer, object] = {}
        self._repositories: dict[Path, object] = {}
        self._narrowed: dict[Path, Settings] = {}
        self.settings = Settings()

    def set_layer(self, layer: Layer, values: object) -> tuple[str, ...]:
        """Replace one layer's values."""
        self._layers[layer] = values
        settings = Settings()
        problems: tuple[str, ...] = ()
        for name in LAYERS:
            merged = merge(settings, self._layers.get(name), name)
            settings = merged.settings
            if name == layer:
                problems = merged.problems
        self.settings = settings
        for folder in self._repositories:
            self._narrow(folder)
        return problems

    def set_repository(self, folder: Path, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Replace what a folder's own settings file says."""
        self._repositories[folder] = values
        return self._narrow(folder)

    def drop_repository(self, folder: Path) -> None:
        """The folder is no longer of interest."""
        self._repositories.pop(folder, None)
        self._narrowed.pop(folder, None)

    def of(self, folder: Path | None) -> Settings:
        """The settings of a folder, or outside of all folders."""
        return self._narrowed.get(folder, self.settings) if folder else self.settings

    def _narrow(self, folder: Path) -> tuple[str, ...]:
        merged = narrow(self.settings, self._repositories[folder], str(folder / REPOSITORY_FILE))
        self._narrowed[folder] = merged.settings
        return merged.problems
