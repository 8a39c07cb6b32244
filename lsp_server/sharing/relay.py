"""The program that editors start with `serve --shared`: passes bytes to the host and back, and its exit code.

Starts a host if there is none. Does not read the bytes. If anything fails before the first byte, it serves
the window without a host.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping

from lsp_server.sharing import host_connection
from lsp_server.sharing.address import HostAddress, SharingError, find_address, for_host
from lsp_server.sharing.host_connection import WELCOME, WINDOW, BlockReader, read_word
from lsp_server.sharing.system import OUTLIVING, check_home

# A new host answers as soon as the interpreter has loaded the protocol's library, on a busy machine too.
START_S = 40.0
# A running host answers at once, unless it hangs.
ANSWER_S = 20.0
POLL_S = 0.02
# Several hosts may end before they serve: another one runs already, or one was about to end.
MAX_STARTS = 3

# How a process becomes the host of the name that follows; -P keeps the working folder off the module path: it
# may hold anything.
HOST_ARGUMENTS = ("-P", "-m", "lsp_server", "--host")

# Time for a host's last bytes after its editor has gone.
GRACE_S = 10.0
CHUNK_BYTES = 1 << 16


def serve_shared(serve_alone: Callable[[], None]) -> None:
    """Serve this process' editor through the host, or by `serve_alone`. Does not return."""
    check_home(os.environ)
    try:
        connection = connect(os.environ)
    except SharingError as error:
        sys.stderr.write(f"slipstream: this window starts its own engine: {error}.\n")
        sys.stderr.flush()
        serve_alone()
        return
    try:
        code = relay(connection)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    # A thread may wait for the editor forever, and there is nothing to clean up.
    os._exit(code)


def connect(environment: Mapping[str, str]) -> socket.socket:
    """Return a connection to the host, which has accepted this window. Raises SharingError."""
    address = find_address(environment)
    starts: list[subprocess.Popen[bytes]] = []
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        try:
            if (connection := _handshake(address)) is not None:
                return connection
            if not starts or (starts[-1].poll() == 0 and len(starts) < MAX_STARTS):
                starts.append(_start_host(address, environment))
        except BlockingIOError:
            # The host's queue is full, but it is alive.
            time.sleep(POLL_S)
            continue
        except OSError as error:
            raise SharingError(f"the shared process cannot be reached: {error}") from error
        if starts[-1].poll():
            raise SharingError("the shared process does not start; its log says why")
        time.sleep(POLL_S)
    raise SharingError("the shared process does not start in time")


def _handshake(address: HostAddress) -> socket.socket | None:
    """Return a connection that the host has answered; None without a host, or if it ends.

    Raises BlockingIOError if its queue is full, SharingError if it is not a host.
    """
    try:
        connection = host_connection.connect(address.socket_path, ANSWER_S)
        with contextlib.ExitStack() as unless_welcome:
            unless_welcome.callback(connection.close)
            connection.sendall(WINDOW)
            if read_word(connection) != WELCOME:
                return None
            connection.settimeout(None)
            unless_welcome.pop_all()
            return connection
    except host_connection.StrangerError as error:
        # Only this user may get the editor's text.
        raise SharingError("the shared process is another user's") from error
    except (FileNotFoundError, ConnectionError):
        return None
    except TimeoutError as error:
        raise SharingError("the shared process does not answer") from error


def _start_host(address: HostAddress, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process that may become the host and outlives this one. Raises OSError."""
    from lsp_server.sharing.supervision import open_log  # noqa: PLC0415 - only to start a host

    log = open_log()
    try:
        return subprocess.Popen(
            [sys.executable, *HOST_ARGUMENTS, address.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            env=for_host(environment),
            **OUTLIVING,
        )
    finally:
        if log != subprocess.DEVNULL:
            os.close(log)


def relay(connection: socket.socket) -> int:
    """Pass bytes between this process' streams and the host until either ends; returns the exit code."""
    threading.Thread(target=_send, args=(connection,), name="to host", daemon=True).start()
    reader = BlockReader(connection)
    for block in reader.blocks():
        try:
            _write(block)
        except OSError:
            return 1
    if not reader.was_told:
        sys.stderr.write(
            "slipstream: the connection to the shared process is lost. The log has the reason.\n"
        )
        sys.stderr.flush()
    return reader.exit_code


def _send(connection: socket.socket) -> None:
    """Pass on the editor's bytes. At their end, give the host some time to end too."""
    try:
        while data := os.read(0, CHUNK_BYTES):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the editor or the host has gone, which ends the connection
    time.sleep(GRACE_S)
    os._exit(1)


def _write(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]
