"""HTTP/1.1 on the loopback, one request for each connection, all of it bounded. Does not read bodies."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import h11

LOOPBACK = "127.0.0.1"
MAX_CONNECTIONS = 64
MAX_HEADER_BYTES = 16 * 1024
MAX_BODY_BYTES = 4 * 1024 * 1024
REQUEST_S = RESPONSE_S = 10.0  # the longest times for sending a request and for taking a response
_CLOSE_S = 1.0  # a client that is still sending has this time to read why it was refused
_CHUNK_BYTES = 64 * 1024


class HttpRequest(NamedTuple):
    """A whole request; names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class HttpResponse(NamedTuple):
    """A whole response; `reason` says why there is no completion."""

    status: int
    body: bytes
    content_type: str = "application/json"
    reason: str = ""


class RefusedError(Exception):
    """A request is not answered: its `status`, and the reason as the message."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


Answer = Callable[[HttpRequest], Awaitable[HttpResponse]]


@asynccontextmanager
async def http_server(port: int, answer: Answer) -> AsyncIterator[int]:
    """Answer requests on a loopback port, which is yielded; 0 takes a free one. Raises OSError.

    An answer is cancelled when its client leaves, and may raise RefusedError.
    """
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _serve(reader, writer, answer, has_room=len(tasks) <= MAX_CONNECTIONS)
        except (OSError, h11.ProtocolError):
            pass  # the client has gone, or is too slow
        finally:
            writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(task := asyncio.create_task(serve(reader, writer)))
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, LOOPBACK, port, limit=_CHUNK_BYTES)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, *, has_room: bool
) -> None:
    """Answer one request, and close. Raises OSError and ProtocolError if the client fails."""
    http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)
    try:
        request = await _read(reader, http, has_room=has_room)
        response = await _while_connected(reader, asyncio.ensure_future(answer(request)))
    except RefusedError as refusal:
        error = {"error": {"code": refusal.status, "message": str(refusal)}}
        response = HttpResponse(refusal.status, json.dumps(error).encode(), reason=str(refusal))
    headers = {"Content-Type": response.content_type, "Content-Length": str(len(response.body))}
    if reason := " ".join(response.reason.encode("ascii", "replace").decode().split()):
        headers["X-Slipstream-Reason"] = reason
    headers["Connection"] = "close"
    head = h11.Response(status_code=response.status, headers=[*headers.items()])
    writer.write((http.send(head) or b"") + response.body)
    async with asyncio.timeout(RESPONSE_S):
        await writer.drain()
        writer.write_eof()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_S):
            while await reader.read(_CHUNK_BYTES):
                pass


async def _read(reader: asyncio.StreamReader, http: h11.Connection, *, has_room: bool) -> HttpRequest:
    """Return the request. Raises RefusedError, and ConnectionResetError if the client leaves."""
    if not has_room:
        raise RefusedError(503, "Too many connections are open.")
    head, body, event = None, bytearray(), None
    try:
        async with asyncio.timeout(REQUEST_S):
            while not isinstance(event := http.next_event(), h11.EndOfMessage | h11.ConnectionClosed):
                if event is h11.NEED_DATA:
                    http.receive_data(await reader.read(_CHUNK_BYTES))
                elif isinstance(event, h11.Request):
                    head = event
                elif isinstance(event, h11.Data):
                    body += event.data
                    if len(body) > MAX_BODY_BYTES:
                        raise RefusedError(413, f"The body has more than {MAX_BODY_BYTES:,} bytes.")
    except TimeoutError:
        raise RefusedError(408, "The request did not arrive in time.") from None
    except h11.RemoteProtocolError as error:
        raise RefusedError(error.error_status_hint, "The request is not valid HTTP/1.1.") from error
    if head is None:
        raise ConnectionResetError
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    return HttpRequest(head.method.decode("ascii"), head.target.decode("latin-1"), headers, bytes(body))


async def _while_connected(
    reader: asyncio.StreamReader, answering: asyncio.Future[HttpResponse]
) -> HttpResponse:
    """Return the answer. Raises ConnectionResetError, and cancels it, if the client leaves before."""
    both: tuple[asyncio.Future[Any], ...] = (answering, asyncio.ensure_future(reader.read(_CHUNK_BYTES)))
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done() and both[1].result() == b"":
            raise ConnectionResetError
        return await answering
    finally:
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)
