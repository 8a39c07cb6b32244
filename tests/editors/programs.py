"""The folders of the real editors that `make editors` set up, and of clients that were fetched by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.parts import ROOT, MissingError, Parts

FOLDER = ROOT / ".editors"
find = Parts(FOLDER, "editors").find

__all__ = ["FOLDER", "ROOT", "MissingError", "client_source", "find"]


def client_source(name: str) -> Path:
    """The source of another project's client, in the folder that `SLIPSTREAM_CLIENTS` names."""
    folder = os.environ.get("SLIPSTREAM_CLIENTS", "")
    if not folder or not (source := Path(folder) / name).is_dir():
        pytest.skip(f"SLIPSTREAM_CLIENTS names no folder with {name}")
    return source
