"""The host's side of `endpoint`: listens on a socket or a port, and lets in nobody but its own user.

Must not know what is said afterwards.
"""

from __future__ import annotations

import asyncio
import functools
import hmac
import json
import os
import socket
import sys
from pathlib import Path

from lsp_server.sharing.address import HostAddress
from lsp_server.sharing.endpoint import LOOPBACK, NUM_NONCE_BYTES, NUM_PROOF_BYTES, proof_of
from lsp_server.sharing.system import user_id
from lsp_server.sharing.wire import uid_of_peer

BACKLOG = 64


def listen(address: HostAddress) -> socket.socket:
    """A listening socket at the address. Nobody else may listen there. Raises OSError."""
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
        told = {"port": listener.getsockname()[1], "secret": _own_secret().hex()}
        number = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "w", encoding="ascii") as file:
            json.dump(told, file)
        unfinished.replace(path)
    except OSError:
        listener.close()
        unfinished.unlink(missing_ok=True)
        raise
    return listener


async def is_ours(connection: socket.socket) -> bool:
    """Whether who came to this host, on a connection that does not block, is this user. Raises OSError."""
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
    """So many bytes, or fewer where the other side goes before. Raises OSError."""
    loop, found = asyncio.get_running_loop(), b""
    while len(found) < num_bytes and (more := await loop.sock_recv(connection, num_bytes - len(found))):
        found += more
    return found


@functools.cache
def _own_secret() -> bytes:
    """What this process' windows have to know, for as long as it runs."""
    return os.urandom(NUM_PROOF_BYTES)
