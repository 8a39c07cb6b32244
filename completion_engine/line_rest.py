"""Owns what editors put right of a cursor by themselves: the closing marks of what was opened before it.

The prompt hides such a rest of the line from the target, and the rules cover of it what a text closes itself.
"""

from __future__ import annotations

import re

_CLOSING_MARKS = re.compile(r"[\s)\]}>'\"`;,:]*\Z")


def is_closing_marks(rest: str) -> bool:
    """Whether a rest of the line is nothing but closing brackets, quotes, punctuation and blanks."""
    return _CLOSING_MARKS.match(rest) is not None
