"""`slipstream serve --http` as a process, and a client of it that sends what it likes.

Owns the process and the sockets.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PATIENCE_S = 120.0
LOOPBACK = "127.0.0.1"
COMMAND = (str(Path(sys.executable).with_name("slipstream")), "serve", "--http", "0")


@dataclass(frozen=True, slots=True)
class Response:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        return self.headers.get("x-slipstream-reason", "")


@dataclass(frozen=True, slots=True)
class HttpClient:
    """Sends to the server on a port."""

    port: int

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(LOOPBACK, self.port)

    async def send(self, *pieces: bytes) -> bytes:
        """All that the server writes after these bytes, until it closes."""
        reader, writer = await self.connect()
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            async with asyncio.timeout(PATIENCE_S):
                return await reader.read()
        finally:
            writer.close()

    async def ask(self, path: str, body: Any = None, **headers: str) -> Response:
        """The response to a GET, or to a POST of a body, which is sent as JSON unless it is bytes."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        found = await self.send(request(path, data, is_post=body is not None, **headers))
        head, _, content = found.decode().partition("\r\n\r\n")
        first, *lines = head.split("\r\n")
        pairs = (line.split(": ", 1) for line in lines)
        return Response(int(first.split()[1]), {name.lower(): value for name, value in pairs}, content)


@dataclass(frozen=True, slots=True)
class ServerProcess(HttpClient):
    """The server that `http_process` started, and what it holds."""

    pid: int

    @property
    def num_descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def memory_mb(self) -> float:
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def request(path: str, body: bytes = b"", *, is_post: bool = True, **headers: str) -> bytes:
    named = {"Host": LOOPBACK, "Content-Length": str(len(body)), **headers}
    lines = [f"{'POST' if is_post else 'GET'} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in named.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@contextmanager
def http_process(*arguments: str | Path, env: Mapping[str, str]) -> Iterator[ServerProcess]:
    """The server for folders, until the end of the block."""
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)], env=dict(env), stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            port = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            assert port is not None, line
            yield ServerProcess(int(port[1]), process.pid)
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_S)
