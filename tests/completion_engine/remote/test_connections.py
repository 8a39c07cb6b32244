"""Connections are used again where that is safe, and a name with several addresses is tried in turn."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection

import pytest

from completion_engine.errors import RemoteError, RemoteFault
from completion_engine.remote import connections as module
from completion_engine.remote.answer import Wait
from completion_engine.remote.connections import Connections
from completion_engine.remote.endpoint import Endpoint
from completion_engine.remote.vllm_client import VllmClient
from tests.remote_server import PATIENCE_S, Answering, RemoteServer

ADDRESSES = ["first", "second", "third"]
ENDPOINT = Endpoint("localhost", 1)


class Network:
    """A scripted network: the result of a connection to each address, and the order of attempts."""

    def __init__(self) -> None:
        self.faults: dict[str, RemoteFault] = {}
        self.tried: list[tuple[str, float]] = []
        self.is_open = threading.Event()
        self.is_open.set()
        self.sockets: list[socket.socket] = []

    def open(self, _endpoint: Endpoint, address: str, timeout_s: float) -> HTTPConnection:
        self.tried.append((address, timeout_s))
        assert self.is_open.wait(PATIENCE_S)
        if fault := self.faults.get(address):
            raise RemoteError(fault, address)
        connection = HTTPConnection("localhost", 1)
        connection.sock, other = socket.socketpair()
        self.sockets += [connection.sock, other]
        return connection


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    made = Network()
    monkeypatch.setattr(module, "open_connection", made.open)
    monkeypatch.setattr(module, "addresses_of", lambda _: ADDRESSES)
    yield made
    for opened in made.sockets:
        opened.close()


@pytest.fixture
def tried(network: Network) -> Callable[..., list[str]]:
    """The addresses that one request tries."""

    def take(connections: Connections) -> list[str]:
        network.tried.clear()
        assert connections.take() is not None
        return [address for address, _ in network.tried]

    return take


@pytest.mark.parametrize("fault", ["silent", "unreachable"])
def test_an_address_that_does_not_work_is_tried_last_from_then_on(
    network: Network, tried: Callable[..., list[str]], fault: RemoteFault
) -> None:
    connections = Connections(ENDPOINT)
    network.faults["first"] = fault
    assert tried(connections) == ["first", "second"]
    assert tried(connections) == ["second"]
    network.faults["second"] = fault
    assert tried(connections) == ["second", "third"]


def test_all_addresses_together_take_no_longer_than_one_may(network: Network) -> None:
    network.faults = dict.fromkeys(ADDRESSES, "silent")
    with pytest.raises(RemoteError, match="third"):
        Connections(ENDPOINT).take()
    assert sum(timeout_s for _, timeout_s in network.tried) == pytest.approx(module.CONNECT_S)


def test_an_error_that_another_address_would_not_help_is_raised_at_once(network: Network) -> None:
    network.faults["first"] = "certificate"
    connections = Connections(ENDPOINT)
    with pytest.raises(RemoteError, match="first"):
        connections.take()
    assert [address for address, _ in network.tried] == ["first"]


def test_requests_that_are_left_while_one_connects_open_no_further_connection(network: Network) -> None:
    """The connection that a cancelled request began is the next one's."""
    network.is_open.clear()
    with closing(VllmClient(ENDPOINT)) as servers:
        for _ in range(5):
            servers.request("GET", "/", b"", {}).close()
        network.is_open.set()
        connection = servers._connections.take()
    assert connection is not None
    assert len(network.tried) <= 1 + (servers.num_connections == 2)


def test_an_address_of_a_kind_that_this_machine_lacks_is_left_for_the_next(
    server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As IPv6 where the system has none: no socket can be made for it."""
    place, no_family = ("127.0.0.1", server.port), 99
    monkeypatch.setattr(module, "addresses_of", lambda _: [(no_family, place), (socket.AF_INET, place)])
    with closing(VllmClient(Endpoint("localhost", server.port))) as servers:
        assert servers.models(Wait.seconds(600)) == {"tiny": 512}


@pytest.fixture
def servers(server: RemoteServer) -> Iterator[VllmClient]:
    with closing(VllmClient(Endpoint("localhost", server.port))) as made:
        yield made


def test_whole_answers_come_on_one_connection_and_one_is_ready_beside_it(
    server: RemoteServer, servers: VllmClient
) -> None:
    for _ in range(10):
        servers.models(Wait.seconds(PATIENCE_S))
    assert servers.num_connections <= 2
    assert len({asked.connection for asked in server.asked}) <= 2


def test_the_next_connection_is_open_before_an_answer_is_cut_short(
    server: RemoteServer, servers: VllmClient
) -> None:
    server.always = lambda answering: (answering.head(), answering.stay_silent())
    answer = servers.request("POST", "/v1/completions", b"{}", {})
    assert answer.wait_for_status(Wait.seconds(PATIENCE_S)) == 200
    with servers._connections.changed:
        assert servers._connections.changed.wait_for(lambda: servers.num_connections == 2, PATIENCE_S)
    answer.close()


def test_an_answer_without_a_promise_to_keep_its_connection_takes_it_along(
    server: RemoteServer, servers: VllmClient
) -> None:
    def say_goodbye(answering: Answering) -> None:
        answering.json({}, connection="close")

    server.always = say_goodbye
    for _ in range(2):
        answer = servers.request("POST", "/v1/completions", b"{}", {})
        assert answer.whole(Wait.seconds(PATIENCE_S), 100) == b"{}"
    first, second = server.asked
    assert first.connection is not second.connection


def test_proxies_of_the_environment_are_not_used(
    server: RemoteServer, servers: VllmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert servers.models(Wait.seconds(PATIENCE_S)) == {"tiny": 512}


def test_a_closed_client_keeps_no_connection(servers: VllmClient, server: RemoteServer) -> None:
    answer = servers.request("GET", "/v1/models", b"", {})
    servers.close()
    assert answer.whole(Wait.seconds(PATIENCE_S), 1000)
    assert server.asked[0].was_left.wait(PATIENCE_S)
