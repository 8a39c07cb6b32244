"""Which folders made a host hang: a small file beside the log. Who did it twice is set aside.

Owns the file. Must not know what is done in a folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

from lsp_server.sharing.log import log_path

# So many hangs set a folder aside, for so long after each.
MAX_HANGS = 2
MEMORY_S = 7 * 24 * 3600.0

MAX_FOLDERS = 100
MAX_FILE_BYTES = 256 * 1024


def record(folder: str) -> None:
    """A host hung at work on `folder`. Raises OSError."""
    hangs = _read()
    times = [*hangs.pop(folder, []), time.time()][-MAX_HANGS:]
    _write({**hangs, folder: times})


def is_set_aside(folder: str) -> bool:
    """Whether hosts hung at this folder so often lately that they leave it alone."""
    now_s = time.time()
    # A clock that was set back must not make a hang last for ever.
    recent = [time_s for time_s in _read().get(folder, []) if abs(now_s - time_s) < MEMORY_S]
    return len(recent) >= MAX_HANGS


def forgive(folder: str) -> None:
    """Let the folder try again. Raises OSError."""
    hangs = _read()
    if hangs.pop(folder, None) is not None:
        _write(hangs)


def _path() -> Path:
    return log_path().with_name("hangs.json")


def _read() -> dict[str, list[float]]:
    with contextlib.suppress(OSError, ValueError, RecursionError), _path().open("rb") as file:
        found = json.loads(file.read(MAX_FILE_BYTES))
        if isinstance(found, dict):
            return {folder: times for folder, times in found.items() if _are_times(times)}
    return {}


def _are_times(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(time_s, float) for time_s in value)


def _write(hangs: dict[str, list[float]]) -> None:
    kept = dict(list(hangs.items())[-MAX_FOLDERS:])
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        new.write_text(json.dumps(kept), encoding="utf-8")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
