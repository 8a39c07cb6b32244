"""One connection carries answer after answer, and no server can use it up or keep its reader busy."""

from __future__ import annotations

import pytest
from h2 import events
from h2.connection import H2Connection
from h2.settings import SettingCodes

from completion_engine.errors import RemoteError
from completion_engine.remote import connection as connections
from completion_engine.remote.connection import MAX_EMPTY_FRAMES, Connection
from completion_engine.remote.socket_transport import Wait
from completion_engine.remote.stream import Stream
from completion_engine.request import Cancellation, CancelledError
from tests.completion_engine.remote.wire import NOW, Answer, Wire
from tests.remote_server import frame, goodbye

OK = [(":status", "200")]
TAIL = b"x" * 16_000
PING = frame(6, 0, b"standing")


def data(stream: Stream, payload: bytes) -> bytes:
    return frame(0, stream.number, payload)


def ask(connection: Connection, body: bytes = b"") -> Stream:
    return connection.request("POST", "/", {}, body, NOW)


def begin(server: H2Connection, number: int) -> None:
    server.send_headers(number, OK)
    server.send_data(number, b"begun")


def ended(server: H2Connection, number: int) -> None:
    begin(server, number)
    server.send_data(number, TAIL, end_stream=True)


def broken_off(server: H2Connection, number: int) -> None:
    begin(server, number)
    server.send_data(number, TAIL)
    server.reset_stream(number)


def too_long(server: H2Connection, number: int) -> None:
    begin(server, number)
    for _ in range(3):
        server.send_data(number, TAIL)


def from_a_cafe(server: H2Connection, number: int) -> None:
    server.send_headers(number, [(b":status", b"200"), (b"x-by", b"caf\xe9")])
    server.send_data(number, b"begun", end_stream=True)


def padded(server: H2Connection, number: int) -> None:
    begin(server, number)
    for _ in range(60):
        server.send_data(number, b"", pad_length=255)
    server.end_stream(number)


@pytest.mark.parametrize("answer", [ended, broken_off, too_long, padded])
def test_what_nobody_reads_does_not_use_up_the_window(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window holds 1.1 MB: h2 refuses what the server sends beyond it."""
    monkeypatch.setattr(connections, "MAX_BODY_BYTES", 20_000)
    connection = Wire(answer).connection()
    for _ in range(100):
        stream = ask(connection)
        connection.look()
        if answer is not too_long:
            assert stream.read(NOW) == b"begun"
        stream.close()
    assert connection.is_usable


def test_a_request_that_is_given_up_half_way_is_no_stream_any_more() -> None:
    wire = Wire(settings={SettingCodes.INITIAL_WINDOW_SIZE: 10})
    connection = wire.connection()
    with pytest.raises(RemoteError) as failure:
        ask(connection, b"longer than the server takes")
    assert failure.value.kind == "silent"
    assert connection.num_streams == 0
    assert isinstance(wire.heard[-1], events.StreamReset)


class Hasty(Wire):
    """Cancels once the first part of the request is on its way."""

    def __init__(self, cancellation: Cancellation) -> None:
        super().__init__(settings={SettingCodes.INITIAL_WINDOW_SIZE: 1 << 20})
        self.cancellation = cancellation

    def send(self, data: bytes, wait: Wait) -> None:
        super().send(data, wait)
        if any(isinstance(event, events.DataReceived) for event in self.heard):
            self.cancellation.cancel()


def test_of_a_question_that_is_cancelled_no_more_is_sent() -> None:
    cancellation = Cancellation()
    wire = Hasty(cancellation)
    connection = wire.connection()
    with pytest.raises(CancelledError):
        connection.request("POST", "/", {}, b"x" * 50_000, Wait.seconds(600, cancellation))
    assert sum(isinstance(event, events.DataReceived) for event in wire.heard) == 1
    assert isinstance(wire.heard[-1], events.StreamReset)
    assert connection.is_usable


def test_headers_may_hold_any_bytes() -> None:
    stream = ask(Wire(from_a_cafe).connection())
    assert stream.wait_for_status(NOW) == 200
    assert stream.headers["x-by"] == "caf\xe9"
    assert stream.read(NOW) == b"begun"


@pytest.mark.parametrize("pieces", [1, 4])
def test_a_goodbye_breaks_off_what_is_under_way_and_keeps_what_came(pieces: int) -> None:
    """The server goes on with the stream, as HTTP/2 lets it; the library takes none of that."""
    wire = Wire(begin)
    connection = wire.connection()
    stream = ask(connection)
    said = data(stream, b"before") + goodbye(stream.number) + data(stream, b"behind") + PING
    size = -(-len(said) // pieces)
    wire.coming.extend(said[at : at + size] for at in range(0, len(said), size))
    assert [stream.read(NOW), stream.read(NOW)] == [b"begun", b"before"]
    with pytest.raises(RemoteError) as failure:
        stream.read(NOW)
    assert failure.value.kind == "truncated"
    assert not connection.is_usable


def test_frames_of_an_answer_that_was_left_end_the_connection_when_they_never_end() -> None:
    wire = Wire(begin)
    connection = wire.connection()
    stream = ask(connection)
    stream.close()
    num_before, flood = wire.num_received, data(stream, b"z" * 1000)
    wire.coming.extend([flood] * (20 * MAX_EMPTY_FRAMES))
    for _ in range(2 * MAX_EMPTY_FRAMES):
        connection.look()
    assert not connection.is_usable
    assert wire.num_received - num_before <= 2 * MAX_EMPTY_FRAMES


def test_a_word_now_and_then_does_not_excuse_a_flood() -> None:
    wire = Wire(begin)
    connection = wire.connection()
    stream = ask(connection)
    word = data(stream, b"a")
    flood = PING * (MAX_EMPTY_FRAMES // 4)
    wire.coming.extend([flood, word] * 20)
    with pytest.raises(RemoteError) as failure:
        while connection.pump(NOW):
            pass
    assert failure.value.kind == "rubbish"
    assert not connection.is_usable


def test_what_was_under_way_when_an_answer_was_left_is_no_flood() -> None:
    wire = Wire(begin)
    connection = wire.connection()
    for _ in range(100):
        stream = ask(connection)
        stream.close()
        wire.coming.extend([data(stream, b"late")] * 50)
        while connection.pump(NOW):
            pass
    assert connection.is_usable


def test_who_cancels_is_given_nothing_that_is_here_already() -> None:
    connection = Wire(begin).connection()
    stream, cancellation = ask(connection), Cancellation()
    connection.look()
    cancellation.cancel()
    with pytest.raises(CancelledError):
        stream.read(Wait(0.0, cancellation))
