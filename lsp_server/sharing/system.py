"""Differences between systems: users, locks on files, and processes that outlive others."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

if sys.platform == "win32":
    import msvcrt

    HAS_UNIX_SOCKETS: Final = False  # Python does not have them on Windows

    # A process with these flags survives the end of the editor's job or console.
    OUTLIVING: Final[dict[str, Any]] = {
        "creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
    }

    def user_id() -> int | None:
        """None: files say by other means whose they are, and a profile's folder is its user's alone."""
        return None

    def try_lock(descriptor: int) -> None:
        """Lock an open file for this process until it is closed. Raises OSError if it is locked already."""
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl
    import os

    HAS_UNIX_SOCKETS: Final = True
    OUTLIVING: Final[dict[str, Any]] = {"start_new_session": True}

    def user_id() -> int | None:
        """The number of the user; None on systems whose files have none."""
        return os.getuid()

    def try_lock(descriptor: int) -> None:
        """Lock an open file for this process until it is closed. Raises OSError if it is locked already."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def on_terminate(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Let the loop call `callback` when this process is asked to end."""
    try:
        loop.add_signal_handler(signal.SIGTERM, callback)
    except NotImplementedError:  # Windows: the handler runs between any two steps of the interpreter
        signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(callback))


def uid_of_peer(connection: socket.socket) -> int | None:
    """Return the user at the other end; None if the system does not report it. Raises OSError."""
    if sys.platform == "linux":
        size = struct.calcsize("3i")
        _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        return int(uid)
    if sys.platform == "darwin":
        level, local_peercred = 0, 1  # <sys/un.h>: a `struct xucred` of version, user, groups
        _, uid = struct.unpack_from("2I", connection.getsockopt(level, local_peercred, 76))
        return int(uid)
    return None
