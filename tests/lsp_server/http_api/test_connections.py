"""The bytes of HTTP clients, over real sockets: requests that are read, refused or cancelled."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from lsp_server.http_api import connections
from lsp_server.http_api.connections import (
    MAX_BODY_BYTES,
    MAX_CONNECTIONS,
    MAX_HEADER_BYTES,
    HttpRequest,
    HttpResponse,
    RefusedError,
    http_server,
)
from tests.http_clients import HttpClient
from tests.waiting import pauses

PATIENCE_S = 60.0


@dataclass
class Handler:
    """Answers with the body; a target of `/wait` waits until the answer is cancelled."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: HttpRequest) -> HttpResponse:
        if request.target == "/wait":
            self.begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if request.target == "/large":
            return HttpResponse(200, b"x" * 50_000_000)
        if request.target == "/refused":
            raise RefusedError(403, "none for\r\nyou: ✗")
        if request.target == "/bug":
            raise ZeroDivisionError
        return HttpResponse(200, request.body, reason="none" if not request.body else "")


@dataclass(frozen=True, slots=True)
class Server(HttpClient):
    handler: Handler

    async def until(self, status: bytes) -> bytes:
        """The first response with this status: connections come and go in their own time."""
        async with asyncio.timeout(PATIENCE_S):
            for pause_s in pauses():
                if (found := await self.send(posting(b"text"))).startswith(b"HTTP/1.1 %b " % status):
                    break
                await asyncio.sleep(pause_s)
        return found


@asynccontextmanager
async def a_server() -> AsyncIterator[Server]:
    handler = Handler()
    async with http_server(0, handler.answer) as port:
        yield Server(port, handler)


def posting(body: bytes, *headers: bytes) -> bytes:
    lines = (b"POST / HTTP/1.1", b"Host: x", b"Content-Length: %d" % len(body), *headers)
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


ANSWERED = {
    "a body": (posting(b"text"), b"text"),
    "a body in chunks": (
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nte\r\n2\r\nxt\r\n0\r\n\r\n",
        b"text",
    ),
    "an old client": (b"POST / HTTP/1.0\r\nContent-Length: 4\r\n\r\ntext", b"text"),
    "a body of the greatest size": (posting(b"x" * MAX_BODY_BYTES), b"x" * MAX_BODY_BYTES),
    "a second request, which must open a connection": (posting(b"one") + posting(b"two"), b"one"),
}


@pytest.mark.parametrize("name", ANSWERED)
async def test_a_request_is_answered_and_its_connection_closed(name: str) -> None:
    sent, body = ANSWERED[name]
    async with a_server() as server:
        head, _, found = (await server.send(sent)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"Connection: close" in head
        assert found == body


async def test_a_body_may_come_byte_by_byte() -> None:
    async with a_server() as server:
        pieces = [bytes([byte]) for byte in posting(b"text")]
        assert (await server.send(*pieces)).endswith(b"\r\n\r\ntext")


REFUSED = {
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01" * 10 + b"\r\n\r\n", b"400"),
    "no path": (b"POST\r\n\r\n", b"400"),
    "two hosts": (posting(b"", b"Host: y"), b"400"),
    "two lengths": (posting(b"text", b"Content-Length: 3"), b"400"),
    "a length that is none": (posting(b"", b"Content-Length: many"), b"400"),
    "headers without an end": (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * MAX_HEADER_BYTES, b"431"),
    "a header without an end": (b"GET / HTTP/1.1\r\nA: " + b"a" * (2 * MAX_HEADER_BYTES), b"431"),
    "a large body": (posting(b"x" * (MAX_BODY_BYTES + 1)), b"413"),
    "an endless body": (
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"100000\r\n%b\r\n" % (b"x" * 0x100000) * 6,
        b"413",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_no_request_or_too_large_is_refused(name: str) -> None:
    sent, status = REFUSED[name]
    async with a_server() as server:
        assert (await server.send(sent)).startswith(b"HTTP/1.1 %b " % status)


@pytest.mark.parametrize("sent", [b"", b"POST / HTT", posting(b"text")[:-1]], ids=["nothing", "head", "body"])
async def test_a_slow_request_is_refused(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_S", 0.2)
    async with a_server() as server:
        assert (await server.send(sent)).startswith(b"HTTP/1.1 408 ")


async def test_a_client_that_takes_no_response_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "RESPONSE_S", 0.2)
    async with a_server() as server:
        reader, writer = await server.connect()
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(1.0)
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ConnectionError):
                while await reader.read(1 << 20):
                    pass
                raise ConnectionError  # it ended early, without a reset
        writer.close()


async def test_connections_are_bounded_and_free_again_afterwards() -> None:
    async with a_server() as server:
        open_now = [await server.connect() for _ in range(MAX_CONNECTIONS)]
        assert b"Too many connections" in await server.until(b"503")
        for _, writer in open_now:
            writer.close()
        await server.until(b"200")


async def test_an_answer_is_cancelled_when_its_client_leaves() -> None:
    async with a_server() as server:
        _, writer = await server.connect()
        writer.write(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            await server.handler.begun.wait()
            assert not server.handler.cancelled.is_set()
            writer.close()
            await server.handler.cancelled.wait()


async def test_an_answer_is_cancelled_when_the_server_ends() -> None:
    async with a_server() as server:
        _, writer = await server.connect()
        writer.write(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            await server.handler.begun.wait()
    assert server.handler.cancelled.is_set()
    writer.close()


async def test_a_bug_costs_one_connection(caplog: pytest.LogCaptureFixture) -> None:
    async with a_server() as server:
        assert await server.send(b"GET /bug HTTP/1.1\r\nHost: x\r\n\r\n") == b""
        assert (await server.send(posting(b"text"))).endswith(b"text")
        gc.collect()
    assert "ZeroDivisionError" in caplog.text


async def test_the_reason_for_an_empty_answer_is_a_header() -> None:
    async with a_server() as server:
        assert b"\r\nX-Slipstream-Reason: none\r\n" in await server.send(posting(b""))


async def test_the_reason_of_a_refusal_is_a_header_of_one_line_of_ascii() -> None:
    async with a_server() as server:
        found = await server.send(b"GET /refused HTTP/1.1\r\nHost: x\r\n\r\n")
        assert found.startswith(b"HTTP/1.1 403 ")
        assert b"\r\nX-Slipstream-Reason: none for you: ?\r\n" in found


async def test_no_other_machine_can_connect() -> None:
    async with a_server() as server:
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(asyncio.open_connection("127.0.0.2", server.port), 5)
