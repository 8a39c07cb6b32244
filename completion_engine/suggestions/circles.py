"""Rules that end text which repeats itself: lines, and any other period."""

from __future__ import annotations

import re
from itertools import pairwise

from completion_engine.suggestions.regions import CursorRegion, Reading
from completion_engine.suggestions.repeats import WORD, is_telling
from completion_engine.suggestions.rules import Fire

MAX_CYCLE_LINES = 4
NUM_CYCLES = 3
NUM_NUMBERED = 5  # lines in a row that differ only in their numbers
NUM_ALIKE = 4  # comment lines in a row that begin alike
NUM_ALIKE_WORDS = 4  # equal words at their beginning, comment mark included
CIRCLE_CHECK_EVERY = 8
CIRCLE_TAIL = 12
MIN_CIRCLE_CHARS = 60
MIN_CIRCLES, MIN_LONG_CIRCLES = 5, 3
_NUMBERS = re.compile(r"\d+")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_MIN_LETTERS = 8  # rows with fewer are numbers
_RULER = re.compile(r"[-=*#_~.+/\\|<>^\s\u2500-\u257f]*\Z")
LONG_CIRCLE = 20

_MAX_LINE_CHARS = 60  # characters before a ruler on the cursor's line


def repeated_lines(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires if one to four lines were written three times in a row, or more often for a short line.

    It also fires for lines that differ only in their numbers, and for comment lines that begin alike, unless
    lines near the cursor do the same.
    """
    lines: list[str] = []
    ends: list[int] = []
    num_comments = 0
    for index, line in enumerate(reading.lines):
        text = region.line_text(reading, index).rstrip()
        if not line.is_ended or not text:
            continue
        lines.append(text)
        ends.append(line.end)
        for period in range(1, MAX_CYCLE_LINES + 1):
            span = lines[-period * NUM_CYCLES :]
            is_cycle = len(span) == period * NUM_CYCLES and span[period:] == span[:-period]
            if is_cycle and any(map(is_telling, span)):
                keep = ends[-(NUM_CYCLES - 1) * period - 1]
                start = 0 if len(ends) <= NUM_CYCLES * period else ends[-NUM_CYCLES * period - 1]
                return Fire(line.end + 1, _before_open(reading, start, keep), "repeated-lines")
        masked = [_NUMBERS.sub("0", text) for text in lines[-NUM_NUMBERED:]]
        if len(masked) == NUM_NUMBERED and len(set(masked)) == 1 and not _is_numbered(region, masked[0]):
            return Fire(line.end + 1, ends[-NUM_NUMBERED], "repeated-lines")
        num_comments = num_comments + 1 if _is_comment(region, reading, index) else 0
        if num_comments >= NUM_ALIKE and _begin_alike(lines[-NUM_ALIKE:]) and not _has_alike(region):
            return Fire(line.end + 1, ends[-NUM_ALIKE], "repeated-lines")
    return None


def _is_comment(region: CursorRegion, reading: Reading, index: int) -> bool:
    """Whether a generated line holds nothing but a comment."""
    line = reading.lines[index]
    if line.inside is not None and line.inside.is_comment:
        return True
    return line.code_end < line.end and not region.line_code(reading, index).strip()


def _begin_alike(lines: list[str]) -> bool:
    """Return whether lines begin with the same words and have more words after them."""
    words = [line.split() for line in lines]
    begins = {tuple(each[:NUM_ALIKE_WORDS]) for each in words}
    return len(begins) == 1 and min(map(len, words)) > NUM_ALIKE_WORDS


def _has_alike(region: CursorRegion) -> bool:
    """Whether two lines in a row near the cursor begin alike."""
    lines = [line for line in region.before.split("\n")[:-1] if line.strip()][-40:]
    return any(
        _begin_alike(list(pair)) for side in (lines, region.lines_below[:40]) for pair in pairwise(side)
    )


def _is_numbered(region: CursorRegion, masked: str) -> bool:
    """Whether two lines in a row near the cursor look like `masked`, but for their numbers."""
    lines = [_NUMBERS.sub("0", line.rstrip()) for line in region.before.split("\n") if line.strip()]
    below = [_NUMBERS.sub("0", line.rstrip()) for line in region.lines_below]
    return any(pair == (masked, masked) for pair in pairwise([*lines[-40:], *below[:40]]))


def repeated_text(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires if the text has repeated itself: five times 60 characters, or three times a long text.

    A long text that differs in its numbers counts after five times. Every eighth character is checked to
    keep the cost low. Rulers such as `-----`, and text that the document repeats itself, are allowed.
    """
    fire = _circle(region, reading, reading.text, MIN_LONG_CIRCLES)
    masked = _DIGIT.sub("0", reading.text)
    return fire or (None if masked == reading.text else _circle(region, reading, masked, NUM_NUMBERED))


def _circle(region: CursorRegion, reading: Reading, text: str, num_rounds: int) -> Fire | None:
    """Fires if `text`, in which digits may be masked, has repeated a long part of itself so often."""
    is_masked = text is not reading.text
    for end in range(MIN_CIRCLE_CHARS, len(text) + 1, CIRCLE_CHECK_EVERY):
        tail = text[end - CIRCLE_TAIL : end]
        before = text.rfind(tail, 0, end - 1)
        if before < 0 or (_RULER.match(tail) and _may_be_ruler(region, text, end)):
            continue
        period = end - CIRCLE_TAIL - before
        if is_masked and period < LONG_CIRCLE:
            continue
        rounds = num_rounds if period >= LONG_CIRCLE else MIN_CIRCLES
        start = end - max(MIN_CIRCLE_CHARS, rounds * period)
        if start >= 0 and text[start + period : end] == text[start : end - period]:
            while start > 0 and text[start - 1] == text[start - 1 + period]:
                start -= 1
            above = _DIGIT.sub("0", region.before) if is_masked else region.before
            is_data = is_masked and len(_LETTER.findall(text, start, start + period)) < _MIN_LETTERS
            if not is_data and text[start : start + period] * 2 not in above:
                return Fire(end, _before_circle(region, reading, start, period), "repeated-text")
    return None


def _before_open(reading: Reading, start: int, end: int) -> int:
    """Return `end`; if the round from `start` to it opens a bracket each time, the end of what opens none."""
    opened = [e.entry for e in reading.events if e.kind == "open" and e.entry and e.start < end]
    closed = {e.entry for e in reading.events if e.kind == "close" and e.end <= end}
    left = [entry.start for entry in opened if entry.is_bracket and entry not in closed]
    return end if not left or left[-1] < start else len(reading.text[: left[0]].rstrip())


def _may_be_ruler(region: CursorRegion, text: str, end: int) -> bool:
    """Whether signs up to an offset may be a ruler: one sign, or signs on a line without words."""
    start = text.rfind("\n", 0, end) + 1
    line = text[start:end] if start else region.line_prefix[-_MAX_LINE_CHARS:] + text[:end]
    return len(set(text[end - CIRCLE_TAIL : end])) == 1 or not WORD.search(line)


def _before_circle(region: CursorRegion, reading: Reading, start: int, period: int) -> int:
    """Return the characters to keep of a text that repeats those from `start`: one round of them.

    Signs without a word are not kept in prose, nor is a comment that holds nothing else, nor, on the cursor's
    line, a bracket that each round opens.
    """
    text = reading.text
    comments = [e for e in reading.events if e.kind == "open" and e.entry and e.entry.is_comment]
    opened = max((event.start for event in comments if event.start <= start), default=-1)
    is_prose = opened >= 0 or region.language.is_marked
    if is_prose and not WORD.search(text[start : start + period]):
        is_bare = opened >= 0 and not WORD.search(text[opened:start])
        return len(text[: opened if is_bare else start].rstrip())
    keep = _whole_lines(text, start + period)
    return keep if "\n" in text[:keep] else _before_open(reading, start, keep)


def _whole_lines(text: str, num_chars: int) -> int:
    """Return the length of the complete lines in the first characters; all if no line is complete."""
    if text[num_chars : num_chars + 1] == "\n":
        return num_chars
    end = text.rfind("\n", 0, num_chars)
    return end if end >= 0 and text[:end].strip() else num_chars
