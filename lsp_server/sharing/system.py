"""Differences between systems: users, limits, locks on files, and processes that outlive others."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
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

    def limits() -> dict[str, int]:
        """The limits of this process that a shell can set; none on this system."""
        return {}

    def forbid_core_files() -> None:
        """Do nothing: this system writes none by itself."""

else:
    import fcntl
    import resource

    HAS_UNIX_SOCKETS: Final = True
    OUTLIVING: Final[dict[str, Any]] = {"start_new_session": True}

    def user_id() -> int | None:
        """The number of the user; None on systems whose files have none."""
        return os.getuid()

    def try_lock(descriptor: int) -> None:
        """Lock an open file for this process until it is closed. Raises OSError if it is locked already."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def limits() -> dict[str, int]:
        """Return the limits on what this process may use, by name, without those that limit nothing."""
        names = ("RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_CPU")
        found = {name: resource.getrlimit(getattr(resource, name))[0] for name in names}
        return {name: soft for name, soft in found.items() if soft != resource.RLIM_INFINITY}

    def forbid_core_files() -> None:
        """Let no crash of this process or its children write its memory, which holds the user's text."""
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        # Linux passes the memory to a program despite a limit of 0, but not despite a limit of 1 byte.
        soft = 1 if sys.platform == "linux" and hard else 0
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def protect_files() -> None:
    """Let no other user write what this process and its children create, and no crash write their memory."""
    os.umask(os.umask(0) | 0o022)
    forbid_core_files()


def make_private_folder(folder: Path) -> None:
    """Create a folder for this user alone, and missing ones above it; others stay as they are."""
    for missing in [each for each in (*reversed(folder.parents), folder) if not each.exists()]:
        missing.mkdir(mode=0o700, exist_ok=True)


def check_home(environment: Mapping[str, str]) -> None:
    """Exit with a message if there is no place for the user's settings, models and logs."""
    has_places = all(environment.get(f"XDG_{name}_HOME") for name in ("CONFIG", "CACHE", "STATE"))
    if not (has_places or Path(os.path.expanduser("~")).is_absolute()):  # noqa: PTH111 - pathlib's raises
        sys.exit("slipstream: this user has no home folder. Set HOME to the absolute path of a folder.")


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
