"""JSON-RPC messages on a byte stream: the `Content-Length` frame of the language server protocol.

Knows bytes and JSON values. Must not know what a message means, nor who is at the other end.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from completion_engine.errors import DataError

Message = dict[str, Any]

METHOD_NOT_FOUND = -32601
REQUEST_CANCELLED = -32800

MAX_MESSAGE_BYTES = 256 * 1024 * 1024


class ResponseError(Exception):
    """The server answered a request with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data

    @property
    def is_cancelled(self) -> bool:
        """Whether the server confirms a cancellation by this."""
        return self.code == REQUEST_CANCELLED


def encode(message: Message) -> bytes:
    """One message as it goes over the wire."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def read_message(reader: asyncio.StreamReader) -> Message | None:
    """The next message, or None at the end of the stream.

    Raises DataError when what comes is not a framed JSON object.
    """
    try:
        if (num_bytes := await _read_header(reader)) is None:
            return None
        body = await reader.readexactly(num_bytes)
    except asyncio.IncompleteReadError:
        return None
    try:
        message = json.loads(body)
    except ValueError as error:
        raise DataError(f"A message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise DataError("A message is not a JSON object.")
    return message


async def _read_header(reader: asyncio.StreamReader) -> int | None:
    """The length that the header announces, in bytes; None at the end of the stream."""
    num_bytes: int | None = None
    while line := await _read_line(reader):
        text = line.strip()
        if not text:
            if num_bytes is None:
                raise DataError("A message has no Content-Length.")
            return num_bytes
        name, _, value = text.partition(b":")
        match name.strip().lower():
            case b"content-length":
                num_bytes = _checked_length(value)
            case b"content-type":
                pass
            case _:
                raise DataError(f"This is no message header: {text[:80]!r}.")
    return None


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """The next whole line; empty at the end of the stream, also when that cuts a line short."""
    try:
        line = await reader.readline()
        return line if line.endswith(b"\n") else b""
    except ValueError as error:
        raise DataError("A message header never ends.") from error


def _checked_length(value: bytes) -> int:
    digits = value.strip()
    if not digits.isdigit() or int(digits) > MAX_MESSAGE_BYTES:
        raise DataError(f"A message cannot have the length {digits[:40]!r}.")
    return int(digits)
