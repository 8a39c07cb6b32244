"""From a message's bytes to JSON values, on the reader's thread, without holding the interpreter for long.

Owns the limits of what is parsed whole. Must not know what a message means, beyond which lists
may be long.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from json import scanner
from typing import Any

from lsprotocol import types

# A longer string is left out of a message; `CUT` stands in its place, which no client has any reason to send.
MAX_STRING_BYTES = 8 * 1024 * 1024
CUT = "\ufdd0slipstream: a string that is too long\ufdd1"

# What is left then, where it is longer than the text of any document that is followed, is read no further.
MAX_WHOLE_BYTES = 32 * 1024 * 1024

# The C parser holds the interpreter until it is done; a message that is longer goes through Python's own one.
MAX_QUICK_BYTES = 256 * 1024

# Giving back more than this, which is one step of the interpreter, would be felt in every window.
MAX_VALUES = 250_000

# Long lists of changes are handled as several messages, so that others get their turn between them.
MAX_CHANGES = 32
_LISTS = {
    types.TEXT_DOCUMENT_DID_CHANGE: "contentChanges",
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: "changes",
}

_QUOTE, _BACKSLASH = b'"', 0x5C
_CUT_JSON = json.dumps(CUT)[1:-1].encode()


@dataclass(frozen=True, slots=True)
class Unparsed:
    """A message that is not JSON, and why."""

    reason: str


def parse(body: bytes) -> Iterator[Any]:
    """The message as JSON values; several of them where a list in it is long, `Unparsed` where it is none."""
    try:
        text = _whole(cut_long_strings(body)).decode("utf-8", "surrogatepass")
        message = json.loads(text) if len(text) <= MAX_QUICK_BYTES else _decoded(text)
    except (ValueError, RecursionError) as error:
        yield Unparsed(str(error))
        return
    yield from _in_parts(message)


def _whole(body: bytes) -> bytes:
    if len(body) > MAX_WHOLE_BYTES:
        raise ValueError(f"it holds more than {MAX_WHOLE_BYTES >> 20} MiB")
    return body


def cut_long_strings(body: bytes) -> bytes:
    """`body` with `CUT` for every string that is longer than the limit. Takes time as its size is."""
    if len(body) <= MAX_STRING_BYTES:
        return body
    kept: list[bytes] = []
    start = position = 0
    while (opening := body.find(_QUOTE, position)) >= 0 and (
        closing := _end_of_string(body, opening + 1)
    ) >= 0:
        if closing - opening > MAX_STRING_BYTES:
            kept += [body[start : opening + 1], _CUT_JSON]
            start = closing
        position = closing + 1
    return b"".join([*kept, body[start:]])


def _end_of_string(body: bytes, start: int) -> int:
    """Where the quote is that ends the string beginning at `start`; -1 where it never ends."""
    closing = body.find(_QUOTE, start)
    while closing >= 0:
        before = closing
        while before > start and body[before - 1] == _BACKSLASH:
            before -= 1
        if (closing - before) % 2 == 0:
            break
        closing = body.find(_QUOTE, closing + 1)
    return closing


def _in_parts(message: Any) -> Iterator[Any]:
    method = message.get("method") if isinstance(message, dict) else None
    name = _LISTS.get(method, "") if isinstance(method, str) else ""
    params = message.get("params") if name else None
    changes = params.get(name) if isinstance(params, dict) else None
    if not isinstance(params, dict) or not isinstance(changes, list) or len(changes) <= MAX_CHANGES:
        yield message
        return
    for first in range(0, len(changes), MAX_CHANGES):
        yield {**message, "params": {**params, name: changes[first : first + MAX_CHANGES]}}


def _decoded(text: str) -> Any:
    """The value of a long text, by a decoder in Python: other threads get their turn at every value.

    Raises ValueError where it holds too many.
    """
    num_values = 0

    def counted(scan_once: Any) -> Any:
        def scan(text: str, at: int) -> Any:
            nonlocal num_values
            num_values += 1
            if num_values > MAX_VALUES:
                raise ValueError(f"it holds more than {MAX_VALUES:,} values")
            return scan_once(text, at)

        return scan

    patient: Any = json.JSONDecoder()
    parse_array, parse_object = patient.parse_array, patient.parse_object
    patient.parse_array = lambda place, scan: parse_array(place, counted(scan))
    patient.parse_object = lambda place, strict, scan, *hooks: parse_object(
        place, strict, counted(scan), *hooks
    )
    patient.scan_once = scanner.py_make_scanner(patient)  # type: ignore[attr-defined]  # typeshed knows the C one
    return patient.decode(text)
