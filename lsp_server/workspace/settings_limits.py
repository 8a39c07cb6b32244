"""How much anybody may hand in as settings, whatever they mean. Knows no setting and no source."""

from __future__ import annotations

from collections.abc import Collection, Mapping

MAX_VALUES = 20_000
MAX_CHARS = 1 << 20
MAX_DEPTH = 16
MAX_BITS = 1 << 10


def excess(values: object) -> str:
    """Why `values` are more than any settings are, or nothing.

    Looks at each value once, and calls nothing that goes as deep as they do.
    """
    pending: list[tuple[object, int]] = [(values, 0)]
    num_values = num_chars = 0
    while pending:
        value, depth = pending.pop()
        if depth > MAX_DEPTH:
            return f"they are nested more than {MAX_DEPTH} deep"
        inner: Collection[object] = ()
        if isinstance(value, Mapping):
            num_chars += sum(len(str(key)) for key in value)
            inner = value.values()
        elif isinstance(value, list | tuple):
            inner = value
        elif isinstance(value, str):
            num_chars += len(value)
        elif isinstance(value, int) and value.bit_length() > MAX_BITS:
            return "a number has too many digits"
        num_values += len(inner)
        if num_values > MAX_VALUES or num_chars > MAX_CHARS:
            return f"they hold more than {MAX_VALUES:,} values or {MAX_CHARS:,} characters"
        pending += [(each, depth + 1) for each in inner]
    return ""
