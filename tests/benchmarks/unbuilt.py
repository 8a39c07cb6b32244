"""A build backend that builds nothing, in place of those that source archives name: so pip only fetches them.

pip imports a copy of this file. It reports the archive's PKG-INFO, and runs no line of the archive.
"""

from __future__ import annotations

import shutil
import sys
from email.parser import HeaderParser
from pathlib import Path

__legacy__ = sys.modules[__name__]  # the name of setuptools' backend for an archive without one


def prepare_metadata_for_build_wheel(metadata_directory: str, _settings: object = None) -> str:
    """The name of a folder in `metadata_directory` with the metadata of the archive in the current folder."""
    about = HeaderParser().parsestr(Path("PKG-INFO").read_text(encoding="utf-8"))
    name = about["Name"].replace("-", "_").replace(".", "_")
    folder = Path(metadata_directory) / f"{name}-{about['Version']}.dist-info"
    folder.mkdir()
    shutil.copyfile("PKG-INFO", folder / "METADATA")
    return folder.name


def build_wheel(*_arguments: object) -> str:
    """Nothing is built here."""
    raise NotImplementedError
