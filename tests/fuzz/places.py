"""Folders that inputs are written to, one for each kind; they are gone when the process ends."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

# Where there is a disk in memory, writing costs no waiting.
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder of our own in it


@cache
def own_folder(kind: str) -> Path:
    """This kind's folder."""
    place = Path(tempfile.mkdtemp(prefix=f"fuzz-{kind}-", dir=_MEMORY))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place
