"""Rules that end a suggestion at the end of its line, statement, block or paragraph.

They decide by lines, brackets and indentation; a parser is asked only whether the text ends with a
definition.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from completion_engine.languages.scanner import CLOSING, language_at
from completion_engine.languages.table import language_of
from completion_engine.suggestions.regions import CursorRegion, Reading, first_word
from completion_engine.suggestions.rules import Fire, RuleName
from completion_engine.text_window import indent_width

Mode = Literal["line", "statement", "block", "text"]
IsDefinition = Callable[[str], bool]

_CLOSING_TAG = re.compile(r"</")
_DIRECTIVE = re.compile(
    r"#(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma|region|endregion)?$"
)
_LONE_BRACE = re.compile(r"^\s*\{\s*$", re.MULTILINE)


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
        return _Statement(region, reading).end()
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


class _Walk:
    """The common part of the two walks over generated lines."""

    def __init__(self, region: CursorRegion, reading: Reading) -> None:
        self.region = region
        self.reading = reading
        self.last_end = 0  # end of the last line that is not blank
        self.is_closing = False  # the current line closes the block, so the suggestion ends with it

    def starts(self, index: int) -> tuple[str, int]:
        """Return the first word and the indentation of a line of code; no word if it is incomplete or the
        line is not code.
        """
        line = self.reading.lines[index]
        text = self.region.line_text(self.reading, index)
        if line.inside and line.inside.is_lasting_text:
            return "", 0
        word = first_word(text, is_ended=line.is_ended)
        if self.region.language.has_directives and _DIRECTIVE.match(word):
            return "", 0
        return word, indent_width(text)

    def seen(self, index: int, word: str) -> int:
        """Return the number of characters that determine a line's first word."""
        line = self.reading.lines[index]
        start = self.reading.text.index(word, line.start) if index else line.start
        is_word = word not in CLOSING and word != "{"
        return min(start + len(word) + is_word, len(self.reading.text))

    def is_held(self, word: str, width: int) -> bool:
        """Return whether the suffix's next line, in the same column, closes the block with the same word or
        goes on with one of its clauses.
        """
        below = self.region.lines_below
        if not below or indent_width(below[0]) != width:
            return False
        found = first_word(below[0], is_ended=True)
        return found == word or (
            word in self.region.language.closers and found in self.region.language.clauses
        )

    def closes(self, word: str, width: int, block_width: int) -> bool:
        """Return whether a line closes the block whose header is indented by `block_width`."""
        language = self.region.language
        is_closer = word in language.closers or (language.blocks == "tag" and bool(_CLOSING_TAG.match(word)))
        return is_closer and width == block_width and not self.is_held(word, width)


class _Statement(_Walk):
    """Walks from the cursor to the end of its statement, including the block that belongs to it."""

    def __init__(self, region: CursorRegion, reading: Reading) -> None:
        super().__init__(region, reading)
        self.has_block = False  # an indented block without brackets has begun
        self.pending = -1  # end of a line that the next line may continue

    def end(self) -> Fire | None:
        for index, line in enumerate(self.reading.lines):
            fire = self._at_start(index) if index else None
            if fire is None and line.is_ended:
                fire = self._at_end(index)
            if fire:
                return fire
        return None

    def _at_start(self, index: int) -> Fire | None:
        word, width = self.starts(index)
        if not word:
            return None
        if self.pending >= 0:
            if not self._continues(index) or self.is_held(word, width):
                return Fire(self.seen(index, word), self.pending, "end-of-statement")
            self.pending = -1
        elif self._leaves(index, word, width):
            return Fire(self.seen(index, word), self.last_end, "end-of-block")
        return None

    def _at_end(self, index: int) -> Fire | None:
        line, code = self.reading.lines[index], self.region.line_code(self.reading, index)
        if not code.strip() and index:
            return Fire(line.end + 1, self.pending, "end-of-statement") if self.pending >= 0 else None
        self.last_end = line.end
        if self.is_closing:
            return Fire(line.end + 1, line.end, "end-of-block")
        is_held = index == 0 and self._goes_on_below()
        if not is_held:
            if self._is_open(index, code) or self._goes_on(index, code):
                return None
            if self._may_go_on(code):
                self.pending = line.end
                return None
        return Fire(line.end + 1, line.end, "end-of-statement")

    def _leaves(self, index: int, word: str, width: int) -> bool:
        """Return whether a line is outside of the statement."""
        line, region = self.reading.lines[index], self.region
        if word in CLOSING or line.innermost in ("(", "["):
            return False
        is_open = self.has_block or line.depth > region.line_depth
        if width > region.indent or not is_open:
            return False
        if self.closes(word, width, region.indent):
            self.is_closing = True
            return False
        return not (width == region.indent and (word in region.language.clauses or word == "{"))

    def _continues(self, index: int) -> bool:
        leading = self.region.language.leading
        text = self.region.line_text(self.reading, index).lstrip()
        return leading is not None and leading.match(text) is not None

    def _goes_on_below(self) -> bool:
        """Return whether the lines below the cursor already are the body of the cursor's line."""
        below = self.region.lines_below
        return bool(below) and indent_width(below[0]) > self.region.indent

    def _goes_on_beside(self, code: str) -> bool:
        """Return whether the next item of an unfinished line is below already, as in a list."""
        above = [e for e in self.region.stack if e.is_bracket and e.start < -len(self.region.line_prefix)]
        if not above or above[-1].start not in self.region.closed:
            return False
        below = self.region.lines_below
        has_next = bool(below) and below[0].strip()[0] not in CLOSING
        return code.endswith(",") or (has_next and above[-1].mark in ("(", "["))

    def _is_open(self, index: int, code: str) -> bool:
        """Whether a string or bracket of the statement is still open at a line's end.

        Brackets that the rest of the cursor's line closes count as closed on that line, unless their
        inside has only begun.
        """
        line, region = self.reading.lines[index], self.region
        if line.inside_end and line.inside_end.is_lasting_text:
            return True
        has_begun = index > 0 or code.endswith(("(", "[", "{", ","))
        num_closed = 0 if has_begun else region.num_auto_closed
        return line.depth_end - num_closed > region.line_depth

    def _goes_on(self, index: int, code: str) -> bool:
        """Return whether a line shows that its statement continues or begins a block that does."""
        line, language = self.reading.lines[index], self.region.language
        self.has_block = self.has_block or language.opener.search(code) is not None
        if self.has_block:
            return True
        if line.code_end == line.end and language.unfinished.search(code):
            return not self._goes_on_beside(code)
        return language.prelude.search(code) is not None

    def _may_go_on(self, code: str) -> bool:
        """Return whether only the next line can show if the statement continues."""
        if self.region.language.leading is None or code.endswith((";", ",")):
            return False
        return not code.endswith("}") or _LONE_BRACE.search(self.reading.text) is not None


class _Block(_Walk):
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
        if goes_on or word in language.closers or _CLOSING_TAG.match(word):
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
