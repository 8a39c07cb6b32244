"""Lines of text, each with its own end (`\n`, `\r\n` or `\r`): splits text into them, and measures them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# A keystroke in a longer line would cost too much.
MAX_LINE_CHARS = 128 * 1024

# Text is searched in parts of this size: one library call holds the interpreter for the whole of its text.
PIECE_CHARS = 64 * 1024

# Possessive: with backtracking, a long last line without an end would be read three times.
_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++")


def split_lines(text: str) -> list[str]:
    """Return the lines of `text` with their ends; the last one, without an end, may be empty."""
    lines: list[str] = []
    for piece in _pieces(text):
        lines += _LINE.findall(piece)
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return lines


def _pieces(text: str) -> Iterator[str]:
    """Split `text` into parts that each end after a line feed, except the last one."""
    start = 0
    while len(text) - start > PIECE_CHARS and (end := text.find("\n", start + PIECE_CHARS)) >= 0:
        yield text[start : end + 1]
        start = end + 1
    yield text[start:]


def paired(text: str) -> str:
    """Join adjacent halves of a surrogate pair in `text` to one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def contents_of(lines: Sequence[str]) -> tuple[str, ...]:
    """Return lines without their ends."""
    return tuple(line.rstrip("\r\n") for line in lines)


def num_chars_in(line: str) -> int:
    """Return the number of characters of a line, its end counted as one."""
    return len(line) - ends_with_crlf(line)


def is_long(line: str) -> bool:
    """Return whether a line is too long for suggestions."""
    return len(line) > MAX_LINE_CHARS


def ends_with_crlf(line: str) -> bool:
    """Return whether the end of a line is two characters."""
    return line.endswith("\r\n")
