"""The last step before a completion is shown: cleans it, fits it to the rest of the line, or drops it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from completion_engine.languages.open_marks import Stack
from completion_engine.languages.syntax import Pair
from completion_engine.suggestions import cleaning
from completion_engine.suggestions.characters import decodable, without_controls
from completion_engine.suggestions.regions import CursorRegion
from completion_engine.suggestions.repeats import repeats_line_above
from completion_engine.suggestions.rest_of_line import imbalance, num_covered
from completion_engine.suggestions.rules import RuleName
from completion_engine.suggestions.slots import (
    before_extra_closing,
    before_line_end,
    before_separator,
    within_slot,
)
from completion_engine.suggestions.stopping import StopRules
from completion_engine.text_window import indent_width

_COMPLETE = re.compile(r"[\w\"')\]};]$")
_HEADER = re.compile(r"\s*(?:\}\s*)?(?:if|else|for|\w*for_?each\w*|while|do|using|lock|unless|until|when)\b")
_GOES_ON = (
    r"throws|extends|implements|where|with|requires|is|as|in|and|or|from|if|for|else|returns|public|private"
    r"|external|internal|view|pure|payable|virtual|override|noexcept|const|async"
)
_BEGINS_CODE = re.compile(rf"[ \t]*(?:(?!(?:{_GOES_ON})\b)[\w@]|- )")
_MAX_ROUNDS = 8
_MAX_TRIMS = 24
_MAX_PARSED = 12  # times that a text is parsed
_MAX_MARKS_READ = 8_000  # while a text is shortened; human text has fewer


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The text that replaces the first `num_replaced` characters of the suffix; `rule` is why it is empty."""

    text: str
    num_replaced: int
    rule: RuleName | Literal[""]


def polish(rules: StopRules, generated: str) -> Suggestion:
    """Return the suggestion for generated text that has been cut where it ends, at the cursor of `rules`.

    An incomplete last character is dropped. Polishing text that was polished before does not change it.
    """
    region = rules.region
    text = decodable(generated)
    is_cut = text != generated
    text = without_controls(text)
    if is_cut:
        text = text[: rules.boundary(text)]
    text, rule = _tidy(rules, text)
    if not text:
        return Suggestion("", 0, "undecodable-text" if is_cut and rule == "blank" else rule)
    if repeats_line_above(region, text):
        return Suggestion("", 0, "repeats-line-above")
    text = _settled(rules, text)
    if not text.strip() or _leaves_block_below(region, text):
        return Suggestion("", 0, "does-not-fit-rest-of-line")
    text = _without_broken_end(rules, text)
    num_replaced = num_covered(region, text)
    if num_replaced:
        text = text.rstrip()
    if text == region.line_suffix[:num_replaced]:
        return Suggestion("", 0, "no-change")
    return Suggestion(text, num_replaced, "")


def _without_broken_end(rules: StopRules, text: str) -> str:
    """Return the text up to the last of its lines with which the document is as correct as without it.

    A parser decides, if there is one and it found no error before. Otherwise, nothing may be left open. The
    text is kept if that leaves none of its lines, because a parser may know less than a person.
    """
    region = rules.region
    if "\n" not in text or region.line_suffix.strip() or _leaves_part(region, text):
        return text
    syntax = rules.syntax
    shorter = text if syntax.has_error("", to_next_line=True) is False else ""
    for _ in range(_MAX_PARSED):
        if not shorter or (has_error := syntax.has_error(shorter, to_next_line=True)) is None:
            break
        if not has_error:
            return shorter
        shorter = shorter[: max(0, shorter.rfind("\n"))].rstrip()
    return _before_open(region, text)


def _leaves_part(region: CursorRegion, text: str) -> bool:
    """Whether a text is prose, or ends the part in another language around the cursor."""
    closed = (event.entry for event in region.read(text + "\n").events if event.kind == "close")
    is_part_closed = any(entry.pair.kind == "region" and entry.start < 0 for entry in closed if entry)
    return region.language.is_text or is_part_closed


def _before_open(region: CursorRegion, text: str) -> str:
    """Return the text up to the last line end at which nothing that the text opened is open, if it leaves
    something open; all of it if there is no such line end, or if its last line begins a block.
    """
    reading = region.read(text)
    opened = [entry for entry in reading.stack if entry.start >= 0 and not _ends_by_itself(entry.pair)]
    if not opened or not text[opened[-1].start + len(opened[-1].mark) :].strip():
        return text
    end = text.rfind("\n", 0, opened[0].start)
    return text[:end].rstrip() or text if end >= 0 else text


def _ends_by_itself(pair: Pair) -> bool:
    """Whether the end of the line or a smaller indentation ends it."""
    return pair.ends_with_line or "<width>" in pair.closes


def _leaves_block_below(region: CursorRegion, text: str) -> bool:
    """Return whether the cursor's line would be complete, although the next line is indented deeper.

    The document has a block there, or a list or value of YAML, so the line must begin it.
    """
    below = region.lines_below[:1]
    is_deeper = bool(below) and indent_width(below[0]) > region.item_indent(region.line_prefix)
    has_block = is_deeper and _BEGINS_CODE.match(below[0])
    is_code = region.inside is None and region.language.marks_blocks and not region.is_blank_line
    if not has_block or not is_code or "\n" in text:
        return False
    reading = region.read(text)
    is_last = not region.line_suffix[num_covered(region, text) :].strip()
    return is_last and _is_complete(region, region.line_code(reading, 0), reading.stack)


def _is_complete(region: CursorRegion, code: str, stack: Stack) -> bool:
    """Whether a line ends with a word or a closing mark, and leaves nothing open."""
    traits = region.language
    if traits.opener.search(code) or traits.unfinished.search(code) or _HEADER.match(code):
        return False
    is_closed = all(entry.start < -len(region.line_prefix) for entry in stack)
    return is_closed and _COMPLETE.search(code) is not None


def _tidy(rules: StopRules, text: str) -> tuple[str, RuleName]:
    """Return the text after all cleaning rules until none changes it, and the last rule that cut it."""
    region = rules.region
    rule: RuleName = "blank"
    for _ in range(_MAX_ROUNDS):
        before = text
        text = cleaning.without_echo(region, text)
        text = cleaning.without_doubled_brace(region, text)
        text = cleaning.without_doubled_mark(region, text)
        text = cleaning.without_double_blank(region, text)
        text = cleaning.without_extra_indent(region, text)
        text = cleaning.with_editor_indent(region, text)
        stop = rules.check(text + "\n")
        if stop and stop.num_chars < len(text):
            rule = stop.rule
            text = text[: stop.num_chars]
        text = cleaning.without_trailing_blanks(region, text)
        text = cleaning.without_open_part(region, cleaning.without_last_separator(region, text))
        if text == before:
            break
    return text, rule


def _settled(rules: StopRules, text: str) -> str:
    """Return the text that fits the rest of the line, cleaned again each time that this shortens it."""
    for _ in range(_MAX_ROUNDS):
        fitting = _fitting(rules, text)
        if fitting in ("", text):
            return fitting
        text = _tidy(rules, fitting)[0]
    return text


def _fitting(rules: StopRules, text: str) -> str:
    """Return the longest prefix of the text that fits the rest of the line; empty if none does."""
    region = rules.region
    if not region.cursor.has_rest_of_line:
        return before_extra_closing(region, before_separator(region, text))
    text = before_line_end(region, within_slot(region, text))
    if _fits(rules, text):
        return text
    most = region.num_marks_read + _MAX_MARKS_READ
    for _ in range(_MAX_TRIMS):
        if region.num_marks_read > most or rules.syntax.is_too_slow:
            break
        text = cleaning.without_trailing_blanks(region, text[: _shorter(rules, text)])
        if not text:
            return ""
        if _fits(rules, text) and not _is_glued(region, text):
            return text
    return ""


def _shorter(rules: StopRules, text: str) -> int:
    """Return the end of the text before its last mark or word."""
    text = text.rstrip()
    end = rules.boundary(text)
    return end if end < len(text) else rules.boundary(text[:-1])


def _fits(rules: StopRules, text: str) -> bool:
    region, syntax = rules.region, rules.syntax
    num_replaced = num_covered(region, text)
    if imbalance(region, text, num_replaced) > imbalance(region, "", 0):
        return False
    # A syntax error counts only if the line is known to parse without the text.
    return not syntax.has_error(text, num_replaced) or syntax.has_error("") is not False


def _is_glued(region: CursorRegion, text: str) -> bool:
    rest = region.line_suffix[num_covered(region, text) :]
    return text[-1].isalnum() and rest[:1].isalnum()
