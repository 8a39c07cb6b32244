"""Tests find no host, file or setting of the user who runs them, who may use Slipstream meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from completion_engine.models.storage import default_root
from lsp_server.sharing.address import find_address, folders
from lsp_server.sharing.supervision import log_path
from lsp_server.workspace.settings_reading import user_file
from lsp_server.workspace.usage_by_day import usage_path
from ngram_cache.snapshot import index_directory
from tests.own_folders import VARIABLE

PLACES: dict[str, Callable[[], list[Path]]] = {
    "hosts": lambda: list(folders(os.environ)),
    "this host": lambda: [find_address(os.environ).folder],
    "log": lambda: [log_path()],
    "settings": lambda: [user_file()],
    "statistics": lambda: [usage_path()],
    "models": lambda: [default_root()],
    "indexes": lambda: [index_directory()],
}


@pytest.mark.parametrize("name", PLACES)
def test_what_a_test_uses_is_the_runs_own(name: str) -> None:
    assert all(path.is_relative_to(os.environ[VARIABLE]) for path in PLACES[name]())
