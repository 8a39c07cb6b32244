"""The host's door: the socket that it listens on, and the lock that lets one process alone be the host.

Owns both, knows them by their inodes, makes anew what was cleaned away, and removes nothing of another host.
Must not know what is said over the socket.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path
from typing import Literal

from lsp_server.sharing.address import HostAddress, make_private
from lsp_server.sharing.admission import listen
from lsp_server.sharing.endpoint import is_listening
from lsp_server.sharing.system import try_lock

# An old host lets go of its lock within moments of closing its socket.
CLAIM_S = 5.0
STEP_S = 0.02
PROBE_S = 1.0

Inode = tuple[int, int]

# `lost` says that another process is the host now, or that the folder is not private any more.
DoorState = Literal["ours", "renewed", "lost"]


class Door:
    """The host's listening socket and its lock. Held by one process at a time."""

    def __init__(self, address: HostAddress, listener: socket.socket, lock: int) -> None:
        self.listener = listener
        self._address = address
        self._lock = lock
        self._listens_at = _file_at(address.socket_path)

    def close(self) -> None:
        """Let nobody in any more; another process may be the host from now on."""
        if self._lock >= 0:
            # In this order: who holds the lock knows that no other host makes or removes a socket.
            if self._has_lock() and self._has_socket():
                Path(self._address.socket_path).unlink(missing_ok=True)
            self.listener.close()
            os.close(self._lock)
            self._lock = -1

    def renew(self) -> DoorState:
        """Make what was cleaned away again; `listener` is another one then. Raises OSError.

        Who waits at the old listener is still to be let in: the caller closes it.
        """
        if self._has_lock() and self._has_socket():
            return "ours"
        if make_private(self._address.folder) or not (self._has_lock() or self._lock_again()):
            return "lost"
        if self._has_socket():
            return "ours"
        self.listener = listen(self._address)
        self._listens_at = _file_at(self._address.socket_path)
        return "renewed"

    def _has_lock(self) -> bool:
        """Whether the lock that we hold is the one that others would try to take."""
        return _inode_at(self._address.lock_path) == _inode_of(self._lock)

    def _has_socket(self) -> bool:
        """Whether the file by which others find us is the one that we made."""
        return _file_at(self._address.socket_path) == self._listens_at

    def _lock_again(self) -> bool:
        """Take a new lock in place of one that was cleaned away; False where another process has it."""
        lock = os.open(self._address.lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try_lock(lock)
        except OSError:
            os.close(lock)
            return False
        os.close(self._lock)
        self._lock = lock
        return self._has_lock()


def open_door(address: HostAddress) -> Door | None:
    """Become the host; None when another process is. Raises OSError."""
    if (lock := _take(address)) is None:
        return None
    try:
        # The lock is ours, so nobody listens on what lies there.
        return Door(address, listen(address), lock)
    except OSError:
        os.close(lock)
        raise


def _take(address: HostAddress) -> int | None:
    """The lock, once it is ours; waits a little for a host that is about to end."""
    until = time.monotonic() + CLAIM_S
    while True:
        lock = os.open(address.lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        with contextlib.suppress(BlockingIOError, PermissionError):  # each system has its own
            try_lock(lock)
            # It may have been removed since it was opened: others would lock another file.
            if _inode_at(address.lock_path) == _inode_of(lock):
                return lock
        os.close(lock)
        if is_listening(address.socket_path, PROBE_S) or time.monotonic() > until:
            return None
        time.sleep(STEP_S)


def _inode_at(path: str) -> Inode | None:
    """Which file a path names; None where there is none."""
    try:
        facts = Path(path).lstat()
    except FileNotFoundError:
        return None
    return facts.st_dev, facts.st_ino


def _file_at(path: str) -> tuple[int, ...] | None:
    """The same of a file that nobody writes twice: another one may get the number of one that is gone."""
    try:
        facts = Path(path).lstat()
    except FileNotFoundError:
        return None
    return facts.st_dev, facts.st_ino, facts.st_mtime_ns


def _inode_of(descriptor: int) -> Inode:
    facts = os.fstat(descriptor)
    return facts.st_dev, facts.st_ino
