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


def ends_header(header: bytes) -> bool:
    """Return whether these lines end in the empty one. Raises FrameError if the last is not of a header."""
    if len(header) >= MAX_HEADER_BYTES:
        raise FrameError("A message header never ends.")
    *_, last = header.splitlines() or [b"content-type"]
    _length_in(last)
    return not last.strip()


def body_length(header: bytes) -> int:
    """Return the number of bytes that a whole header says. Raises FrameError."""
    found = [num_bytes for line in header.splitlines() if (num_bytes := _length_in(line)) is not None]
    if not found:
        raise FrameError("A message has no Content-Length.")
    return found[-1]


def _length_in(line: bytes) -> int | None:
    name, _, value = line.partition(b":")
    match name.strip().lower():
        case b"content-length":
            if not (digits := value.strip()).isdigit() or int(digits) > MAX_MESSAGE_BYTES:
                raise FrameError(f"A message has no valid length, but {len(digits)} bytes for it.")
            return int(digits)
        case b"content-type" | b"":
            return None
        case _:  # the protocol has no other header, so a program printed this
            raise FrameError(f"A line of {len(line)} bytes is not a message header.")


async def read_message(reader: asyncio.StreamReader) -> Message | None:
    """Return the next message, or None at the end of the stream.

    Raises FrameError for invalid frames, DataError for a body that is not a JSON object.
    """
    header = b""
    while not ends_header(header):
        try:
            line = await reader.readline()
        except ValueError as error:  # longer than the reader's own limit
            raise FrameError("A message header never ends.") from error
        if not line.endswith(b"\n"):
            return None
        header += line
    try:
        body = await reader.readexactly(body_length(header))
    except asyncio.IncompleteReadError:
        return None
    try:
        message = json.loads(body)
    except ValueError as error:
        raise DataError(f"A message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise DataError("A message is not a JSON object.")
    return message
