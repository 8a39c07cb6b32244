"""Frames arrive whole or not at all, and a client that does not read delays no other."""

from __future__ import annotations

import io
import os
import re
import threading

import pytest

from lsp_server.protocol import client_streams
from lsp_server.protocol.client_streams import Writer, read_frame, start_reader
from lsp_server.protocol.framing import FrameError


@pytest.mark.parametrize(
    ("data", "bodies"),
    [
        (b"", []),
        (b"Content-Length: 2\r\n\r\n{}", [b"{}"]),
        (b"content-length:2\r\nContent-Type: x\r\n\r\n{}Content-Length: 1\r\n\r\n7", [b"{}", b"7"]),
        (b"Content-Length: 0\r\n\r\n", [b""]),
        (b"Content-Length: 9\r\n\r\n{}", []),
        (b"Content-Len", []),
    ],
)  # fmt: skip
def test_whole_messages_are_read(data: bytes, bodies: list[bytes]) -> None:
    stream = io.BytesIO(data)
    for body in bodies:
        assert read_frame(stream) == body
    assert read_frame(stream) is None


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n{}",
        b"hello\r\n\r\n",
        b"Warning: x\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n",
        b"x" * 10_000,
        b"Content-Type: x\r\n" * 10_000,
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(FrameError) as raised:
        read_frame(io.BytesIO(data))
    assert not {"hello", "Warning", "many", "9999"} & set(re.findall(r"\w+", str(raised.value)))


def test_the_reader_delivers_in_order_and_then_the_end() -> None:
    got: list[bytes] = []
    has_ended = threading.Event()
    stream = io.BytesIO(b"Content-Length: 1\r\n\r\n1Content-Length: 1\r\n\r\n2junk")
    start_reader(stream, lambda body: not got.append(body), has_ended.set)
    assert has_ended.wait(60)
    assert got == [b"1", b"2"]


def test_a_reader_that_nobody_listens_to_reads_no_further() -> None:
    has_ended = threading.Event()
    stream = io.BytesIO(b"Content-Length: 1\r\n\r\n1" * 9)
    start_reader(stream, lambda _body: False, has_ended.set)
    assert has_ended.wait(60)
    assert stream.tell() == len(stream.getvalue()) // 9


class Panic(BaseException):
    """A panic of a library below Python, which is not an Exception."""


def test_a_reader_and_a_writer_that_panic_end_the_conversation() -> None:
    class Broken(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            raise Panic

        def write(self, data: object, /) -> int:
            raise Panic

    has_ended, is_broken = threading.Event(), threading.Event()
    start_reader(Broken(), lambda _body: True, has_ended.set)
    Writer(Broken(), on_broken=is_broken.set).write(b"x")
    assert has_ended.wait(60)
    assert is_broken.wait(60)


def test_a_client_that_leaves_too_much_unread_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_streams, "MAX_UNREAD_BYTES", 1_000_000)
    reading, writing = os.pipe()
    is_broken = threading.Event()
    stream = os.fdopen(writing, "wb", buffering=0)
    writer = Writer(stream, on_broken=is_broken.set)
    for _ in range(30):
        writer.write(b"x" * 100_000)
    assert is_broken.is_set()
    writer.close()
    os.close(reading)
    stream.close()


def test_writing_never_waits_for_the_client() -> None:
    reading, writing = os.pipe()
    stream = os.fdopen(writing, "wb")
    writer = Writer(stream, on_broken=lambda: None)
    # without a reader, waiting for one would never end to wait for a reader would be to wait for ever
    for _ in range(100):
        writer.write(b"x" * 100_000)
    with os.fdopen(reading, "rb") as reader:
        assert len(reader.read(10_000_000)) == 10_000_000
    writer.close()
    stream.close()


def test_a_client_that_is_gone_is_noticed() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    is_broken = threading.Event()
    stream = os.fdopen(writing, "wb", buffering=0)
    writer = Writer(stream, on_broken=is_broken.set)
    writer.write(b"x")
    assert is_broken.wait(60)
    writer.write(b"y")
    writer.close()
    stream.close()
