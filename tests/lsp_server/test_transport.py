"""Frames come in whole or not at all, and a client that does not read holds nobody up."""

from __future__ import annotations

import io
import os
import threading
import time

import pytest

from lsp_server.transport import FrameError, Writer, read_frame, start_reader


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
    if data == b"Content-Len":
        with pytest.raises(FrameError):
            read_frame(stream)
        return
    for body in bodies:
        assert read_frame(stream) == body
    assert read_frame(stream) is None


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n{}",
        b"hello\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n",
        b"x" * 10_000,
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(FrameError):
        read_frame(io.BytesIO(data))


def test_the_reader_delivers_in_order_and_then_the_end() -> None:
    got: list[bytes | None] = []
    start_reader(io.BytesIO(b"Content-Length: 1\r\n\r\n1Content-Length: 1\r\n\r\n2junk"), got.append).join(5)
    assert got == [b"1", b"2", None]


def test_writing_never_waits_for_the_client() -> None:
    reading, writing = os.pipe()
    stream = os.fdopen(writing, "wb")
    writer = Writer(stream, on_broken=lambda: None)
    begin = time.perf_counter()
    for _ in range(100):
        writer.write(b"x" * 100_000)
    assert time.perf_counter() - begin < 1
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
    assert is_broken.wait(5)
    writer.write(b"y")
    writer.close()
    stream.close()
