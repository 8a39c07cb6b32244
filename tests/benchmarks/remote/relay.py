"""A slow way to a server: a relay on this machine that delays all data.

Owns bytes on their way, not their meaning.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_HOST = "127.0.0.1"
_AT_ONCE = 64 << 10


@asynccontextmanager
async def delaying_relay(host: str, port: int, round_trip_ms: float) -> AsyncIterator[int]:
    """Listens on a port of the loopback, which is yielded, and passes on half a round trip later, each way.

    Bandwidth is not bounded, and nothing is lost: that is a good network far away.
    """
    passing: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(host, port)
        writers.extend((writer, far_writer))
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(_pass_on(source, sink, round_trip_ms / 2e3))
            passing.add(task)
            task.add_done_callback(passing.discard)

    server = await asyncio.start_server(connect, _HOST, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in passing:
            task.cancel()
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter, delay_s: float) -> None:
    """Delay each chunk equally, so that their order stays."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while data := await source.read(_AT_ONCE):
            loop.call_later(delay_s, _write, sink, data)
    loop.call_later(delay_s, sink.close)


def _write(sink: asyncio.StreamWriter, data: bytes) -> None:
    if not sink.is_closing():
        sink.write(data)
