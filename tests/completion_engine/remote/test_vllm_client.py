"""A name with several addresses; some lead nowhere."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from h2.connection import H2Connection

from completion_engine.errors import RemoteError, RemoteFault
from completion_engine.remote import vllm_client as module
from completion_engine.remote.endpoint import Endpoint
from completion_engine.remote.socket_transport import Wait
from completion_engine.remote.vllm_client import VllmClient
from completion_engine.request import CancelledError
from tests.completion_engine.remote.wire import Wire
from tests.remote_server import RemoteServer

PLACES = ["first", "second", "third"]


def models(server: H2Connection, number: int) -> None:
    server.send_headers(number, [(":status", "200")])
    server.send_data(number, b'{"data": [{"id": "tiny", "max_model_len": 512}]}', end_stream=True)


class Places:
    """A scripted network: the result of a connection to each address, and the order of attempts."""

    def __init__(self) -> None:
        self.faults: dict[str, RemoteFault | None] = {}
        self.tried: list[tuple[str, float]] = []
        self.opened: list[Opening] = []
        self.is_cancelled = self.is_late = self.is_deaf = False

    def transport(self, _endpoint: Endpoint, address: str, _waker: object) -> Opening:
        return Opening(self, address)


class Opening(Wire):
    """A transport that `places` decides about."""

    def __init__(self, places: Places, address: str) -> None:
        super().__init__(models)
        self.is_open = False
        self._places, self._address = places, address

    @property
    def is_late(self) -> bool:
        return self._places.is_late

    def open(self, wait: Wait) -> None:
        self._places.tried.append((self._address, wait.until_s))
        if self._places.is_cancelled:
            raise CancelledError
        if fault := self._places.faults.get(self._address):
            raise RemoteError(fault, self._address)
        self.is_open = True
        self._places.opened.append(self)

    def send(self, data: bytes, wait: Wait) -> None:
        if self._places.is_deaf:
            raise RemoteError("unreachable", self._address)
        super().send(data, wait)


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Places:
    made = Places()
    monkeypatch.setattr(module, "Transport", made.transport)
    monkeypatch.setattr(module, "addresses_of", lambda _: PLACES)
    return made


@pytest.fixture
def servers() -> Iterator[VllmClient]:
    made = VllmClient(Endpoint("localhost", 1))
    yield made
    made.close()


@pytest.fixture
def tried(places: Places, servers: VllmClient) -> Callable[[], list[str]]:
    """The addresses that one question tries, on a new connection."""

    def ask() -> list[str]:
        places.tried.clear()
        servers.drop()
        assert servers.models(Wait.seconds(600)) == {"tiny": 512}
        return [address for address, _ in places.tried]

    return ask


@pytest.mark.parametrize("fault", ["silent", "unreachable"])
def test_where_nobody_answers_the_next_address_is_tried_and_kept(
    places: Places, tried: Callable[[], list[str]], fault: RemoteFault
) -> None:
    places.faults["first"] = fault
    assert tried() == ["first", "second"]
    assert tried() == ["second"]
    places.faults["second"] = fault
    assert tried() == ["second", "third"]


def test_time_is_left_for_every_address(places: Places, servers: VllmClient) -> None:
    places.faults = dict.fromkeys(PLACES, "silent")
    wait = Wait.seconds(600)
    with pytest.raises(RemoteError, match="third"):
        servers.models(wait)
    ends = [until_s for _, until_s in places.tried]
    assert ends == sorted(set(ends))
    assert ends[-1] == wait.until_s


def test_time_that_is_up_is_spent_on_no_further_address(places: Places, servers: VllmClient) -> None:
    places.faults = dict.fromkeys(PLACES, "silent")
    for place in PLACES:
        with pytest.raises(RemoteError, match=place):
            servers.models(Wait(0.0))
    assert [address for address, _ in places.tried] == PLACES


def test_what_another_address_would_not_help_is_said_at_once(places: Places, servers: VllmClient) -> None:
    places.faults["first"] = "certificate"
    with pytest.raises(RemoteError, match="first"):
        servers.models(Wait.seconds(600))
    assert servers.models(Wait.seconds(600)) == {"tiny": 512}
    assert [address for address, _ in places.tried] == ["first", "second"]


def test_a_connection_that_a_cancellation_left_goes_on_until_it_is_late(
    places: Places, servers: VllmClient
) -> None:
    places.is_cancelled = True
    for is_late in (False, False, True):
        places.is_late = is_late
        with pytest.raises(CancelledError):
            servers.models(Wait.seconds(600))
    assert [address for address, _ in places.tried] == ["first", "first", "second"]


def test_a_connection_on_which_no_word_can_be_said_is_let_go(places: Places, servers: VllmClient) -> None:
    places.is_deaf = True
    with pytest.raises(RemoteError, match="first"):
        servers.models(Wait.seconds(600))
    assert [opening.is_open for opening in places.opened] == [False]
    places.is_deaf = False
    assert servers.models(Wait.seconds(600)) == {"tiny": 512}


def test_an_address_of_a_kind_that_this_machine_lacks_is_left_for_the_next(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As IPv6 where the system has none: no socket can be made for it."""
    place, no_family = ("127.0.0.1", server.port), 99
    monkeypatch.setattr(module, "addresses_of", lambda _: [(no_family, place), (socket.AF_INET, place)])
    with closing(VllmClient(Endpoint("localhost", server.port))) as servers:
        assert servers.models(Wait.seconds(600)) == {"tiny": 512}
