"""Owns what the rules may see of a document: the cursor's place and a bounded window around it.

Nothing here looks further than the window, so its cost does not grow with the document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from completion_engine.text_window import is_closing_marks

if TYPE_CHECKING:
    from completion_engine.request import Multiline

MAX_LINES_BEFORE = 200
MAX_CHARS_BEFORE = 10_000
MAX_LINES_AFTER = 80
MAX_CHARS_AFTER = 4_000
TAB_WIDTH = 4

_TOP_LEVEL = re.compile(r"^[A-Za-z@_#]", re.MULTILINE)
_INDENTATION = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class CursorContext:
    """Where the cursor stands: the whole document left and right of it, with `\\n` line ends.

    `language` is an LSP language id, empty if unknown. `multiline` is the user's setting.
    """

    prefix: str
    suffix: str
    language: str = ""
    multiline: Multiline = "auto"

    @property
    def line_prefix(self) -> str:
        """The cursor's line, left of the cursor."""
        return self.prefix[self.prefix.rfind("\n") + 1 :]

    @property
    def line_suffix(self) -> str:
        """The cursor's line, right of the cursor."""
        end = self.suffix.find("\n")
        return self.suffix if end < 0 else self.suffix[:end]

    @property
    def has_rest_of_line(self) -> bool:
        """Whether more than closing brackets, quotes and punctuation stands right of the cursor."""
        return not is_closing_marks(self.line_suffix)

    @property
    def is_single_line(self) -> bool:
        """Whether a suggestion must end with its line."""
        if self.multiline == "always":
            return False
        return self.multiline == "never" or self.has_rest_of_line

    @property
    def before(self) -> str:
        """The end of `prefix`: whole lines, begun at a top-level line where there is one."""
        text = self.prefix[-MAX_CHARS_BEFORE:]
        start = len(text)
        for _ in range(MAX_LINES_BEFORE + 1):
            start = text.rfind("\n", 0, start)
            if start < 0:
                break
        if start < 0 and len(text) < len(self.prefix):
            start = text.find("\n")
        if start < 0 or len(text) == start + 1:
            return text
        top_level = _TOP_LEVEL.search(text, start + 1, (start + len(text)) // 2)
        return text[top_level.start() if top_level else start + 1 :]

    @property
    def after(self) -> str:
        """The beginning of `suffix`: the rest of the cursor's line and the lines that follow."""
        end = -1
        for _ in range(MAX_LINES_AFTER):
            end = self.suffix.find("\n", end + 1, MAX_CHARS_AFTER)
            if end < 0:
                return self.suffix[:MAX_CHARS_AFTER]
        return self.suffix[:end]


def leading_blanks(line: str) -> str:
    """The spaces and tabs a line begins with."""
    match = _INDENTATION.match(line)
    return match.group() if match else ""


def indent_width(line: str) -> int:
    """The columns a line is indented by, a tab counting up to the next multiple of `TAB_WIDTH`."""
    return len(leading_blanks(line).expandtabs(TAB_WIDTH))
