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

# An old host lets go of its lock within moments of closing its socket.
CLAIM_S = 5.0
STEP_S = 0.02
BACKLOG = 64

Inode = tuple[int, int]

# `lost` says that another process is the host now.
DoorState = Literal["ours", "renewed", "lost"]


class Door:
    """The host's listening socket and its lock. Held by one process at a time."""

    def __init__(self, address: HostAddress, listener: socket.socket, lock: int) -> None:
        self.listener = listener
        self._address = address
        self._lock = lock
        self._socket_inode = _inode_at(address.socket_path)

    def close(self) -> None:
        """Let nobody in any more; another process may be the host from now on."""
        if self._lock >= 0:
            # In this order: who holds the lock knows that no other host makes or removes a socket.
            if self._has_lock() and _inode_at(self._address.socket_path) == self._socket_inode:
                Path(self._address.socket_path).unlink(missing_ok=True)
            self.listener.close()
            os.close(self._lock)
            self._lock = -1

    def renew(self) -> DoorState:
        """Make what was cleaned away again; `listener` is another one then. Raises OSError.

        Who waits at the old listener is still to be let in: the caller closes it.
        """
        if not self._has_lock() and not self._lock_again():
            return "lost"
        if _inode_at(self._address.socket_path) == self._socket_inode:
            return "ours"
        self.listener = _listen(self._address)
        self._socket_inode = _inode_at(self._address.socket_path)
        return "renewed"

    def _has_lock(self) -> bool:
        """Whether the lock that we hold is the one that others would try to take."""
        return _inode_at(self._address.lock_path) == _inode_of(self._lock)

    def _lock_again(self) -> bool:
        """Take a new lock in place of one that was cleaned away; False where another process has it."""
        import fcntl  # noqa: PLC0415 - not on every system

        make_private(self._address.folder)
        lock = os.open(self._address.lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        return Door(address, _listen(address), lock)
    except OSError:
        os.close(lock)
        raise


def _listen(address: HostAddress) -> socket.socket:
    """A socket at the address. The lock is ours, so nobody listens on what lies there."""
    Path(address.socket_path).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(address.socket_path)
        Path(address.socket_path).chmod(0o600)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _take(address: HostAddress) -> int | None:
    """The lock, once it is ours; waits a little for a host that is about to end."""
    import fcntl  # noqa: PLC0415 - not on every system

    until = time.monotonic() + CLAIM_S
    while True:
        lock = os.open(address.lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It may have been removed since it was opened: others would lock another file.
            if _inode_at(address.lock_path) == _inode_of(lock):
                return lock
        os.close(lock)
        if _is_listening(address) or time.monotonic() > until:
            return None
        time.sleep(STEP_S)


def _is_listening(address: HostAddress) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(address.socket_path)
        except BlockingIOError:
            return True  # so many wait at it that there is no room for more
        except OSError:
            return False
        return True


def _inode_at(path: str) -> Inode | None:
    """Which file a path names; None where there is none."""
    try:
        facts = Path(path).lstat()
    except FileNotFoundError:
        return None
    return facts.st_dev, facts.st_ino


def _inode_of(descriptor: int) -> Inode:
    facts = os.fstat(descriptor)
    return facts.st_dev, facts.st_ino
