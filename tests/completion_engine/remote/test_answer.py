"""An answer as it arrives: parts, limits, and a reader that leaves at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from completion_engine.errors import RemoteError
from completion_engine.remote import answer as module
from completion_engine.remote.answer import Answer, Wait
from completion_engine.remote.endpoint import Endpoint
from completion_engine.remote.token_stream import fault_of
from completion_engine.remote.vllm_client import VllmClient
from completion_engine.request import Cancellation, CancelledError
from tests.remote_server import PATIENCE_S, Answering, Fault, RemoteServer

NOW = Wait(0.0)  # what is here already
Begin = Callable[[Fault], Answer]


def patience() -> Wait:
    return Wait.seconds(PATIENCE_S)


@pytest.fixture
def servers(server: RemoteServer) -> Iterator[VllmClient]:
    with closing(VllmClient(Endpoint("localhost", server.port))) as made:
        yield made


@pytest.fixture
def begin(server: RemoteServer, servers: VllmClient) -> Begin:
    """Sends a request that the server answers by `fault`."""

    def send(fault: Fault) -> Answer:
        server.faults.append(fault)
        return servers.request("POST", "/v1/completions", b"{}", {})

    return send


def in_parts(num_parts: int, status: int = 200) -> Fault:
    def send(answering: Answering) -> None:
        answering.head(status)
        for _ in range(num_parts):
            answering.data(b"z")
        answering.data(b"", end=True)

    return send


def arrived(answer: Answer) -> Answer:
    """The answer, once all of it is here."""
    with answer._changed:
        assert answer._changed.wait_for(lambda: answer.has_ended, PATIENCE_S)
    return answer


def test_parts_are_joined(begin: Begin) -> None:
    assert begin(in_parts(500)).whole(patience(), 500) == b"z" * 500


def test_an_answer_that_is_longer_than_allowed_is_refused(begin: Begin) -> None:
    with pytest.raises(RemoteError) as failure:
        begin(in_parts(500)).whole(patience(), 499)
    assert failure.value.kind == "invalid"


def test_parts_that_are_here_are_not_read_beyond_the_time_there_is(begin: Begin) -> None:
    with pytest.raises(RemoteError) as failure:
        arrived(begin(in_parts(500))).whole(NOW, 500)
    assert failure.value.kind == "silent"


def test_a_fault_is_told_without_its_reason_where_that_takes_too_long(begin: Begin) -> None:
    assert fault_of(arrived(begin(in_parts(500, status=500))), "localhost:1", NOW).kind == "unavailable"


def test_a_reader_whose_time_is_up_gets_what_is_here_and_can_go_on(begin: Begin) -> None:
    may_go_on = threading.Event()

    def send(answering: Answering) -> None:
        answering.head()
        answering.data(b"begun")
        assert may_go_on.wait(PATIENCE_S)
        answering.data(b"ended", end=True)

    answer = begin(send)
    assert answer.read(patience()) == b"begun"
    assert answer.read(NOW) is None
    may_go_on.set()
    assert answer.read(patience()) == b"ended"
    assert answer.read(patience()) == b""


def test_headers_may_hold_any_bytes(begin: Begin) -> None:
    answer = begin(lambda answering: (answering.head(x_by="caf\xe9"), answering.data(b"begun", end=True)))
    assert answer.wait_for_status(patience()) == 200
    assert answer.headers["x-by"] == "caf\xe9"
    assert answer.read(patience()) == b"begun"


def test_a_reader_that_cancelled_gets_nothing_that_is_here_already(begin: Begin) -> None:
    cancellation = Cancellation()
    answer = arrived(begin(in_parts(1)))
    cancellation.cancel()
    with pytest.raises(CancelledError):
        answer.read(Wait(0.0, cancellation))


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_cancelled_wait_ends_at_once_and_the_server_is_left(
    begin: Begin, server: RemoteServer, *, has_begun: bool
) -> None:
    """In milliseconds: the thread that reads is woken too, and ends."""

    def send(answering: Answering) -> None:
        if has_begun:
            answering.head()
            answering.data(b"begun")
        answering.stay_silent()

    threads = threading.active_count()
    answer, cancellation = begin(send), Cancellation()
    asked = server.wait_for(1)
    if has_begun:
        assert answer.read(patience()) == b"begun"
    cancelled_s: list[float] = []

    def cancel() -> None:
        cancelled_s.append(time.perf_counter())
        cancellation.cancel()

    timer = threading.Timer(0.05, cancel)
    timer.start()
    with pytest.raises(CancelledError):
        answer.read(Wait(time.perf_counter() + PATIENCE_S, cancellation))
    answer.close()
    assert time.perf_counter() - cancelled_s[0] < PATIENCE_S / 2
    assert asked.was_left.wait(PATIENCE_S)
    timer.join()
    for thread in threading.enumerate():
        if thread.name == "remote-answer":
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    assert threads <= threading.active_count() + 2


def test_an_answer_that_is_finished_but_never_ends_is_left(
    begin: Begin, server: RemoteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TAIL_S", 0.01)

    def send(answering: Answering) -> None:
        answering.head()
        answering.data(b"data: [DONE]\n\n")
        answering.stay_silent()

    answer = begin(send)
    assert answer.read(patience())
    answer.finish()
    assert server.completions[0].was_left.wait(PATIENCE_S)


def test_a_refusal_before_the_whole_request_has_come_is_read(begin: Begin, servers: VllmClient) -> None:
    def refuse(answering: Answering) -> None:
        answering.json({"error": {"type": "TooLarge"}}, 413)
        answering.hang_up()

    answer = begin(refuse)
    assert answer.wait_for_status(patience()) == 413
