"""The temporary folder of a replay: removed with it, or by a later one if the process was killed."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lsp_server.sharing.system import try_lock

PREFIX = "slipstream-replay-"
LOCK = ".lock"
MIN_AGE_S = 60.0  # a younger folder may be one whose owner has not locked it yet


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder that is removed at the end of the block. Folders of killed processes are removed first."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = _locked(folder)
    for left in folder.parent.glob(f"{PREFIX}*"):
        _remove_left(left)
    try:
        yield folder
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def _locked(folder: Path) -> int:
    """Lock a folder for this process until the result is closed. Raises OSError if another process has it."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        try_lock(lock)
    except OSError:
        os.close(lock)
        raise
    return lock


def _remove_left(folder: Path) -> None:
    """Remove a folder that no process uses, if it is this user's."""
    with suppress(OSError):
        status = folder.lstat()
        is_ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if is_ours and not folder.is_symlink() and time.time() - status.st_mtime > MIN_AGE_S:
            os.close(_locked(folder))
            shutil.rmtree(folder, ignore_errors=True)
