"""The interface of this package: ends a text while it is written, and cuts what was written once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from completion_engine.cutting import cleaning
from completion_engine.cutting.cleaning import decodable, without_controls
from completion_engine.cutting.fitting import Fitting
from completion_engine.cutting.lines import code_of, goes_on, lines_of, may_open_block, opens_block
from completion_engine.cutting.repeats import Reason, Stop, chat_start, copy_start, list_stop, loop_stop
from completion_engine.cutting.stopping import end_of, has_body_below, mode_of, whole_end
from completion_engine.cutting.surroundings import CursorSurroundings
from completion_engine.cutting.tree import SyntaxWindow
from completion_engine.cutting.units import WORD_END, UnitEnd, unit_ends
from completion_engine.text_window import CursorContext, indent_width

_GOES_ON_BELOW = re.compile(r"(?:\\|\s(?:[_+&]|&&|\|\||and|or))\Z")
_MAX_ROUNDS = 4
_PUNCTUATION = " \t.,;:!?`'\""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The text that replaces `num_replaced` characters after the cursor; `rule` is why it is empty."""

    text: str
    num_replaced: int
    rule: Reason | Literal[""]


class Cutter:
    """Ends and cuts text at one cursor. Built once per completion."""

    def __init__(self, cursor: CursorContext) -> None:
        self.around = CursorSurroundings(cursor)
        self._mode = mode_of(self.around)

    @cached_property
    def _fitting(self) -> Fitting:
        around = self.around
        return Fitting(around, SyntaxWindow(around.language, around.before, around.after))

    def stop(self, text: str) -> Stop | None:
        """Return where to end the text written so far; None to go on."""
        around = self.around
        found = [end_of(around, self._mode, text), self._end_of_part(text)]
        found += [loop_stop(around, text), list_stop(around, text)]
        ends_part = around.closes is not None and around.closes.search(text) is not None
        if not ends_part and (at := chat_start(around, text)) >= 0:
            found.append(Stop("chat", len(text[:at].rstrip())))
        if (at := copy_start(around, text)) >= 0:
            is_apart = text[:at].strip(_PUNCTUATION if around.is_text else None)
            found.append(Stop("repeats-document", at if is_apart else 0))
        return min((stop for stop in found if stop), key=lambda stop: stop.num_chars, default=None)

    def _end_of_part(self, text: str) -> Stop | None:
        """Return where a text ends the part in another language around the cursor."""
        found = self.around.closes.search(text) if self.around.closes else None
        if found is None or found.start() == found.end():
            return None
        end = text.find("\n", found.end())
        if self.around.ends_below:
            return Stop("end-of-block", len(text[: found.start()].rstrip()))
        return Stop("end-of-block", end) if end >= 0 else None

    def boundary(self, text: str) -> int:
        """Return how many characters of an unfinished text to keep: whole statements, else whole words."""
        ends = [found.end() for found in WORD_END.finditer(text)]
        return whole_end(self.around, text) or (ends[-1] if ends else 0)

    def units(self, text: str) -> Iterator[UnitEnd]:
        """Yield the positions at which a text that is shown while the user types may end."""
        return unit_ends(self.around, text)

    def is_within_statement(self, text: str) -> bool:
        """Return whether the text so far is code without a complete statement."""
        return not self.around.is_text and not whole_end(self.around, text)

    def cut(self, text: str) -> Suggestion:
        """Return the suggestion for a text that was ended; cutting it again does not change it."""
        around = self.around
        whole = decodable(text)
        is_cut = whole != text
        text = without_controls(whole)
        if is_cut:
            text = text[: self.boundary(text)]
        text, rule = self._tidied(text)
        if not text.strip():
            return Suggestion("", 0, "undecodable-text" if is_cut and rule == "blank" else rule)
        text, num_replaced = self._fitting.fitted(self._as_it_goes_on(text))
        text = self._without_head(text, num_replaced)
        if not text.strip() or self._leaves_body(text, num_replaced):
            return Suggestion("", 0, "does-not-fit")
        if num_replaced:
            text = text.rstrip()
        if text == around.rest[:num_replaced]:
            return Suggestion("", 0, "no-change")
        return Suggestion(text, num_replaced, "")

    def leaves_open(self, shown: str, num_replaced: int) -> bool:
        """Return whether what is shown leaves a bracket or string open that nothing closes."""
        return self._fitting.leaves_open(shown, num_replaced)

    def _tidied(self, text: str) -> tuple[str, Reason]:
        around = self.around
        rule: Reason = "blank"
        for _ in range(_MAX_ROUNDS):
            before = text
            text = cleaning.without_double_blank(around, text)
            text = cleaning.without_extra_indent(around, text)
            text = cleaning.with_document_indent(around, text, lines_of(around, text))
            stop = self.stop(text + "\n")
            if stop and stop.num_chars < len(text):
                text, rule = text[: stop.num_chars], stop.rule
            text = cleaning.without_trailing_blanks(around, text, lines_of(around, text))
            if text == before:
                break
        return text, rule

    def _as_it_goes_on(self, text: str) -> str:
        """Return the text without the end of a statement that the next line goes on with."""
        around = self.around
        following = around.after_all.partition("\n")[2].partition("\n")[0].strip()
        if around.rest.strip() or not following or not around.lines_above:
            return text
        mark = _GOES_ON_BELOW.search(around.lines_above[-1])
        if mark and indent_width(around.lines_below[0]) >= around.indent:
            while not text.endswith(mark[0]) and text and (around.is_blank_line or "\n" in text):
                text = text.rpartition("\n")[0].rstrip()
        return text

    def _without_head(self, text: str, num_replaced: int) -> str:
        """Return the text without a last line that opens a bracket above lines that are not in it.

        In data, without all lines from there on: they would take the keys below.
        """
        around, is_data = self.around, "data" in self.around.marks.traits
        if not (around.is_blank_line or is_data) or not around.lines_below or around.rest.strip():
            return text
        while self._fitting.leaves_open(text, num_replaced):
            opened = around.scan(text)[1]
            is_open = any(one.kind == "bracket" and one.start >= len(around.before) for one in opened)
            last = (around.line_prefix + text).rpartition("\n")[2]
            is_head = last.endswith(("(", "[", "{")) and indent_width(around.lines_below[0]) <= indent_width(
                last
            )
            if not is_open or not (is_data or is_head):
                break
            text = text.rpartition("\n")[0].rstrip()
        return text

    def _leaves_body(self, text: str, num_replaced: int) -> bool:
        """Return whether the cursor's line would be complete, although its body is below."""
        around = self.around
        if "\n" in text or around.is_text or around.is_blank_line or around.rest[num_replaced:].strip():
            return False
        lines = lines_of(around, text)
        code = code_of(around, text, lines, 0)
        num_above = sum(entry.start < around.line_start for entry in around.stack)
        is_open = lines[0].depth > num_above or lines[0].inside
        if not has_body_below(around) or is_open or opens_block(code) or goes_on(code):
            return False
        is_closed = any(need.mark == "}" and need.width == around.indent for need in around.needs)
        has_colons, is_data = "colons" in around.marks.traits, "data" in around.marks.traits
        return is_closed or (has_colons and (is_data or may_open_block(around.line_prefix.strip())))
