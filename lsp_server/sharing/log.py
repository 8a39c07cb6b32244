"""The host's log file: its path, its size, and the window of each line."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import platformdirs

from lsp_server.sharing.system import make_private_folder

NAME = "host.log"
LINE = "%(asctime)s %(levelname)s %(name)s%(window)s: %(message)s"

# A starting host renames a longer log; a running host begins a new one at the second size.
MAX_KEPT_BYTES = 1_000_000
MAX_BYTES = 8_000_000

# The number of the window that is being served; 0 if none is.
WINDOW_NUMBER: ContextVar[int] = ContextVar("window", default=0)


def log_path() -> Path:
    """Return the path of the log of this user's hosts."""
    return platformdirs.user_log_path("slipstream", appauthor=False) / NAME


def open_log() -> int:
    """Open the log for appending. If that fails, returns the null device, so that the host still starts."""
    try:
        path = log_path()
        make_private_folder(path.parent)
        if path.exists() and path.stat().st_size > MAX_KEPT_BYTES:
            with contextlib.suppress(PermissionError):  # Windows does not move what another host still writes
                path.replace(path.with_suffix(".old.log"))
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return subprocess.DEVNULL


class HostLog(logging.StreamHandler[Any]):
    """Writes to standard error, which is the log's file, and names the window."""

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        number = WINDOW_NUMBER.get()
        record.window = f" [{number}]" if number else ""
        if os.fstat(2).st_size > MAX_BYTES:
            os.ftruncate(2, 0)
        super().emit(record)
