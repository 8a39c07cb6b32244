"""HTTP/1.1 on the loopback, all of it bounded. Has no access to the meaning of bodies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import h11

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
MAX_CONNECTIONS = 64
MAX_HEADER_BYTES = 16 * 1024
MAX_BODY_BYTES = 4 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The longest times of a connection: without a request, for sending one, and for taking an answer."""

    idle_s: float = 120.0
    request_s: float = 10.0
    write_s: float = 10.0


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A whole request; names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A whole response."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]
# Returns the response for a request that ends before it is read.
Refusal = Callable[[int, str], HttpResponse]


class BodyTooLargeError(Exception):
    """A body has more than MAX_BODY_BYTES."""


@asynccontextmanager
async def http_server(
    port: int, handle: Handler, refuse: Refusal, limits: Limits = Limits()
) -> AsyncIterator[int]:
    """Answer requests on a loopback port, which is yielded; 0 takes a free one. Raises OSError."""
    open_now: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        open_now.add(task)
        try:
            connection = _Connection(reader, writer, handle, refuse, limits)
            if len(open_now) > MAX_CONNECTIONS:
                await connection.respond(refuse(503, "Too many connections are open. Close some."))
            else:
                await connection.run()
        except (OSError, TimeoutError, h11.ProtocolError, asyncio.CancelledError):
            pass  # the client has gone, is too slow, or the server ends
        except Exception:
            logger.exception("A connection failed")
        finally:
            open_now.discard(task)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, port, limit=_CHUNK_BYTES)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in open_now:
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)


class _Connection:
    """One client: requests one after the other. A request ends if the client leaves before its response."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handle: Handler,
        refuse: Refusal,
        limits: Limits,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._handle, self._refuse, self._limits = handle, refuse, limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)

    async def run(self) -> None:
        """Serve until the client ends the connection, or exceeds a limit."""
        while True:
            try:
                request = await self._read_request()
            except TimeoutError:
                await self.respond(self._refuse(408, "The request did not arrive in time."))
                return
            except BodyTooLargeError:
                await self.respond(self._refuse(413, f"The body has more than {MAX_BODY_BYTES:,} bytes."))
                return
            except h11.RemoteProtocolError as error:
                await self.respond(
                    self._refuse(error.error_status_hint, "The request is not valid HTTP/1.1.")
                )
                return
            if request is None:
                return
            await self.respond(await self._answer_while_connected(request))
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def respond(self, response: HttpResponse) -> None:
        """Send a whole response. Raises TimeoutError if the client does not take it."""
        if self._http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        headers = [("Content-Type", response.content_type), ("Content-Length", str(len(response.body)))]
        if self._http.their_state is not h11.DONE:
            headers.append(("Connection", "close"))
        self._send(h11.Response(status_code=response.status, headers=[*headers, *response.headers]))
        self._send(h11.Data(data=response.body))
        self._send(h11.EndOfMessage())
        async with asyncio.timeout(self._limits.write_s):
            await self._writer.drain()

    async def _read_request(self) -> HttpRequest | None:
        """Return the next request; None if the client sends no more. Raises TimeoutError and h11's errors."""
        if not self._http.trailing_data[0]:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.idle_s):
                    await self._receive()
            if not self._http.trailing_data[0]:
                return None
        async with asyncio.timeout(self._limits.request_s):
            head = await self._next_event()
            if not isinstance(head, h11.Request):
                return None
            body = bytearray()
            while isinstance(event := await self._next_event(), h11.Data):
                body += event.data
                if len(body) > MAX_BODY_BYTES:
                    raise BodyTooLargeError
        if not isinstance(event, h11.EndOfMessage):
            return None
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        return HttpRequest(head.method.decode("ascii"), head.target.decode("latin-1"), headers, bytes(body))

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._send(h11.InformationalResponse(status_code=100, headers=[]))
            await self._receive()
        return event

    async def _receive(self) -> None:
        self._http.receive_data(await self._reader.read(_CHUNK_BYTES))

    async def _answer_while_connected(self, request: HttpRequest) -> HttpResponse:
        """Return the response. Raises ConnectionResetError if the client leaves before it is made.

        Of requests that follow without waiting, one chunk is read; the rest waits for the response.
        """
        answering = asyncio.ensure_future(self._handle(request))
        reading = asyncio.ensure_future(self._reader.read(_CHUNK_BYTES))
        try:
            await asyncio.wait({answering, reading}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done() and (ahead := reading.result()):
                self._http.receive_data(ahead)
            elif reading.done() and not answering.done():
                raise ConnectionResetError("the client has gone")
            return await answering
        finally:
            for task in (answering, reading):
                task.cancel()
            await asyncio.gather(answering, reading, return_exceptions=True)

    def _send(self, event: h11.Event) -> None:
        self._writer.write(self._http.send(event) or b"")
