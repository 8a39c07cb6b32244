"""A port of the loopback accepts no client and sends nothing without the host's secret."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lsp_server.sharing import host_connection
from lsp_server.sharing.address import LOOPBACK_VARIABLE, HostAddress, find_address, sockets
from lsp_server.sharing.listener import is_ours, listen
from tests.hosts import own_hosts


@pytest.fixture
def listener() -> Iterator[tuple[HostAddress, socket.socket]]:
    with own_hosts() as hosts:
        address = HostAddress(hosts.folder, "name", is_loopback=True)
        with listen(address) as listening:
            yield address, listening


def told(address: HostAddress) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(address.socket_path).read_text())
    return found


def admitted(listener: socket.socket) -> bool:
    """Whether the next one that comes is let in."""

    async def receive() -> bool:
        listener.setblocking(False)
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
        with connection:
            return await is_ours(connection)

    return asyncio.run(receive())


def visited(listener: socket.socket, visit: Callable[[], None]) -> bool:
    visitor = threading.Thread(target=visit)
    visitor.start()
    is_let_in = admitted(listener)
    visitor.join(60)
    return is_let_in


def test_the_file_is_the_users_alone_and_a_window_that_reads_it_is_let_in(
    listener: tuple[HostAddress, socket.socket],
) -> None:
    address, listening = listener
    assert Path(address.socket_path).stat().st_mode & 0o777 == 0o600
    assert visited(listening, lambda: host_connection.connect(address.socket_path, 60).close())


@pytest.mark.parametrize("said", [b"", b"slipstream window 1\n", b"x" * 64, b"\0" * 1000])
def test_who_knows_no_secret_is_not_let_in(listener: tuple[HostAddress, socket.socket], said: bytes) -> None:
    address, listening = listener

    def visit() -> None:
        stranger = socket.create_connection(("127.0.0.1", told(address)["port"]), 60)
        with stranger, contextlib.suppress(OSError):  # a client that sent too much is cut off
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)
            stranger.recv(1000)

    assert not visited(listening, visit)


def test_an_answer_of_another_conversation_does_not_let_in(
    listener: tuple[HostAddress, socket.socket],
) -> None:
    address, listening = listener
    port, secret = told(address)["port"], bytes.fromhex(told(address)["secret"])
    nonce = b"n" * host_connection.NUM_NONCE_BYTES

    def visit() -> None:
        with socket.create_connection(("127.0.0.1", port), 60) as stranger:
            stranger.sendall(nonce + host_connection.proof_of(secret, b"window", nonce, b"h" * 32))
            with contextlib.suppress(ConnectionError):
                stranger.recv(1000)

    assert not visited(listening, visit)


def test_a_stranger_at_the_port_of_a_host_that_is_gone_hears_nothing(
    listener: tuple[HostAddress, socket.socket],
) -> None:
    address, listening = listener
    heard = []

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            heard.append(connection.recv(1000))
            connection.sendall(os.urandom(64))
            heard.append(connection.recv(1000))

    stranger = threading.Thread(target=answer)
    stranger.start()
    with pytest.raises(ConnectionRefusedError):
        host_connection.connect(address.socket_path, 60)
    stranger.join(60)
    assert [len(words) for words in heard] == [host_connection.NUM_NONCE_BYTES, 0]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"port": 0, "secret": ""}', '{"port": 70000, "secret": "00"}', '{"port": "x"}']
)
def test_a_file_that_names_no_port_is_no_host(tmp_path: Path, text: str) -> None:
    file = tmp_path / "name.port"
    file.write_text(text)
    with pytest.raises(ConnectionRefusedError):
        host_connection.connect(str(file), 60)
    assert not host_connection.is_listening(str(file), 60)


def test_a_port_is_taken_where_it_is_asked_for_and_its_file_may_have_a_long_path() -> None:
    with own_hosts() as hosts:
        runtime = hosts.folder / ("x" * 90)
        runtime.mkdir(mode=0o700)
        environment = {"XDG_RUNTIME_DIR": str(runtime), "TMPDIR": str(hosts.folder), LOOPBACK_VARIABLE: "1"}
        address = find_address(environment)
        assert address.is_loopback
        with listen(address):
            assert sockets(environment) == [address.socket_path]
