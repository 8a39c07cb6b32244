"""Rules that end a suggestion at the end of its line, statement, block or paragraph.

They decide by lines, brackets and indentation; a parser is asked only whether the text ends with a
definition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from completion_engine.languages.open_marks import CLOSING, language_at
from completion_engine.languages.table import language_of
from completion_engine.suggestions.regions import CursorRegion, Reading
from completion_engine.suggestions.rules import Fire, RuleName
from completion_engine.suggestions.statements import CLOSING_TAG, LineWalk, StatementWalk
from completion_engine.text_window import indent_width

Mode = Literal["line", "statement", "block", "text"]
IsDefinition = Callable[[str], bool]


def mode_of(region: CursorRegion) -> Mode:
    """Return how far a suggestion may go: to the end of a line, a statement, a block, or prose (`text`)."""
    inside = region.inside
    if region.cursor.is_single_line or (inside and inside.is_comment and inside.pair.ends_with_line):
        return "line"
    if region.language.is_text or (inside and inside.is_lasting_text):
        return "text" if region.is_blank_line else "line"
    if _is_within_text(region):
        return "line"
    if region.cursor.multiline == "always" or region.is_blank_line:
        return "block"
    return "statement"


def _is_within_text(region: CursorRegion) -> bool:
    """Whether the cursor is in code that begins on its line, within prose: `Dear {$user->`."""
    line_start = -len(region.line_prefix)
    around = [entry for entry in region.stack if entry.start < line_start]
    if len(around) == len(region.stack):
        return False
    return language_of(language_at(around, region.document_language)).is_text


def end_of_suggestion(
    region: CursorRegion, mode: Mode, reading: Reading, is_definition: IsDefinition
) -> Fire | None:
    """Fires where the line, statement, block or paragraph at the cursor is complete."""
    if mode == "line":
        end = reading.text.find("\n")
        is_single = region.cursor.is_single_line
        return None if end < 0 else Fire(end + 1, end, "single-line" if is_single else "end-of-statement")
    if mode == "text":
        return _end_of_text(region, reading)
    if mode == "statement":
        return StatementWalk(region, reading).end()
    return _Block(region, reading, is_definition).end()


def leaves_language(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires at a line of data that begins as no line of its language does, such as text or an import."""
    if region.language.line is None or region.inside is not None or not region.is_blank_line:
        return None
    depth, language = reading.lines[0].depth, region.language_id
    for index, line in enumerate(reading.lines):
        text = region.line_text(reading, index)
        is_here = language == region.language_id and not line.inside and line.depth <= depth
        language = line.language_end
        # A deeper line may go on with the value of the line before it.
        is_outer = indent_width(text) <= (region.indent if index else 0)
        if line.is_ended and is_here and is_outer and text.strip() and not region.language.line.match(text):
            return Fire(line.end + 1, max(0, line.start - 1), "end-of-block")
    return None


def _end_of_text(region: CursorRegion, reading: Reading) -> Fire | None:
    has_text = False
    for line in reading.lines:
        is_blank = not reading.text[line.start : line.end].strip()
        if is_blank and has_text and line.is_ended:
            return Fire(line.end + 1, line.start - 1, "end-of-paragraph")
        has_text = has_text or not is_blank
        if line.is_ended and region.inside and not line.inside_end:
            return Fire(line.end + 1, line.end, "end-of-block")
    return None


class _Block(LineWalk):
    """Walks from a blank line through the rest of its block, or through one paragraph or definition in it."""

    def __init__(self, region: CursorRegion, reading: Reading, is_definition: IsDefinition) -> None:
        super().__init__(region, reading)
        self.is_definition = is_definition
        self.depth = reading.lines[0].depth
        self.width = -1  # indentation of the first line written
        self.is_first_of_block = False
        self.header_width = -1

    def end(self) -> Fire | None:
        after_blank = False
        for index, line in enumerate(self.reading.lines):
            word, width = self.starts(index)
            is_blank = not self.region.line_text(self.reading, index).strip()
            if word and self.width < 0:
                if width < self.region.indent:
                    return Fire(self.seen(index, word), 0, "end-of-block")
                self._begin(width)
            elif word:
                rule = self._leaves(index, word, width, after_blank)
                if rule:
                    return Fire(self.seen(index, word), self.last_end, rule)
            after_blank = is_blank and self.width >= 0
            if not line.is_ended or is_blank:
                continue
            self.last_end = line.end
            rule = self._at_end(index, word)
            if rule:
                return Fire(line.end + 1, line.end, rule)
        return None

    def _begin(self, width: int) -> None:
        self.width = width
        above = self.region.line_above()
        header = self.region.line_above(width) if width else ""
        self.header_width = indent_width(header) if header else -1
        self.is_first_of_block = bool(above) and indent_width(above) < width

    def _leaves(self, index: int, word: str, width: int, after_blank: bool) -> RuleName | None:
        """Return the rule by which a line is outside of the block or paragraph; None if it is inside."""
        line, language = self.reading.lines[index], self.region.language
        if word in CLOSING or line.depth > self.depth or width > self.width:
            return None
        self.is_closing = self.closes(word, width, self.header_width)
        goes_on = self.is_closing or word in language.clauses
        if width < self.width:
            return None if goes_on and width == self.header_width else "end-of-block"
        if goes_on or word in language.closers or CLOSING_TAG.match(word):
            return None
        if after_blank and not self.is_first_of_block:
            return "end-of-paragraph"
        is_defined = word != "{" and self.is_definition(self.reading.text[: self.last_end])
        return "end-of-definition" if is_defined else None

    def _at_end(self, index: int, word: str) -> RuleName | None:
        """Return the rule by which a line is the last one; None if the text may continue."""
        line = self.reading.lines[index]
        if self.is_closing or line.depth_end < self.depth:
            return "end-of-block"
        if self._begins_what_stands_below(index):
            return "end-of-statement"
        is_closed = word in CLOSING and line.depth_end == self.depth and not line.inside_end
        is_defined = is_closed and self.is_definition(self.reading.text[: line.end])
        return "end-of-definition" if is_defined else None

    def _begins_what_stands_below(self, index: int) -> bool:
        """Return whether a line begins a block whose body is below the cursor already."""
        line, code = self.reading.lines[index], self.region.line_code(self.reading, index)
        has_begun = code.endswith(("{", "(", "[")) or (
            line.depth_end == self.depth and self.region.language.opener.search(code) is not None
        )
        below = self.region.lines_below
        num_deeper = (
            indent_width(below[0]) - indent_width(self.region.line_text(self.reading, index)) if below else 0
        )
        return has_begun and 0 < num_deeper <= self.region.indent_unit
