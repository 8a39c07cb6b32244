"""When generation at a cursor ends: applies the rules of all families after each verified token.

It also finds where unfinished text may be cut: at the end of a statement, else of a word.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property

from completion_engine.languages.open_marks import CLOSING, Open
from completion_engine.suggestions.blocks import end_of_suggestion, leaves_language, mode_of
from completion_engine.suggestions.circles import repeated_lines, repeated_text
from completion_engine.suggestions.pairs import (
    end_of_part,
    ends_another_heredoc,
    opens_what_closes_below,
    quote_alone,
    stray_closing,
    stray_end_tag,
    unmatched_bracket,
)
from completion_engine.suggestions.regions import CursorRegion, Reading, first_word
from completion_engine.suggestions.repeats import (
    copies_lines_below,
    ends_as_in_a_chat,
    repeats_next_line,
    repeats_suffix,
    rest_of_line_reached,
)
from completion_engine.suggestions.rules import Fire, Stop
from completion_engine.suggestions.syntax import SyntaxWindow
from completion_engine.text_window import CursorContext, indent_width

_NUMBER = re.compile(r"\d[\w.]*(?:(?<=[eE])[+-]\w*)?")
_REST_IS_BLANK = re.compile(r"[^\S\n]*\n")
_JOINERS = "\u200d\ufe0e\ufe0f"
_RULES = (
    unmatched_bracket,
    stray_closing,
    stray_end_tag,
    opens_what_closes_below,
    end_of_part,
    ends_another_heredoc,
    quote_alone,
    leaves_language,
    repeats_next_line,
    copies_lines_below,
    repeats_suffix,
    rest_of_line_reached,
    repeated_lines,
    repeated_text,
    ends_as_in_a_chat,
)


class StopRules:
    """Decides at one cursor when to stop. Built once per completion.

    Each rule fires at the first character that decides it, and the first rule to fire decides. So a decision
    never changes when more text is generated, and does not depend on how the text was divided into calls.
    """

    def __init__(self, cursor: CursorContext) -> None:
        self.region = CursorRegion(cursor)
        self._mode = mode_of(self.region)
        self._definitions: dict[str, bool] = {}

    @cached_property
    def syntax(self) -> SyntaxWindow:
        """The parser's view of the text around the cursor, made when a rule first needs it."""
        return SyntaxWindow(self.region.language_id, *self.region.part)

    def check(self, generated: str) -> Stop | None:
        """Return where to stop in the text generated so far; None to go on."""
        reading = self.region.read(generated)
        fires = [fire for rule in _RULES if (fire := rule(self.region, reading))]
        end = end_of_suggestion(self.region, self._mode, reading, self._is_definition)
        first = min([*fires, end] if end else fires, key=_seen, default=None)
        return Stop(first.rule, first.keep) if first else None

    def boundary(self, generated: str) -> int:
        """Return how many characters to keep at a deadline: whole statements, else whole words, else 0."""
        return boundary(self.region, self.read(generated))

    def head(self, generated: str, num_chars: int) -> int:
        """Return the same within the first `num_chars` characters, given the characters after them."""
        return head(self.region, generated, num_chars)

    def is_within_statement(self, generated: str) -> bool:
        """Return whether the text so far is code without a complete statement."""
        region = self.region
        is_code = region.inside is None and not region.language.is_text
        return is_code and not _last_statement_end(region, self.read(generated))

    def read(self, generated: str) -> Reading:
        """Return the scan of generated text, which the rules share."""
        return self.region.read(generated)

    def _is_definition(self, text: str) -> bool:
        if text not in self._definitions:
            self._definitions[text] = self.syntax.ends_with_definition(text)
        return self._definitions[text]


def load_grammar(language: str) -> None:
    """Load the grammar of a language, so that the first completion does not wait 15 to 30 ms for it."""
    rules = StopRules(CursorContext("", "", language))
    rules.syntax.ends_with_definition("x")


def _seen(fire: Fire) -> int:
    return fire.seen


def boundary(region: CursorRegion, reading: Reading) -> int:
    """Return the length of the longest prefix of the text that ends at a good position; 0 if there is none.

    Ends of statements come first: line ends where nothing that the text opened is still open. Without one, it
    is the end of a word, closing bracket or line that is known to be complete; a line that ends with an
    opening bracket is complete. A comment after code is kept only as a whole. A longer text never has a
    smaller boundary.
    """
    num_chars = _last_statement_end(region, reading) or _last_word_end(region, reading)
    last = reading.lines[-1]
    is_comment = last.start <= last.code_end < num_chars and last.inside is None
    has_code = region.line_code(reading, len(reading.lines) - 1).strip()
    return len(reading.text[: last.code_end].rstrip()) if is_comment and has_code else num_chars


def head(region: CursorRegion, generated: str, num_chars: int) -> int:
    """Return the length of the longest such prefix within the first `num_chars` characters.

    The characters after them show whether a word, a number or a line is complete.
    """
    following = generated[num_chars : num_chars + 1]
    is_decimal = following == "." and generated[:num_chars][-1:].isdigit()
    if following != "\n" and not is_decimal and not (following and _is_word_char(region, following)):
        following = " "
    return boundary(region, region.read(generated[:num_chars] + following))


def _last_statement_end(region: CursorRegion, reading: Reading) -> int:
    for index in range(len(reading.lines) - 1, -1, -1):
        line = reading.lines[index]
        code = region.line_code(reading, index)
        if not line.is_ended or not reading.text[line.start : line.end].strip():
            continue
        traits = region.language
        is_whole = line.depth_end <= reading.lines[0].depth and (
            line.inside_end is None or line.inside_end == region.inside
        )
        if traits.blocks == "end" and index:  # the text may lack the word that closes its block
            is_whole = is_whole and _ends_outside(region, reading, index)
        goes_on = traits.unfinished.search(code) and not _ends_item(region, reading, index, code)
        if is_whole and not (traits.opener.search(code) or goes_on or traits.prelude.search(code)):
            return line.end
    return 0


def _ends_outside(region: CursorRegion, reading: Reading, index: int) -> bool:
    """Whether a line, or the next one that does not go on with its block, is indented as the cursor's."""
    if indent_width(region.line_text(reading, index)) <= region.indent:
        return True
    following, traits = region.line_text(reading, index + 1), region.language
    word = first_word(following, is_ended=reading.lines[index + 1].is_ended)
    is_outside = bool(word) and indent_width(following) <= region.indent
    return is_outside and word not in traits.clauses | traits.closers


def _ends_item(region: CursorRegion, reading: Reading, index: int, code: str) -> bool:
    """Whether a line ends with the comma of an item of the bracket around the cursor."""
    innermost = reading.lines[0].innermost
    if not code.endswith(",") or reading.lines[index].depth_end != reading.lines[0].depth:
        return False
    is_data = region.language.blocks != "brace" or region.line_above().rstrip().endswith(",")
    return innermost in ("(", "[") or (innermost == "{" and is_data)


def _line_ends(reading: Reading) -> set[int]:
    """Return the line ends at which nothing that the text opened is open, except brackets at the ends of
    lines.
    """
    ends: set[int] = set()
    fresh: set[Open] = set()  # opened on the current line
    kept: set[Open] = set()  # opened on earlier lines, without brackets at line ends
    for event in reading.events:
        if event.kind == "open" and event.entry:
            fresh.add(event.entry)
        elif event.kind == "close" and event.entry:
            fresh.discard(event.entry)
            kept.discard(event.entry)
        elif event.kind == "newline":
            lasting = {entry for entry in fresh if entry.is_bracket or entry.is_lasting_text}
            kept |= {entry for entry in lasting if not _ends_line(reading.text, entry)}
            fresh.clear()
            if not kept:
                ends.add(event.start)
    return ends


def _ends_line(text: str, entry: Open) -> bool:
    return entry.is_bracket and _REST_IS_BLANK.match(text, entry.start + 1) is not None


def _last_word_end(region: CursorRegion, reading: Reading) -> int:
    text = reading.text
    end = 0
    position = 0
    closings = {event.end for event in reading.events if event.kind == "close" and event.end < len(text)}
    line_ends = _line_ends(reading)
    while position < len(text):
        if not _is_word_char(region, text[position]):
            if position in line_ends:
                end = position
            position += 1
            if text[position - 1] in CLOSING or position in closings:
                end = position
            continue
        start = position
        number = _NUMBER.match(text, start)
        position = number.end() if number else start + 1
        while position < len(text) and _is_word_char(region, text[position]):
            position += 1
        before = text[start - 1] if start else region.line_prefix[-1:]
        if position < len(text) and before not in ("\\", "&"):
            end = position
    return end


def _is_word_char(region: CursorRegion, char: str) -> bool:
    if char.isalnum() or char in region.language.word_marks or char in _JOINERS:
        return True
    return ord(char) > 0x2FF and unicodedata.category(char)[0] in "MS"
