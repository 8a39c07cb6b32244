"""Whether a suggestion ends where a person would stop reading: after a line, an argument, a member or a word.

Pure. It judges text alone, without a grammar, so that it judges every program's suggestions alike.
"""

from __future__ import annotations

import re

MIN_SIGNIFICANT_CHARS = 3

_OPENING = tuple("([{")
_UNFINISHED = tuple(".=+-*/%<>&|^~!@\\")
_KEYWORD_ALONE = re.compile(
    r"(?:return|let|const|var|if|elif|else if|for|while|def|func|fn|class|import|from|not|await|async|pub|mut"
    r"|new|in|is|and|or|raise|throw|yield|with|match|switch|case|static|struct|enum|type|impl|use|lambda)"
)
_QUOTE = re.compile(r"\\.|[\"`]|(?<!\w)'|'(?!\w)", re.DOTALL)


def ends_unit(before: str, text: str, after: str) -> bool:
    """Return whether `text` ends a unit between the line `before` it and what the file has `after` it.

    `after` begins with the next character of the file if the text is right, and is empty otherwise.
    """
    shown = text.rstrip()
    if sum(not character.isspace() for character in shown) < MIN_SIGNIFICANT_CHARS:
        return False
    if shown[-1:] and after[:1] and shown == text and _is_word(shown[-1]) and _is_word(after[0]):
        return False
    if shown.endswith((*_OPENING, *_UNFINISHED)) or _KEYWORD_ALONE.fullmatch(shown.strip()):
        return False
    line = f"{before.rpartition(chr(10))[2]}{shown}".rpartition("\n")[2]
    return not _is_in_string(line)


def num_beyond_word(before: str, text: str) -> int:
    """Return the characters of `text` after the rest of the word that the cursor stands in."""
    if not before or not _is_word(before[-1]):
        return len(text)
    rest = next((at for at, character in enumerate(text) if not _is_word(character)), len(text))
    return len(text) - rest


def is_one_word(text: str) -> bool:
    """Return whether a text is not empty and has nothing but letters, digits and underscores."""
    return bool(text) and all(map(_is_word, text))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_in_string(line: str) -> bool:
    """Return whether a quote is open at the end of a line; an apostrophe in a word opens none."""
    opened = ""
    for match in _QUOTE.finditer(line):
        quote = match.group()
        if quote == opened:
            opened = ""
        elif not opened and len(quote) == 1:
            opened = quote
    return bool(opened)
