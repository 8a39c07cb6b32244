"""Columns in the client's code units against indices of Python strings.

Owns the three position encodings of the protocol. Has no access to documents or protocol types.
"""

from __future__ import annotations

from typing import Literal

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]


def index_of(line: str, num_units: int, encoding: PositionEncoding) -> int:
    """The index in `line` that lies `num_units` code units from its start.

    A column beyond the end means the end, one inside a character means the character's start.
    """
    if encoding == "utf-32" or line.isascii():
        return min(num_units, len(line))
    if encoding == "utf-8":
        data = line.encode("utf-8", "surrogatepass")
        if num_units >= len(data):
            return len(line)
        while num_units and data[num_units] & 0xC0 == 0x80:
            num_units -= 1
        return len(data[:num_units].decode("utf-8", "surrogatepass"))
    data = line.encode("utf-16-le", "surrogatepass")
    if 2 * num_units >= len(data):
        return len(line)
    if num_units and _is_low(data, num_units) and _is_high(data, num_units - 1):
        num_units -= 1
    return len(data[: 2 * num_units].decode("utf-16-le", "surrogatepass"))


def units_of(text: str, encoding: PositionEncoding) -> int:
    """Number of code units in `text`."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def paired(text: str) -> str:
    """Join adjacent halves of a surrogate pair in `text` to one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def encodable(text: str) -> str:
    """`text` with lone surrogates replaced one for one, so that it can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def _is_low(data: bytes, unit: int) -> bool:
    return data[2 * unit + 1] & 0xFC == 0xDC


def _is_high(data: bytes, unit: int) -> bool:
    return data[2 * unit + 1] & 0xFC == 0xD8
