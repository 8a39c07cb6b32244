"""Socket, lock and host know each other: what is cleaned away comes again, others' files stay."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_server.sharing import door as door_module
from lsp_server.sharing.address import HostAddress
from lsp_server.sharing.door import Door, open_door
from lsp_server.sharing.endpoint import is_listening
from tests.hosts import own_hosts


@pytest.fixture(params=[False, True], ids=["socket", "loopback"])
def address(request: pytest.FixtureRequest) -> Iterator[HostAddress]:
    with own_hosts() as hosts:
        folder = hosts.folder / "private"
        folder.mkdir(mode=0o700)
        yield HostAddress(folder, "name", is_loopback=request.param)


@pytest.fixture
def door(address: HostAddress) -> Iterator[Door]:
    door = open_door(address)
    assert door is not None
    yield door
    door.close()


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
    address: HostAddress, door: Door, lost: str
) -> None:
    old = door.listener
    lose(address, lost)
    assert door.renew() == ("ours" if lost == "lock" else "renewed")
    assert is_open(address)
    assert open_door(address) is None
    assert door.renew() == "ours"
    door.close()
    old.close()
    assert not Path(address.socket_path).exists()


def test_a_host_whose_place_is_taken_removes_nothing_of_the_new_one(address: HostAddress, door: Door) -> None:
    shutil.rmtree(address.folder)
    address.folder.mkdir(mode=0o700)
    new = open_door(address)
    assert new is not None
    assert door.renew() == "lost"
    door.close()
    assert is_open(address)
    assert new.renew() == "ours"
    new.close()


@pytest.mark.parametrize("lost", ["socket", "lock", "folder"])
def test_nothing_is_made_in_a_folder_that_others_may_enter(
    address: HostAddress, door: Door, lost: str
) -> None:
    lose(address, lost)
    address.folder.mkdir(exist_ok=True)
    address.folder.chmod(0o777)
    before = {*address.folder.iterdir()}
    assert door.renew() == "lost"
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
    door = open_door(address)
    assert door is not None
    assert door.renew() == "ours"
    assert open_door(address) is None
    door.close()


def test_a_host_at_which_no_more_can_wait_is_a_host(
    address: HostAddress, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    if address.is_loopback:
        pytest.skip("the system answers for a port by itself")
    door.listener.listen(0)
    waiting = []
    for _ in range(9):
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        waiting.append(connection)
        try:
            connection.connect(address.socket_path)
        except BlockingIOError:
            break
    monkeypatch.setattr(door_module, "CLAIM_S", 60.0)  # it must not come to that
    assert open_door(address) is None
    for connection in waiting:
        connection.close()
