"""Owns what counts as repetition: of the text after the cursor, of the line above, of itself."""

from __future__ import annotations

import re

from completion_engine.suggestions.brackets import imbalance
from completion_engine.suggestions.cursor_context import indent_width
from completion_engine.suggestions.rules import Fire
from completion_engine.suggestions.site import Reading, Site

NUM_HEAD_CHARS = 20
MAX_HEAD_CHARS = 60
MAX_CYCLE_LINES = 4
NUM_CYCLES = 3
CIRCLE_CHECK_EVERY = 8
CIRCLE_TAIL = 12
MIN_CIRCLE_CHARS = 60
MIN_CIRCLES = 5
LONG_LINE = 20

_WORD = re.compile(r"[^\W_]")
_ONLY_ONCE = re.compile(
    r"^(?:[\s)\]}>;,:'\"`]*[)\]}][\s)\]};,:]*|pass|break|continue|return;?|end|fi|done|esac"
    r"|else:?|else \{|\} else \{|finally:?|try:|begin|default:|</[\w:.-]+>)$"
)

_MAX_ONCE_CHARS = 100


def is_telling(line: str) -> bool:
    """Whether a line says enough that a second copy of it is a repeat: not `}`, `0,` or `end`."""
    stripped = line.strip()
    return len(stripped) >= 4 and len(_WORD.findall(stripped)) >= 3 and not _stands_once(stripped)


def _stands_once(code: str) -> bool:
    """Whether a line of code cannot follow itself; no long one is such a line."""
    return len(code) <= _MAX_ONCE_CHARS and _ONLY_ONCE.match(code) is not None


def is_same_line(line: str, other: str) -> bool:
    """Whether one line repeats another.

    A long line does wherever it stands, a shorter one in the same column; so do words and brackets that
    cannot follow themselves there, such as `}`, `end` or `return`. Short data such as `0,` never does.
    """
    if line.strip() != other.strip() or not line.strip():
        return False
    if is_telling(line) and len(line.strip()) >= LONG_LINE:
        return True
    if not (is_telling(line) or _stands_once(line.strip())):
        return False
    return indent_width(line) == indent_width(other)


def repeats_next_line(site: Site, reading: Reading) -> Fire | None:
    """Fires when a whole generated line equals the next line that is not blank, or two do the next two."""
    below = site.lines_below()
    if not below or site.line_suffix.strip():
        return None
    previous = -1  # end of the text before a line that is too short to count alone
    for index, line in enumerate(reading.lines):
        text = site.line_text(reading, index)
        if not line.is_ended or not text.strip():
            continue
        keep = max(0, line.start - 1) if index else 0
        is_closer = index == 0 and text.strip() == below[0].strip() and text.strip() in site.language.closers
        counts_alone = not site.language.prelude.search(text)
        if is_closer or (counts_alone and is_same_line(text, below[0])):
            return Fire(line.end + 1, keep, "repeats-next-line")
        if previous >= 0 and text.rstrip() == below[1].rstrip():
            return Fire(line.end + 1, previous, "repeats-next-line")
        previous = keep if len(below) > 1 and text.rstrip() == below[0].rstrip() else -1
    return None


def repeats_suffix(site: Site, reading: Reading) -> Fire | None:
    """Fires when the text ends with the first 20 characters of the suffix, blanks before them left out.

    Where they begin a line, the rest of it counts too, up to 60 characters: neighbouring lines often
    begin alike. Decorators count with the line after them, for neighbours often share them.
    """
    stripped = site.after.lstrip()
    is_at_line_start = "\n" in site.after[: len(site.after) - len(stripped)]
    num_chars = NUM_HEAD_CHARS
    if is_at_line_start:
        line, _, others = stripped.partition("\n")
        num_chars = max(num_chars, min(len(line), MAX_HEAD_CHARS))
        if site.language.prelude.search(line):
            num_chars = len(line) + 1 + len(others.partition("\n")[0])
    head = stripped[:num_chars]
    if len(head) < NUM_HEAD_CHARS or len(set(_WORD.findall(head))) < 4:
        return None
    text = reading.text
    start = text.find(head)
    while start >= 0:
        line = (site.line_prefix + text[:start]).rpartition("\n")[2]
        if not (is_at_line_start and line.strip()):
            return Fire(start + len(head), start, "repeats-suffix")
        start = text.find(head, start + 1)
    return None


def rest_of_line_reached(site: Site, reading: Reading) -> Fire | None:
    """Fires when the text has arrived at the whole rest of the line, with its brackets in order."""
    rest = site.line_suffix.strip()
    if not site.cursor.has_rest_of_line or len(rest) < 3:
        return None
    start = reading.text.find(rest)
    while start >= 0:
        end = start + len(rest)
        seen = end + rest[-1].isalnum()  # a word that goes on is another word
        is_whole = seen <= len(reading.text) and not (seen > end and reading.text[end].isalnum())
        left_open = imbalance(site, reading.text[:end], len(site.line_suffix)) if is_whole else 0
        if is_whole and left_open <= imbalance(site, "", 0):
            return Fire(seen, end, "rest-of-line-reached")
        start = reading.text.find(rest, start + 1)
    return None


def repeated_lines(site: Site, reading: Reading) -> Fire | None:
    """Fires when one to four lines, one of them telling, have been written three times in a row."""
    lines: list[str] = []
    starts: list[int] = []
    for index, line in enumerate(reading.lines):
        text = site.line_text(reading, index).rstrip()
        if not line.is_ended or not text:
            continue
        lines.append(text)
        starts.append(line.end)
        for period in range(1, MAX_CYCLE_LINES + 1):
            span = lines[-period * NUM_CYCLES :]
            if (
                len(span) == period * NUM_CYCLES
                and span[period:] == span[:-period]
                and any(map(is_telling, span))
            ):
                return Fire(line.end + 1, starts[-(NUM_CYCLES - 1) * period - 1], "repeated-lines")
    return None


def repeated_text(_site: Site, reading: Reading) -> Fire | None:
    """Fires when the text has turned in a circle for 60 characters and five rounds.

    Looked at every eighth character, so that a check stays cheap. Rulers such as `-----` are no words
    and pass.
    """
    text = reading.text
    for end in range(MIN_CIRCLE_CHARS, len(text) + 1, CIRCLE_CHECK_EVERY):
        tail = text[end - CIRCLE_TAIL : end]
        before = text.rfind(tail, 0, end - 1)
        if before < 0 or not _WORD.search(tail):
            continue
        period = end - CIRCLE_TAIL - before
        start = end - max(MIN_CIRCLE_CHARS, MIN_CIRCLES * period)
        if start >= 0 and text[start + period : end] == text[start : end - period]:
            while start > 0 and text[start - 1] == text[start - 1 + period]:
                start -= 1
            return Fire(end, start + period, "repeated-text")
    return None


def repeats_line_above(site: Site, text: str) -> bool:
    """Whether text begins with a copy of the line above the cursor's; `text` is no empty text."""
    above = site.line_above()
    first = site.line_prefix + text.lstrip("\n").partition("\n")[0]
    if text.startswith("\n"):
        above, first = site.line_prefix or above, text.lstrip("\n").partition("\n")[0]
    return is_telling(first) and first.rstrip() == above.rstrip()
