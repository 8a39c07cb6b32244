"""A typist who reads: accepts what is worth a Tab, after a look at it, and pauses where people do.

`Typist` accepts any right text of three characters at once. docs/typists.md lists the studies that it
follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lsp_server.scripted_typing.screen import READ_MS, is_one_word, num_beyond_word
from lsp_server.scripted_typing.typing_plan import Stroke
from lsp_server.scripted_typing.typist import (
    FULL_EAGERNESS,
    WORD_EAGERNESS,
    WORD_END,
    AcceptKey,
    Change,
    ShownSuggestion,
    Typist,
)

MIN_BEYOND_WORD = 8
TypistName = Literal["eager", "reader"]

_LINE_END = 2.0, 5.0  # pauses in units of the pace: before Enter, after it, and after the head of a block
_NEW_LINE = 3.0, 8.0
_NEW_BLOCK = 6.0, 14.0
_BLOCK_HEADS = tuple(":{(=>")


@dataclass(slots=True)
class Reader(Typist):
    """Accepts a text that ends a unit, or has `MIN_BEYOND_WORD` characters beyond the word at hand.

    The text must have been on the screen for `READ_MS`. Never accepts twice within one word.
    """

    accepted_end: int = -1

    def pause_after(self, stroke: Stroke) -> float:
        """See `Typist`. A person looks up at a line's end, and thinks at the start of one or of a block."""
        following = self.next_stroke
        if following is None or stroke.kind != "type":
            return stroke.pause
        if stroke.text.startswith("\n"):
            line = self.plan.text[: stroke.before].rpartition("\n")[2].rstrip()
            low, high = _NEW_BLOCK if line.endswith(_BLOCK_HEADS) else _NEW_LINE
        elif following.text.startswith("\n"):
            low, high = _LINE_END
        else:
            return following.pause
        return low + (high - low) * following.mood

    def consider(self, suggestion: ShownSuggestion) -> AcceptKey | None:
        """See `Typist`."""
        stroke = self.next_stroke
        if stroke is None or self.num_wrong or not suggestion.text or self.screen.read_ms < READ_MS:
            return None
        if self.accepted_end > 0 and is_one_word(self.plan.text[self.accepted_end - 1 : self.offset + 1]):
            return None
        if self.is_right(suggestion):
            is_worth = self.ends_unit(suggestion) or self._num_beyond(suggestion.text) >= MIN_BEYOND_WORD
            return AcceptKey("full", *suggestion) if is_worth and stroke.mood < FULL_EAGERNESS else None
        num_right = self.num_right_chars(suggestion)
        ends = [match.end() for match in WORD_END.finditer(suggestion.text) if match.end() <= num_right]
        is_worth = bool(ends) and self._num_beyond(suggestion.text[: ends[-1]]) >= MIN_BEYOND_WORD
        if is_worth and stroke.mood < WORD_EAGERNESS:
            return AcceptKey("word", suggestion.text[: ends[-1]], 0)
        return None

    def _num_beyond(self, text: str) -> int:
        return num_beyond_word(self.buffer.left[-1:], text)

    def accept(self, acceptance: AcceptKey) -> Change:
        """See `Typist`."""
        change = Typist.accept(self, acceptance)  # a class with slots is made anew, so `super()` is another
        self.accepted_end = self.offset
        return change


TYPISTS: dict[TypistName, type[Typist]] = {"eager": Typist, "reader": Reader}
