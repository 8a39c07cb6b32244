"""Replacing the generated parts of files that people also write in."""

from __future__ import annotations

import json
from typing import Any

COMMAND = "python -m scripts.settings_pages"


def replaced(text: str, start: str, end: str, part: str) -> str:
    """Return `text` with `part` between the first `start` and the next `end`.

    Raises ValueError where `text` has no such marks.
    """
    before, found_start, rest = text.partition(start)
    _, found_end, after = rest.partition(end)
    if not found_start or not found_end:
        raise ValueError(f"there is no {start!r} with {end!r} after it")
    return before + start + part + end + after


def plain(value: Any) -> Any:
    """100.0 as 100, as people write it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def lua(value: Any) -> str:
    """A value of JSON as Lua code on one line."""
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, list):
        return f"{{ {', '.join(map(lua, value))} }}" if value else "{}"
    if isinstance(value, dict):
        entries = (f"{key} = {lua(each)}" for key, each in value.items())
        return f"{{ {', '.join(entries)} }}" if value else "{}"
    return json.dumps(plain(value))
