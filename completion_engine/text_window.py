"""The window of a document's text that a target sees around the cursor: its size and its lines, cleaned.

Prompts, the choice of repository context and the redaction of text that leaves the machine use this window.
Pure functions of text. Does not depend on tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SIZES = {"cpu": (2_400, 800), "cuda": (12_000, 3_000), "remote": (12_000, 3_000)}
_CLOSING_MARKS = re.compile(r"[\s)\]}>'\"`;,:]*\Z")


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
