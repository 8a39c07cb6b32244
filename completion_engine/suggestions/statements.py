"""The walk over generated lines, and the end of the statement at the cursor."""

from __future__ import annotations

import re

from completion_engine.languages.open_marks import CLOSING
from completion_engine.suggestions.regions import CursorRegion, Reading, first_word
from completion_engine.suggestions.rules import Fire
from completion_engine.text_window import indent_width

CLOSING_TAG = re.compile(r"</")
_DIRECTIVE = re.compile(
    r"#(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma|region|endregion)?$"
)
_LONE_BRACE = re.compile(r"^\s*\{\s*$", re.MULTILINE)


class LineWalk:
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
        if _DIRECTIVE.match(word) and self.region.language.has_directives:
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
        is_closer = word in language.closers or (language.blocks == "tag" and bool(CLOSING_TAG.match(word)))
        return is_closer and width == block_width and not self.is_held(word, width)


class StatementWalk(LineWalk):
    """Walks from the cursor to the end of its statement, including the block that belongs to it."""

    def __init__(self, region: CursorRegion, reading: Reading) -> None:
        super().__init__(region, reading)
        self.has_block = False  # an indented block without brackets has begun
        self.pending = -1  # end of a line that the next line may continue

    def end(self) -> Fire | None:
        """Return where the statement ends; None if the text may go on."""
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
        if width > region.indent or (width == region.indent and not is_open):
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
