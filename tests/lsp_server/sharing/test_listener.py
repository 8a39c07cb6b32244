"""Socket, lock and host know each other: removed files are made again, others' files stay."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_server.sharing import listener as listener_module
from lsp_server.sharing.address import HostAddress
from lsp_server.sharing.host_connection import is_listening
from lsp_server.sharing.listener import HostListener, open_listener
from tests.hosts import own_hosts


@pytest.fixture(params=[False, True], ids=["socket", "loopback"])
def address(request: pytest.FixtureRequest) -> Iterator[HostAddress]:
    with own_hosts() as hosts:
        folder = hosts.folder / "private"
        folder.mkdir(mode=0o700)
        yield HostAddress(folder, "name", is_loopback=request.param)


@pytest.fixture
def listener(address: HostAddress) -> Iterator[HostListener]:
    listener = open_listener(address)
    assert listener is not None
    yield listener
    listener.close()


def is_open(address: HostAddress) -> bool:
    return is_listening(address.socket_path, timeout_s=60)


def lose(address: HostAddress, what: str) -> None:
    """Clean away the named files."""
    if what == "folder":
        shutil.rmtree(address.folder)
    if "socket" in what:
        Path(address.socket_path).unlink()
    if "lock" in what:
        Path(address.lock_path).unlink()
    if "replaced" in what:
        Path(address.socket_path).touch()


@pytest.mark.parametrize("lost", ["socket", "lock", "socket and lock", "folder", "socket, replaced"])
def test_what_is_cleaned_away_is_made_again_and_there_is_one_host(
    address: HostAddress, listener: HostListener, lost: str
) -> None:
    old = listener.socket
    lose(address, lost)
    assert listener.renew() == ("ours" if lost == "lock" else "renewed")
    assert is_open(address)
    assert open_listener(address) is None
    assert listener.renew() == "ours"
    listener.close()
    old.close()
    assert not Path(address.socket_path).exists()


def test_a_host_whose_place_is_taken_removes_nothing_of_the_new_one(
    address: HostAddress, listener: HostListener
) -> None:
    shutil.rmtree(address.folder)
    address.folder.mkdir(mode=0o700)
    new = open_listener(address)
    assert new is not None
    assert listener.renew() == "lost"
    listener.close()
    assert is_open(address)
    assert new.renew() == "ours"
    new.close()


@pytest.mark.parametrize("lost", ["socket", "lock", "folder"])
def test_nothing_is_made_in_a_folder_that_others_may_enter(
    address: HostAddress, listener: HostListener, lost: str
) -> None:
    lose(address, lost)
    address.folder.mkdir(exist_ok=True)
    address.folder.chmod(0o777)
    before = {*address.folder.iterdir()}
    assert listener.renew() == "lost"
    assert {*address.folder.iterdir()} == before


def test_a_lock_that_was_removed_while_it_was_opened_is_not_taken(
    address: HostAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    flock, removals = fcntl.flock, [address.lock_path]

    def remove_first(lock: int, how: int) -> None:
        if removals:
            Path(removals.pop()).unlink()
        flock(lock, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    listener = open_listener(address)
    assert listener is not None
    assert listener.renew() == "ours"
    assert open_listener(address) is None
    listener.close()


@pytest.mark.parametrize("target", ["elsewhere", "nowhere/lock"])
def test_a_link_in_place_of_the_lock_costs_no_time(address: HostAddress, target: str) -> None:
    Path(address.lock_path).symlink_to(target)
    begin = time.monotonic()
    listener = open_listener(address)
    assert listener is not None
    assert time.monotonic() - begin < listener_module.CLAIM_S
    assert listener.renew() == "ours"
    listener.close()
    assert {path.name for path in address.folder.iterdir()} == {"name.lock"}


def test_a_host_at_which_no_more_can_wait_is_a_host(
    address: HostAddress, listener: HostListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    if address.is_loopback:
        pytest.skip("the system answers for a port by itself")
    listener.socket.listen(0)
    waiting = []
    for _ in range(9):
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        waiting.append(connection)
        try:
            connection.connect(address.socket_path)
        except BlockingIOError:
            break
    monkeypatch.setattr(listener_module, "CLAIM_S", 60.0)  # it must not come to that
    assert open_listener(address) is None
    for connection in waiting:
        connection.close()
