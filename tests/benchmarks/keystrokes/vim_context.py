"""The text around the cursor that llama.vim sends, and the part of an answer that it shows.

Pure functions of a buffer's lines. Follows the behaviour of llama.vim at a1c8e6e, faults included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NUM_LINES_ABOVE = 256
NUM_LINES_BELOW = 64


class Cursor(NamedTuple):
    """A position, both counted from 0."""

    row: int
    column: int


class LocalContext(NamedTuple):
    """The parts of a request. `line_rest` is the text right of the cursor."""

    prefix: str
    middle: str
    suffix: str
    num_indent: int
    line_rest: str

    @property
    def key(self) -> str:
        """The key of the cached answer."""
        return f"{self.prefix}{self.middle}Î{self.suffix}"

    @property
    def keys(self) -> list[str]:
        """The same without one, two and three of the first lines, for when the window has moved down."""
        found, prefix = [self.key], self.prefix
        for _ in range(3):
            prefix = prefix.partition("\n")[2]
            if not prefix:
                break
            found.append(self._replace(prefix=prefix).key)
        return found


class Hint(NamedTuple):
    """Ghost text. `lines` end with the text right of the cursor, as llama.vim keeps them."""

    text: str
    lines: tuple[str, ...]
    is_acceptable: bool


def local_context(
    lines: Sequence[str], cursor: Cursor, shown: Sequence[str] = (), last_indent: int = 0
) -> LocalContext:
    """The context at a cursor, or the one after the ghost text `shown` is accepted there."""
    row, line = cursor.row, lines[cursor.row]
    below = lines[row + 1 : row + 1 + NUM_LINES_BELOW]
    above = list(lines[max(0, row - NUM_LINES_ABOVE + max(0, len(shown) - 1)) : row])
    if shown:
        middle, rest, num_indent = line + shown[0], "", last_indent
        if len(shown) > 1:
            above += [line + shown[0], *shown[1:-1]]
            middle = shown[-1]
    elif line.strip():
        middle, rest = line[: cursor.column], line[cursor.column :]
        num_indent = len(line) - len(line.lstrip())
    else:
        middle, rest, num_indent = "", "", 0
    prefix, suffix = "\n".join(above) + "\n", "\n".join([rest, *below]) + "\n"
    if not below:
        suffix = rest + "\n\n"
    return LocalContext(prefix, middle, suffix, num_indent, rest)


def hint_of(content: str, lines: Sequence[str], cursor: Cursor) -> Hint:
    """The ghost text of an answer at a cursor: empty where it repeats the lines below."""
    line, shown = lines[cursor.row], content.split("\n")
    while shown and not shown[-1]:
        shown.pop()
    is_acceptable = bool(shown)
    shown = shown or [""]
    if not line.strip():
        num_lead = min(len(shown[0]) - len(shown[0].lstrip()), len(line))
        line, shown[0] = shown[0][:num_lead], shown[0][num_lead:]
    before, rest = line[: cursor.column], line[cursor.column :]
    if _is_repeated(shown, lines, cursor.row, before, rest):
        shown = [""]
    text = "\n".join(shown)
    shown[-1] += rest
    return Hint(text, tuple(shown), is_acceptable and bool("".join(shown).strip()))


def _is_repeated(shown: Sequence[str], lines: Sequence[str], row: int, before: str, rest: str) -> bool:
    following = list(lines[row + 1 :])
    if len(shown) > 1 and not shown[0] and list(shown[1:]) == following[: len(shown) - 1]:
        return True
    if len(shown) == 1 and shown[0] == rest:
        return True
    below = row + 1
    while below < len(lines) - 1 and not lines[below].strip():
        below += 1
    following = list(lines[below:])
    if not following or before + shown[0] != following[0]:
        return False
    if len(shown) == 2:
        return len(following) > 1 and following[1].startswith(shown[1])
    return list(shown[1:]) == following[1 : len(shown)]
