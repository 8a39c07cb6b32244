"""A temporary folder, and its removal whatever ends the program.

`python -m lsp_server.commands.temporary_folder FOLDER` removes a folder when the process that started it
ends. Its standard input ends then, also when that process was killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lsp_server.sharing.system import try_lock

PREFIX = "slipstream-replay-"
LOCK = ".lock"
MIN_AGE_S = 60.0  # a younger folder may be one whose owner has not locked it yet
_MAX_WAIT_S = 10.0


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder that is removed at its end, or by a watching process if this one is killed.

    Those of killed processes whose watching process was killed too are removed first.
    """
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = _locked(folder)
    for left in folder.parent.glob(f"{PREFIX}*"):
        _remove_left(left)
    command = [sys.executable, "-P", "-m", "lsp_server.commands.temporary_folder", str(folder)]
    # In a session of its own, a Ctrl+C in the terminal does not reach it.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, cwd=folder.parent, start_new_session=True
    ) as watcher:
        try:
            yield folder
        finally:
            os.close(lock)
            shutil.rmtree(folder, ignore_errors=True)
            if watcher.stdin is not None:
                watcher.stdin.close()


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


def main(folder: Path) -> None:
    """Wait for the end of standard input, then remove `folder`.

    A server that still writes into the folder gets some time to end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    deadline = time.monotonic() + _MAX_WAIT_S
    while folder.is_dir() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
