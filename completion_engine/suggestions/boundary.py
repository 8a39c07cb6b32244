"""Owns where unfinished text may be cut: the ends of whole statements, else of whole words."""

from __future__ import annotations

import re
import unicodedata

from completion_engine.suggestions.lexer import CLOSING, Open
from completion_engine.suggestions.site import Reading, Site

_NUMBER = re.compile(r"\d[\w.]*(?:(?<=[eE])[+-]\w*)?")
_REST_IS_BLANK = re.compile(r"[^\S\n]*\n")
_JOINERS = "\u200d\ufe0e\ufe0f"


def boundary(site: Site, reading: Reading) -> int:
    """Length of the longest head of the text that ends where a reader would end it; 0 if there is none.

    Ends of statements count first: a line after which nothing opened in the text is still open. Where
    there is none yet, the end of a word, closing bracket or line that is known to be whole; a line that
    ends with an opening bracket is. Longer text never has a shorter boundary.
    """
    return _last_statement_end(site, reading) or _last_word_end(site, reading)


def head(site: Site, generated: str, num_chars: int) -> int:
    """Length of the longest such head of the first `num_chars` characters, which the others follow.

    What follows shows whether a word, a number or a line is whole.
    """
    following = generated[num_chars : num_chars + 1]
    is_decimal = following == "." and generated[:num_chars][-1:].isdigit()
    if following != "\n" and not is_decimal and not (following and _is_word_char(site, following)):
        following = " "
    return boundary(site, site.read(generated[:num_chars] + following))


def _last_statement_end(site: Site, reading: Reading) -> int:
    for index in range(len(reading.lines) - 1, -1, -1):
        line = reading.lines[index]
        code = site.line_code(reading, index)
        if not line.is_ended or not reading.text[line.start : line.end].strip():
            continue
        is_whole = line.depth_end <= reading.lines[0].depth and line.inside_end in ("", site.inside)
        traits = site.language
        if is_whole and not (
            traits.opener.search(code) or traits.unfinished.search(code) or traits.prelude.search(code)
        ):
            return line.end
    return 0


def _line_ends(site: Site, reading: Reading) -> set[int]:
    """Ends of lines at which nothing that the text opened is open but brackets at the ends of lines."""
    ends: set[int] = set()
    fresh: set[Open] = set()  # opened on the line at hand
    kept: set[Open] = set()  # on earlier lines, but for those brackets
    for event in reading.events:
        if event.kind == "open" and event.entry:
            fresh.add(event.entry)
        elif event.kind == "close" and event.entry:
            fresh.discard(event.entry)
            kept.discard(event.entry)
        elif event.kind == "newline":
            lasting = {entry for entry in fresh if entry.is_bracket or site.scanner.is_text(entry.mark)}
            kept |= {entry for entry in lasting if not _ends_line(reading.text, entry)}
            fresh.clear()
            if not kept:
                ends.add(event.start)
    return ends


def _ends_line(text: str, entry: Open) -> bool:
    return entry.is_bracket and _REST_IS_BLANK.match(text, entry.start + 1) is not None


def _last_word_end(site: Site, reading: Reading) -> int:
    text = reading.text
    end = 0
    position = 0
    closings = {event.end for event in reading.events if event.kind == "close" and event.end < len(text)}
    line_ends = _line_ends(site, reading)
    while position < len(text):
        if not _is_word_char(site, text[position]):
            if position in line_ends:
                end = position
            position += 1
            if text[position - 1] in CLOSING or position in closings:
                end = position
            continue
        start = position
        number = _NUMBER.match(text, start)
        position = number.end() if number else start + 1
        while position < len(text) and _is_word_char(site, text[position]):
            position += 1
        before = text[start - 1] if start else site.line_prefix[-1:]
        if position < len(text) and before not in ("\\", "&"):
            end = position
    return end


def _is_word_char(site: Site, char: str) -> bool:
    if char.isalnum() or char in site.language.word_marks or char in _JOINERS:
        return True
    return ord(char) > 0x2FF and unicodedata.category(char)[0] in "MS"
