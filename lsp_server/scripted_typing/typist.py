"""The scripted typists: apply strokes to a text buffer, and decide which suggestions to accept.

`Typist` accepts any right text of three characters at once. `Reader` accepts what is worth a Tab, after a
look at it, and pauses where people do; docs/typists.md lists the studies that it follows.

Owns the position in the plan, and the brackets that the editor closed in advance. Knows positions
and content changes of the protocol. Has no access to the server or the clock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self

from lsp_server.scripted_typing.screen import (
    READ_MS,
    Buffer,
    Change,
    ScreenLog,
    Seen,
    ShownSuggestion,
    ends_unit,
    is_one_word,
    num_beyond_word,
)
from lsp_server.scripted_typing.typing_plan import Span, Stroke, TypingPlan
from lsp_server.workspace.documents import PositionEncoding

How = Literal["full", "word"]

# Suggestions that save fewer characters are typed through.
MIN_FULL_CHARS = 3
MIN_WORD_CHARS = 6
# The share of right suggestions that is accepted at once.
FULL_EAGERNESS = 0.8
WORD_EAGERNESS = 0.5

WORD_END = re.compile(r"(?<=\w)(?!\w)")

MIN_BEYOND_WORD = 8
PAUSE_AFTER_ACCEPTING = 2.0  # in units of the pace
TypistName = Literal["eager", "reader"]

_LINE_END = 2.0, 5.0  # pauses in units of the pace: before Enter, after it, and after the head of a block
_NEW_LINE = 3.0, 8.0
_NEW_BLOCK = 6.0, 14.0
_BLOCK_HEADS = tuple(":{(=>")


class AcceptKey(NamedTuple):
    """A decision to accept a suggestion: all of it, or its first words."""

    how: How
    text: str
    num_replaced: int


class Step(NamedTuple):
    """A key that was pressed, and the pause after it in units of the pace; `taken` is what it accepted.

    `change` is None if only the cursor moved.
    """

    change: Change | None
    pause: float
    taken: AcceptKey | None = None


@dataclass(slots=True)
class Typist:
    """Carries out a plan stroke by stroke.

    `offset` characters of the file are right, left of the cursor; `num_wrong` more are typing errors.
    `closed` are the closing brackets that already stand right of the cursor, the innermost last.
    """

    plan: TypingPlan
    buffer: Buffer
    num_done: int = 0
    offset: int = 0
    num_wrong: int = 0
    closed: list[Span] = field(default_factory=list)
    screen: ScreenLog = field(default_factory=ScreenLog)
    num_seen: int = 0  # characters left of the cursor when the screen was seen last

    @classmethod
    def at_start(cls, plan: TypingPlan, encoding: PositionEncoding = "utf-16") -> Self:
        """A typist before the first stroke."""
        buffer = Buffer(plan.text[: plan.start], plan.text[plan.end :], encoding)
        return cls(plan, buffer, offset=plan.start)

    @property
    def next_stroke(self) -> Stroke | None:
        """The next stroke, None at the end of the plan."""
        return self.plan.strokes[self.num_done] if self.num_done < len(self.plan.strokes) else None

    def check_integrity(self) -> None:
        """Assert that the buffer holds the plan's text, except for typing errors."""
        text, typed = self.plan.text, self.buffer.left
        right = "".join(text[span.start : span.end] for span in reversed(self.closed))
        assert typed[: len(typed) - self.num_wrong] == text[: self.offset], "left of the cursor"  # noqa: S101
        assert self.buffer.right == right + text[self.plan.end :], "right of the cursor"  # noqa: S101

    def step(self, shown: ShownSuggestion | None) -> Step | None:
        """Accept what is shown, or else make the next stroke; None at the end of the plan."""
        if shown is not None and (taken := self.consider(shown)) is not None:
            return Step(self.accept(taken), PAUSE_AFTER_ACCEPTING, taken)
        if (stroke := self.next_stroke) is None:
            return None
        return Step(self.press(), self.pause_after(stroke))

    def press(self) -> Change | None:
        """Make the next stroke; returns the change of the text, None if only the cursor moved."""
        stroke = self.plan.strokes[self.num_done]
        self.num_done += 1
        if stroke.kind == "typo":
            self.num_wrong += 1
            return self.buffer.write(stroke.text)
        if stroke.kind == "erase":
            self.num_wrong -= stroke.before == stroke.after
            self.offset = stroke.after
            return self.buffer.write("", num_erased=1)
        return self._type(stroke)

    def _type(self, stroke: Stroke) -> Change | None:
        if self.closed and self.closed[-1].start == self.offset:
            span = self.closed.pop()
            self.buffer.move(span.end - span.start)
            self._jump(span.end)
            return None
        # A suggestion may have brought in a part of the stroke: a line break without all its indentation.
        start, self.offset = self.offset, stroke.after
        text = self.plan.text[start : stroke.after]
        if (closer := self.plan.pairs.get(start)) is not None:
            self.closed.append(Span(closer, closer + 1))
            return self.buffer.write(text, self.plan.text[closer])
        opened = self.plan.pairs.get(start - 1)
        if (
            text[0] == "\n" and self.closed and self.closed[-1].end - 1 == opened
        ):  # Enter between two brackets
            span = self.closed[-1] = self.plan.closer_after_enter(start - 1)
            return self.buffer.write(text, self.plan.text[span.start : span.end - 1])
        return self.buffer.write(text)

    def pause_after(self, stroke: Stroke) -> float:
        """The pause after a stroke that was just made, in units of the pace."""
        return stroke.pause

    def see(self, suggestion: ShownSuggestion | None, visible_ms: float) -> None:
        """Note what is on the screen from the answer to a key until the next key."""
        left, num_seen = self.buffer.left, self.num_seen
        self.num_seen = len(left)
        typed = left[num_seen:] if len(left) >= num_seen else "\0"  # an erased letter agrees with nothing
        if suggestion is None:
            self.screen.saw(Seen(), typed, visible_ms)
            return
        num_wrong = len(self.wrong_part(suggestion)[1])
        self.screen.saw(Seen(suggestion.text, num_wrong, self.ends_unit(suggestion)), typed, visible_ms)

    def ends_unit(self, suggestion: ShownSuggestion) -> bool:
        """Whether a suggestion ends where a person would stop reading; see `screen`."""
        end = self.offset + len(suggestion.text)
        is_in_file = not self.num_wrong and self.plan.text[self.offset : end] == suggestion.text
        return ends_unit(
            self.buffer.left, suggestion.text, self.plan.text[end : end + 1] if is_in_file else ""
        )

    def consider(self, suggestion: ShownSuggestion) -> AcceptKey | None:
        """Whether the shown suggestion is accepted before the next stroke, and how much of it."""
        stroke = self.next_stroke
        if stroke is None or self.num_wrong or not suggestion.text or not self._is_ready():
            return None
        if self.is_right(suggestion):
            is_wanted = self._is_worth_a_key(suggestion) and stroke.mood < FULL_EAGERNESS
            return AcceptKey("full", *suggestion) if is_wanted else None
        num_right = self.num_right_chars(suggestion)
        ends = [match.end() for match in WORD_END.finditer(suggestion.text) if match.end() <= num_right]
        words = suggestion.text[: ends[-1]] if ends else ""
        is_wanted = self._are_worth_a_key(words) and stroke.mood < WORD_EAGERNESS
        return AcceptKey("word", words, 0) if is_wanted else None

    def _is_ready(self) -> bool:
        return True

    def _is_worth_a_key(self, suggestion: ShownSuggestion) -> bool:
        return len(suggestion.text) >= MIN_FULL_CHARS

    def _are_worth_a_key(self, words: str) -> bool:
        return len(words) >= MIN_WORD_CHARS

    def is_right(self, suggestion: ShownSuggestion) -> bool:
        """Whether accepting all of it leaves the file as planned, closing brackets included."""
        end = self.offset + len(suggestion.text)
        replaced = sum(span.end - span.start for span in self.closed if span.start < end)
        cut = any(span.start < end < span.end for span in self.closed)
        in_plan = end <= self.plan.end and self.plan.text[self.offset : end] == suggestion.text
        return in_plan and not cut and replaced == suggestion.num_replaced

    def num_right_chars(self, suggestion: ShownSuggestion) -> int:
        """Number of leading characters that the file holds next, up to a bracket that is already closed."""
        limit = self.closed[-1].start if self.closed else self.plan.end
        wanted = self.plan.text[self.offset : min(limit, self.offset + len(suggestion.text))]
        pairs = zip(wanted, suggestion.text, strict=False)
        return next((n for n, (right, shown) in enumerate(pairs) if right != shown), len(wanted))

    def wrong_part(self, suggestion: ShownSuggestion) -> tuple[int, str]:
        """The part of a suggestion that the file will not hold: its offset in the file, and its text.

        Nothing counts as wrong while a typing error stands: the suggestion continues from that error.
        """
        if self.num_wrong or self.is_right(suggestion):
            return self.offset + len(suggestion.text), ""
        num_right = self.num_right_chars(suggestion)
        return self.offset + num_right, suggestion.text[num_right:]

    def accept(self, acceptance: AcceptKey) -> Change:
        """Accept a suggestion as decided; the strokes that it saves are left out."""
        end, num_done = self.offset + len(acceptance.text), self.num_done
        self.closed = [span for span in self.closed if span.start >= end]
        change = self.buffer.write(acceptance.text, num_replaced=acceptance.num_replaced)
        self._jump(end)
        self.screen.accepted(len(acceptance.text), self.num_done - num_done)
        self.num_seen = len(self.buffer.left)
        return change

    def _jump(self, offset: int) -> None:
        self.offset = offset
        while (stroke := self.next_stroke) and stroke.before < offset:
            if stroke.kind == "type" and stroke.after > offset:
                break
            self.num_done += 1


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

    def _is_ready(self) -> bool:
        since = self.plan.text[self.accepted_end - 1 : self.offset + 1] if self.accepted_end > 0 else ""
        return self.screen.read_ms >= READ_MS and not is_one_word(since)

    def _is_worth_a_key(self, suggestion: ShownSuggestion) -> bool:
        return self.ends_unit(suggestion) or self._are_worth_a_key(suggestion.text)

    def _are_worth_a_key(self, words: str) -> bool:
        return num_beyond_word(self.buffer.left[-1:], words) >= MIN_BEYOND_WORD

    def accept(self, acceptance: AcceptKey) -> Change:
        """See `Typist`."""
        change = Typist.accept(self, acceptance)  # a class with slots is made anew, so `super()` is another
        self.accepted_end = self.offset
        return change


TYPISTS: dict[TypistName, type[Typist]] = {"eager": Typist, "reader": Reader}
