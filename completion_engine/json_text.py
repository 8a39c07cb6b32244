"""JSON that others wrote: what it says, or one kind of error.

Text in, values out. Knows no files.
"""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """What a text says. Raises ValueError where it is no JSON, or one nested deeper than can be read."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("JSON that is nested too deep") from error
