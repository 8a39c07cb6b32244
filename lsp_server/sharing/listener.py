"""The host's listener: the socket or port where windows find it, and the lock that makes it the only host.

Identifies both files by their inodes and times, creates them again when they are removed, and removes no
files of another host. Accepts only processes of its own user.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Literal

from lsp_server.sharing.address import HostAddress, make_private
from lsp_server.sharing.host_connection import (
    LOOPBACK,
    NUM_NONCE_BYTES,
    NUM_PROOF_BYTES,
    is_listening,
    proof_of,
)
from lsp_server.sharing.system import try_lock, uid_of_peer, user_id

BACKLOG = 64

# An old host releases its lock soon after it closes its socket.
CLAIM_S = 5.0
STEP_S = 0.02
PROBE_S = 1.0

FileStamp = tuple[int, int, int]

# `lost`: another process is the host now, or the folder is not private any more.
ListenerState = Literal["ours", "renewed", "lost"]


class HostListener:
    """The host's listening socket and its lock. Held by one process at a time."""

    def __init__(self, address: HostAddress, listener: socket.socket, lock: int) -> None:
        self.socket = listener
        self._address = address
        self._lock = lock
        self._listens_at = _file_at(address.socket_path)

    def close(self) -> None:
        """Accept no more clients; another process may be the host from now on."""
        if self._lock >= 0:
            # In this order: while this process holds the lock, no other host makes or removes a socket.
            if self._has_lock() and self._has_socket():
                Path(self._address.socket_path).unlink(missing_ok=True)
            self.socket.close()
            os.close(self._lock)
            self._lock = -1

    def renew(self) -> ListenerState:
        """Create removed files again; `socket` is then a new one. Raises OSError.

        Windows may wait at the old socket: the caller accepts them and closes it.
        """
        if self._has_lock() and self._has_socket():
            return "ours"
        if make_private(self._address.folder) or not (self._has_lock() or self._lock_again()):
            return "lost"
        if self._has_socket():
            return "ours"
        self.socket = listen(self._address)
        self._listens_at = _file_at(self._address.socket_path)
        return "renewed"

    def _has_lock(self) -> bool:
        """Return whether this process's lock file is still at its path."""
        return _file_at(self._address.lock_path) == _identity(os.fstat(self._lock))

    def _has_socket(self) -> bool:
        """Return whether the socket's file is still the one that this process created."""
        return _file_at(self._address.socket_path) == self._listens_at

    def _lock_again(self) -> bool:
        """Take a new lock in place of a removed one; return False if another process has it."""
        lock = _open_lock(self._address.lock_path)
        try:
            try_lock(lock)
        except OSError:
            os.close(lock)
            return False
        os.close(self._lock)
        self._lock = lock
        return self._has_lock()


def open_listener(address: HostAddress) -> HostListener | None:
    """Become the host; None if another process is the host. Raises OSError."""
    if (lock := _take(address)) is None:
        return None
    try:
        # This process holds the lock, so no process listens on the old file.
        return HostListener(address, listen(address), lock)
    except OSError:
        os.close(lock)
        raise


def _take(address: HostAddress) -> int | None:
    """Take the lock; wait a little for a host that is ending."""
    until = time.monotonic() + CLAIM_S
    while True:
        lock = _open_lock(address.lock_path)
        with contextlib.suppress(BlockingIOError, PermissionError):  # systems raise different errors
            try_lock(lock)
            # The file may have been removed since it was opened; then others would lock another file.
            if _file_at(address.lock_path) == _identity(os.fstat(lock)):
                return lock
        os.close(lock)
        if is_listening(address.socket_path, PROBE_S) or time.monotonic() > until:
            return None
        time.sleep(STEP_S)


def _open_lock(path: str) -> int:
    """Open the lock file, made if necessary. A link in its place leads to no lock, so it is removed."""
    if Path(path).is_symlink():
        Path(path).unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _file_at(path: str) -> FileStamp | None:
    """Identify the file at a path; None if there is none."""
    with contextlib.suppress(FileNotFoundError):
        return _identity(Path(path).lstat())
    return None


def _identity(facts: os.stat_result) -> FileStamp:
    """Identify a file that is written only once, because a new file can get the inode of a removed one."""
    return facts.st_dev, facts.st_ino, facts.st_mtime_ns


def listen(address: HostAddress) -> socket.socket:
    """Open a listening socket at the address. No other process may listen there. Raises OSError."""
    path = Path(address.socket_path)
    path.unlink(missing_ok=True)
    if address.is_loopback or sys.platform == "win32":
        return _listen_on_port(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _listen_on_port(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        listener.bind((LOOPBACK, 0))
        listener.listen(BACKLOG)
        stored = {"port": listener.getsockname()[1], "secret": _own_secret().hex()}
        number = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "w", encoding="ascii") as file:
            json.dump(stored, file)
        unfinished.replace(path)
    except OSError:
        listener.close()
        unfinished.unlink(missing_ok=True)
        raise
    return listener


async def is_ours(connection: socket.socket) -> bool:
    """Return whether a non-blocking connection to this host comes from this user. Raises OSError."""
    if connection.family != socket.AF_INET:
        return uid_of_peer(connection) in {None, user_id()}
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    theirs = await receive(connection, NUM_NONCE_BYTES)
    if len(theirs) < NUM_NONCE_BYTES:
        return False
    ours = os.urandom(NUM_NONCE_BYTES)
    answer = ours + proof_of(_own_secret(), b"host", theirs, ours)
    await asyncio.get_running_loop().sock_sendall(connection, answer)
    proof = await receive(connection, NUM_PROOF_BYTES)
    return hmac.compare_digest(proof, proof_of(_own_secret(), b"window", theirs, ours))


async def receive(connection: socket.socket, num_bytes: int) -> bytes:
    """Receive this number of bytes, or fewer if the other side disconnects. Raises OSError."""
    loop, found = asyncio.get_running_loop(), b""
    while len(found) < num_bytes and (more := await loop.sock_recv(connection, num_bytes - len(found))):
        found += more
    return found


@functools.cache
def _own_secret() -> bytes:
    """Return the secret for this process's windows, the same for as long as it runs."""
    return os.urandom(NUM_PROOF_BYTES)
