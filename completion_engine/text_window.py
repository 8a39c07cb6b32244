"""The windows of a document's text around the cursor: the one that a target sees, and the one that rules see.

Prompts, the choice of repository context and the redaction of text that leaves the machine use `TextWindow`.
The rules that end and fit a suggestion use `CursorContext`, whose cost does not grow with the document. Pure
functions of text. Does not depend on tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Multiline = Literal["auto", "never", "always"]

_SIZES = {"cpu": (2_400, 800), "cuda": (12_000, 3_000), "remote": (12_000, 3_000)}
_CLOSING_MARKS = re.compile(r"[\s)\]}>'\"`;,:]*\Z")

MAX_LINES_BEFORE = 200
MAX_CHARS_BEFORE = 8_000
MAX_LINES_AFTER = 80
MAX_CHARS_AFTER = 3_200
MAX_REST_CHARS = 400  # characters of the cursor's line, right of the cursor
TAB_WIDTH = 4

_TOP_LEVEL = re.compile(r"^[A-Za-z@_#]", re.MULTILINE)
_INDENTATION = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class TextWindow:
    """At most `num_before` characters left of the cursor and `num_after` right of it."""

    num_before: int
    num_after: int

    @classmethod
    def for_device(cls, device: str, num_before: int = 0, num_after: int = 0) -> TextWindow:
        """Return the window for `cpu`, `cuda` or `remote`; a size other than 0 replaces the usual one."""
        usual_before, usual_after = _SIZES[device]
        return cls(num_before or usual_before, num_after or usual_after)

    def scaled(self, factor: float) -> TextWindow:
        """Return a window of this share of the size."""
        return TextWindow(round(factor * self.num_before), round(factor * self.num_after))

    def halved(self) -> TextWindow:
        """Return a window of half the size."""
        return TextWindow(self.num_before // 2, self.num_after // 2)

    def start(self, prefix: str) -> int:
        """Return where the visible text begins: at its first whole line, or within a very long one."""
        start = max(0, len(prefix) - self.num_before)
        return (prefix.find("\n", start) + 1 or start) if start else 0

    def cuts_line(self, prefix: str) -> bool:
        """Return whether the cursor's own line is so long that the window begins within it."""
        start = len(prefix) - self.num_before
        return start > 0 and prefix.find("\n", start) < 0

    def before(self, prefix: str) -> str:
        """Return the visible text left of the cursor."""
        return prefix[self.start(prefix) :]

    def after(self, suffix: str) -> str:
        """Return the visible text right of the cursor: whole lines, or the beginning of a long one.

        Editors insert closing marks by themselves. A rest of the line that consists of them is hidden, so
        that the target writes it and the prompt does not change with each bracket that is typed.
        """
        line_end = suffix.find("\n")
        rest = suffix if line_end < 0 else suffix[:line_end]
        if is_closing_marks(rest):
            suffix = suffix[len(rest) :]
        if len(suffix) <= self.num_after:
            return suffix
        return suffix[: suffix.rfind("\n", 0, self.num_after) + 1 or self.num_after]


def is_closing_marks(rest: str) -> bool:
    """Return whether a rest of the line is nothing but closing brackets, quotes, punctuation and blanks."""
    return _CLOSING_MARKS.match(rest) is not None


def without_surrogates(text: str) -> str:
    """Return text that any tokenizer takes: lone surrogates become U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True)
class CursorContext:
    """The position of the cursor: the whole document left and right of it, with `\\n` line ends.

    `language` is an LSP language id, empty if unknown. `multiline` is the user's setting.
    """

    prefix: str
    suffix: str
    language: str = ""
    multiline: Multiline = "auto"

    @cached_property
    def line_prefix(self) -> str:
        """The cursor's line, left of the cursor, within the window."""
        return self.before.rpartition("\n")[2]

    @cached_property
    def line_suffix(self) -> str:
        """The cursor's line, right of the cursor; for a long line only the beginning."""
        return self.suffix[:MAX_REST_CHARS].partition("\n")[0]

    @cached_property
    def has_rest_of_line(self) -> bool:
        """Whether more than closing brackets, quotes and punctuation stands right of the cursor."""
        return not is_closing_marks(self.line_suffix)

    @property
    def is_single_line(self) -> bool:
        """Whether a suggestion must end with its line."""
        if self.multiline == "always":
            return False
        return self.multiline == "never" or self.has_rest_of_line

    @cached_property
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

    @cached_property
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
