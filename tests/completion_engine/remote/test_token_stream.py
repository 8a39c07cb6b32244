"""A whole answer, which may arrive byte by byte."""

from __future__ import annotations

import pytest
from h2.connection import H2Connection

from completion_engine.errors import RemoteError
from completion_engine.remote.socket_transport import Wait
from completion_engine.remote.stream import Stream
from completion_engine.remote.token_stream import fault_of, whole_body
from tests.completion_engine.remote.wire import NOW, Wire


def of_many_parts(num_parts: int) -> Stream:
    """All of it is here, and none is read."""

    def answer(server: H2Connection, number: int) -> None:
        server.send_headers(number, [(":status", "500")])
        for _ in range(num_parts):
            server.send_data(number, b"z")
        server.end_stream(number)

    connection = Wire(answer).connection()
    stream = connection.request("GET", "/", {}, b"", NOW)
    connection.pump(NOW)
    return stream


def test_parts_are_joined() -> None:
    assert whole_body(of_many_parts(500), "localhost:1", Wait.seconds(600), 500) == b"z" * 500


def test_an_answer_that_is_longer_than_allowed_is_refused() -> None:
    with pytest.raises(RemoteError) as failure:
        whole_body(of_many_parts(500), "localhost:1", Wait.seconds(600), 499)
    assert failure.value.kind == "rubbish"


def test_parts_that_are_here_are_not_read_beyond_the_time_there_is() -> None:
    stream = of_many_parts(500)
    with pytest.raises(RemoteError) as failure:
        whole_body(stream, "localhost:1", NOW, 500)
    assert failure.value.kind == "silent"
    assert not stream.chunks


def test_a_fault_is_told_without_its_reason_where_that_takes_too_long() -> None:
    assert fault_of(of_many_parts(500), "localhost:1", NOW).kind == "unavailable"
