"""The person at the keyboard: what each stroke of a plan does to the buffer, and which suggestions are taken.

Owns the place in the plan and the brackets that the editor has closed in advance. Must not know the
protocol beyond a suggestion's text and range, nor the clock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from lsp_server.commands.text_buffer import Buffer
from lsp_server.commands.typing_plan import Span, Stroke, TypingPlan

Change = dict[str, Any]
How = Literal["full", "word"]

# Nobody takes a suggestion to be spared fewer characters than these.
MIN_FULL_CHARS = 3
MIN_WORD_CHARS = 6
# How many of the suggestions that are right are taken at once, not typed through.
FULL_EAGERNESS = 0.8
WORD_EAGERNESS = 0.5

WORD_END = re.compile(r"(?<=\w)(?!\w)")


@dataclass(frozen=True, slots=True)
class ShownSuggestion:
    """What the editor shows: `text` at the cursor, replacing `num_replaced` characters right of it."""

    text: str
    num_replaced: int


@dataclass(frozen=True, slots=True)
class AcceptKey:
    """A decision to take a suggestion: all of it, or its first words."""

    how: How
    text: str
    num_replaced: int


@dataclass(slots=True)
class Typist:
    """Carries out a plan stroke by stroke.

    `offset` characters of the file are right, left of the cursor; `num_wrong` more are typing errors.
    `closed` are the closing brackets that stand right of the cursor already, the innermost last.
    """

    plan: TypingPlan
    buffer: Buffer
    num_done: int = 0
    offset: int = 0
    num_wrong: int = 0
    closed: list[Span] = field(default_factory=list)

    @classmethod
    def at_start(cls, plan: TypingPlan, buffer: Buffer) -> Typist:
        """A typist before the first stroke; `buffer` is set to the plan's beginning."""
        buffer.left, buffer.right = plan.text[: plan.start], plan.text[plan.end :]
        return cls(plan, buffer, offset=plan.start)

    @property
    def next_stroke(self) -> Stroke | None:
        """The stroke that comes next, None at the end of the plan."""
        return self.plan.strokes[self.num_done] if self.num_done < len(self.plan.strokes) else None

    def check_integrity(self) -> None:
        """Assert that the buffer holds what the plan's file says, typing errors aside."""
        text, typed = self.plan.text, self.buffer.left
        right = "".join(text[span.start : span.end] for span in reversed(self.closed))
        assert typed[: len(typed) - self.num_wrong] == text[: self.offset], "left of the cursor"  # noqa: S101
        assert self.buffer.right == right + text[self.plan.end :], "right of the cursor"  # noqa: S101

    def press(self) -> Change | None:
        """Make the next stroke; returns the change of the text, None if only the cursor moved."""
        stroke = self.plan.strokes[self.num_done]
        self.num_done += 1
        match stroke.kind:
            case "typo":
                self.num_wrong += 1
                return self.buffer.write(stroke.text)
            case "erase":
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
        closer = self.plan.pairs.get(start)
        if closer is not None:
            self.closed.append(Span(closer, closer + 1))
            return self.buffer.write(text, self.plan.text[closer])
        if text[0] == "\n" and self._opens_block(start):
            span = self.plan.closer_after_enter(start - 1)
            self.closed[-1] = span
            return self.buffer.write(text, self.plan.text[span.start : span.end - 1])
        return self.buffer.write(text)

    def _opens_block(self, offset: int) -> bool:
        """Whether Enter at `offset` is pressed between a bracket and its closing one."""
        closer = self.plan.pairs.get(offset - 1)
        return bool(self.closed) and self.closed[-1].end - 1 == closer

    def consider(self, suggestion: ShownSuggestion) -> AcceptKey | None:
        """Whether the suggestion on the screen is taken before the next stroke, and how much of it."""
        stroke = self.next_stroke
        if stroke is None or self.num_wrong or not suggestion.text:
            return None
        if self._is_right(suggestion):
            wanted = len(suggestion.text) >= MIN_FULL_CHARS and stroke.mood < FULL_EAGERNESS
            return AcceptKey("full", suggestion.text, suggestion.num_replaced) if wanted else None
        words = suggestion.text[: self.num_right_chars(suggestion)]
        ends = [match.end() for match in WORD_END.finditer(suggestion.text) if match.end() <= len(words)]
        if ends and ends[-1] >= MIN_WORD_CHARS and stroke.mood < WORD_EAGERNESS:
            return AcceptKey("word", suggestion.text[: ends[-1]], 0)
        return None

    def _is_right(self, suggestion: ShownSuggestion) -> bool:
        """Whether taking all of it leaves the file as it shall be, closing brackets included."""
        end = self.offset + len(suggestion.text)
        replaced = sum(span.end - span.start for span in self.closed if span.start < end)
        cut = any(span.start < end < span.end for span in self.closed)
        in_plan = end <= self.plan.end and self.plan.text[self.offset : end] == suggestion.text
        return in_plan and not cut and replaced == suggestion.num_replaced

    def num_right_chars(self, suggestion: ShownSuggestion) -> int:
        """How many characters of a suggestion the file holds next, up to a bracket that is closed already."""
        limit = self.closed[-1].start if self.closed else self.plan.end
        wanted = self.plan.text[self.offset : min(limit, self.offset + len(suggestion.text))]
        pairs = zip(wanted, suggestion.text, strict=False)
        return next((n for n, (right, shown) in enumerate(pairs) if right != shown), len(wanted))

    def num_left_of_line(self, suggestion: ShownSuggestion) -> int:
        """How many characters of the line the file holds behind a suggestion; 0 behind a wrong one."""
        num_right = self.num_right_chars(suggestion)
        if self.num_wrong or num_right < len(suggestion.text):
            return 0
        at = self.offset + num_right
        end = self.plan.text.find("\n", at)
        return (self.plan.end if end < 0 else end) - at

    def wrong_part(self, suggestion: ShownSuggestion) -> tuple[int, str]:
        """What a suggestion says that the file will not hold: from which offset on, and what it says there.

        Nothing of it is wrong while a typing error stands: it goes on from that.
        """
        if self.num_wrong or self._is_right(suggestion):
            return self.offset + len(suggestion.text), ""
        num_right = self.num_right_chars(suggestion)
        return self.offset + num_right, suggestion.text[num_right:]

    def accept(self, acceptance: AcceptKey) -> Change:
        """Take a suggestion as decided; the strokes it spares are left out."""
        end = self.offset + len(acceptance.text)
        self.closed = [span for span in self.closed if span.start >= end]
        change = self.buffer.write(acceptance.text, num_replaced=acceptance.num_replaced)
        self._jump(end)
        return change

    def _jump(self, offset: int) -> None:
        self.offset = offset
        while (stroke := self.next_stroke) and stroke.before < offset:
            if stroke.kind == "type" and stroke.after > offset:
                break
            self.num_done += 1
