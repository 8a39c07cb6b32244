"""What stands around a cursor: its language, what is open there, and the lines that follow."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

from completion_engine.cutting.language_names import canonical_language
from completion_engine.cutting.lexer import CLOSING, Event, Open, Stack, end_mark, scan
from completion_engine.cutting.marks import marks_of
from completion_engine.cutting.parts import part_at
from completion_engine.request import Surroundings
from completion_engine.text_window import CursorContext, indent_width

_MAX_PART_CHARS = 20_000  # before the cursor, in which the beginning of a part is searched


class Need(NamedTuple):
    """A mark of the lines below that closes something before them.

    `width` is the indentation of its line, or -1 if it is not the first on it.
    """

    mark: str
    width: int


class CursorSurroundings:
    """The document around one cursor, cut to the part in the cursor's language. Found once per request.

    Offsets of marks count from the beginning of `before`.
    """

    def __init__(self, cursor: CursorContext) -> None:
        self.cursor = cursor
        self.document_language = canonical_language(cursor.language) if cursor.language else ""
        tail = cursor.prefix[-_MAX_PART_CHARS:]
        part = part_at(self.document_language, tail)
        self.language = part.language
        self.marks = marks_of(part.language)
        self.is_part, self.closes = part.closes is not None, part.closes
        begin = min(len(cursor.before), len(tail) - part.start) if self.is_part else len(cursor.before)
        self.before = cursor.before[len(cursor.before) - begin :]
        self.after_all = cursor.after
        self.after = cursor.after[: part.end(cursor.after)]
        self.ends_below = self.is_part and len(self.after) < len(cursor.after)
        self.line_prefix = cursor.line_prefix
        self.rest = cursor.line_suffix
        self.indent = indent_width(self.line_prefix)
        self.is_blank_line = not self.line_prefix.strip()
        self.line_start = max(0, len(self.before) - len(self.line_prefix))
        self.stack = list(_open_after(self.language, self.before[: self.line_start]))
        for _ in scan(self.language, self.before, self.stack, self.line_start):
            pass

    def is_closed_below(self, entry: Open) -> bool:
        """Return whether the document closes a string or comment that may run over line ends.

        It does not if another one begins before its end, or if the code that follows would be in strings.
        """
        text = self.before[max(self.line_start, entry.start + len(entry.mark)) :] + self.after
        if not self.after.strip():
            return entry.mark in self.marks.quotes
        if entry.mark in self.marks.quotes:
            at = text.find(entry.mark)
            line = text[text.rfind("\n", 0, max(at, 0)) + 1 : max(at, 0)]
            following = text[at + len(entry.mark) :][:1]
            if len(entry.mark) > 1 and "\n" in text[: max(at, 0)] and not line.strip():
                return not following.isalnum()  # a text after the mark is that of another string
            return self._num_stray(text, [entry]) < self._num_stray(text, [])
        opens, closes = text.find(entry.mark.rstrip("!")), text.find(end_mark(self.language, entry.mark))
        return closes >= 0 and (opens < 0 or closes < opens)

    @property
    def inside(self) -> Open | None:
        """The string or comment around the cursor; None in code."""
        top = self.stack[-1] if self.stack else None
        return top if top and top.kind in ("string", "comment") else None

    @property
    def kind(self) -> Surroundings:
        """The kind of text around the cursor. Code in a string is code."""
        if self.inside is None:
            return "code"
        return "comment" if self.inside.kind == "comment" else "string"

    @property
    def is_text(self) -> bool:
        """Whether the cursor is in prose, or in a string or comment."""
        return self.marks.is_prose or self.inside is not None

    def lasts(self, entry: Open | None) -> bool:
        """Whether a string or comment may run over line ends."""
        if entry is None or entry.kind not in ("string", "comment"):
            return False
        return entry.mark in self.marks.long or entry.mark not in (*self.marks.comments, *self.marks.quotes)

    @cached_property
    def lines_below(self) -> list[str]:
        """The non-blank lines below the cursor's in the document."""
        return [line for line in self.after_all.split("\n")[1:] if line.strip()]

    @cached_property
    def lines_above(self) -> list[str]:
        """The non-blank lines above the cursor's, without the blanks at their ends."""
        lines = self.cursor.before.split("\n")[:-1]
        return [line.rstrip() for line in lines if line.strip()]

    def scan(self, text: str) -> tuple[list[Event], Stack]:
        """Return the events of a text at the cursor, by offset in `before + text`, and what is left open."""
        stack = list(self.stack)
        return list(scan(self.language, self.before + text, stack, len(self.before))), stack

    def _num_stray(self, text: str, stack: Stack) -> tuple[int, int]:
        """Return how many strings, and then other marks, have no partner after what is open before a text."""
        num_unmatched = sum(event.kind == "unmatched" for event in scan(self.language, text, stack))
        return sum(self.lasts(entry) for entry in stack), num_unmatched

    @cached_property
    def lasting(self) -> list[Open]:
        """The strings and comments around the cursor that the document closes on a later line."""
        rest = self.after.partition("\n")[0]
        open_below = [entry for entry in self.stack if self.lasts(entry) and self.is_closed_below(entry)]
        stack = list(self.stack)
        for _ in scan(self.language, self.before + rest, stack, len(self.before)):
            pass
        return [entry for entry in open_below if entry in stack]

    @cached_property
    def needs(self) -> list[Need]:
        """The marks that the lines below the cursor's close and do not open, in order."""
        below = self.after[len(self.after.partition("\n")[0]) :]
        return [
            Need(below[event.start : event.end], _width_at(below, event.start))
            for event in scan(self.language, below, list(self.lasting))
            if event.kind == "unmatched"
        ]

    def num_unmatched(self, stack: Stack, source: str) -> int:
        """Return how many marks the lines below leave open, or close without need, after a text."""
        waiting = [entry for entry in stack if entry.kind in ("bracket", "element", "directive")]
        num = 0
        for need in self.needs:
            at = next((at for at in range(len(waiting) - 1, -1, -1) if closes(need, waiting[at], source)), -1)
            num += 1 if at < 0 else len(waiting) - at - 1
            del waiting[at if at >= 0 else len(waiting) :]
        return num + len(waiting)


def closes(need: Need, entry: Open, source: str) -> bool:
    """Return whether a mark below closes a bracket or element, whose line is indented alike."""
    is_bracket = entry.kind == "bracket" and CLOSING.get(need.mark) == entry.mark[-1]
    is_element = entry.kind == "element" and need.mark.lower().startswith(f"</{entry.mark}")
    is_directive = entry.kind == "directive" and need.mark.startswith("#")
    return is_directive or ((is_bracket or is_element) and need.width in (-1, width_of(source, entry)))


def width_of(source: str, entry: Open) -> int:
    """Return the indentation of the line that opens something."""
    return indent_width(source[source.rfind("\n", 0, entry.start) + 1 : entry.start])


def _width_at(text: str, at: int) -> int:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return -1 if line.strip() else indent_width(line)


@lru_cache(maxsize=8)
def _open_after(language: str, lines: str) -> tuple[Open, ...]:
    """The marks that are open after whole lines; the same while a line is typed."""
    stack: Stack = []
    for _ in scan(language, lines, stack):
        pass
    return tuple(stack)


def forget_texts() -> None:
    """Drop the text of all documents from the caches, after one of them was closed."""
    _open_after.cache_clear()
