"""JSON-RPC messages on a byte stream: the `Content-Length` frame of the language server protocol.

The only place that reads or writes such a frame. Has no access to the meaning of messages.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from completion_engine.errors import DataError

Message = dict[str, Any]

METHOD_NOT_FOUND = -32601
REQUEST_CANCELLED = -32800

# The name that the command line's own client gives itself; typing by a script is not counted as usage.
OWN_CLIENT = "slipstream-client"

MAX_MESSAGE_BYTES = 256 * 1024 * 1024
MAX_HEADER_BYTES = 4096


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


class FrameError(DataError):
    """The input is not a framed message; nothing after it can be understood."""


class FrameHeader:
    """The header of one message, line by line; `num_bytes` is its body's length as soon as `is_whole`."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self.is_whole = False
        self._has_length = False
        self._num_header_bytes = 0

    def add(self, line: bytes) -> bool:
        """Take the next line, its end included. False where the stream ends within the header.

        `line` is cut after MAX_HEADER_BYTES. Raises FrameError.
        """
        self._num_header_bytes += len(line)
        if self._num_header_bytes >= MAX_HEADER_BYTES:
            raise FrameError("A message header never ends.")
        if not line.endswith(b"\n"):
            return False
        if line.strip():
            self._take_field(line)
        elif not self._has_length:
            raise FrameError("A message has no Content-Length.")
        else:
            self.is_whole = True
        return True

    def _take_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        match name.strip().lower():
            case b"content-length":
                self._has_length, self.num_bytes = True, _checked_length(value.strip())
            case b"content-type":
                pass
            case _:  # the protocol has no other header, so a program printed this
                raise FrameError(f"A line of {len(line)} bytes is not a message header.")


def _checked_length(digits: bytes) -> int:
    if not digits.isdigit() or int(digits) > MAX_MESSAGE_BYTES:
        raise FrameError(f"A message has no valid length: its header has {len(digits)} bytes for it.")
    return int(digits)


async def read_message(reader: asyncio.StreamReader) -> Message | None:
    """Return the next message, or None at the end of the stream.

    Raises FrameError for invalid frames, DataError for a body that is not a JSON object.
    """
    header = FrameHeader()
    while not header.is_whole:
        if not header.add(await _read_line(reader)):
            return None
    try:
        body = await reader.readexactly(header.num_bytes)
    except asyncio.IncompleteReadError:
        return None
    try:
        message = json.loads(body)
    except ValueError as error:
        raise DataError(f"A message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise DataError("A message is not a JSON object.")
    return message


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except ValueError as error:  # longer than the reader's own limit
        raise FrameError("A message header never ends.") from error
