"""Open documents as line arrays that are edited in place, and frozen snapshots of them.

The text is as the client has it, line ends included. Only snapshots leave the event loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from completion_engine.text_window import without_surrogates
from lsp_server.workspace.lines import contents_of, ends_with_crlf, is_long, num_chars_in, paired, split_lines

MAX_PREFIX_CHARS = 64_000
MAX_SUFFIX_CHARS = 16_000

# A larger document, or one with a long line, gets no suggestions: a keystroke would cost too much.
MAX_DOCUMENT_CHARS = 4 * 1024 * 1024

# The text of a much larger document is dropped until the client sends it whole again.
MAX_KEPT_CHARS = 16 * 1024 * 1024

# The cost of a line besides its characters.
CHARS_OF_LINE = 64

# The first line of a bounded prefix is a multiple of this, so that it stays while the user types.
PREFIX_STEP_LINES = 64

LineColumn = tuple[int, int]
PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the text between two positions (line, code units in the client's encoding)."""

    start: LineColumn
    end: LineColumn
    text: str


@dataclass(frozen=True, slots=True)
class LineChange:
    """Lines `old`, from line `top` on, became `new`; all without line ends."""

    top: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentSnapshot:
    """A cursor position in one version of a document.

    `prefix` and `suffix` are the bounded text around it with `\n` line ends; `line` is 0-based and `column`
    an index into that line. `num_chars` counts the whole document, a line end as one.
    """

    uri: str
    language: str
    version: int
    line: int
    column: int
    prefix: str
    suffix: str
    num_chars: int

    def text_before(self) -> str:
        """The cursor's line up to the cursor."""
        return self.prefix[self.prefix.rfind("\n") + 1 :]

    def text_after(self) -> str:
        """The cursor's line from the cursor on, without its end."""
        return self.suffix.partition("\n")[0]


class Document:
    """One open document.

    `lines` is never empty; each line has its own end (`\n`, `\r\n` or `\r`), and only the last line has none.
    `newline` is the most frequent end, and is used for inserted text. The time of an edit grows with the text
    that it replaces and inserts, not with the document. `is_lost` is set once the document was so large that
    its lines were dropped.
    """

    __slots__ = (
        "is_lost",
        "language",
        "lines",
        "newline",
        "num_chars",
        "num_crlf",
        "num_long_lines",
        "uri",
        "version",
    )

    def __init__(self, uri: str, language: str, version: int, text: str) -> None:
        self.uri = uri
        self.language = language
        self.version = version
        self.newline = "\n"
        self.replace(text)

    def replace(self, text: str) -> None:
        """Replace the whole content by `text`."""
        self.is_lost = False
        self.lines = split_lines(paired(text)) if len(text) <= MAX_KEPT_CHARS else [text]
        self.num_chars = sum(map(num_chars_in, self.lines))
        self.num_crlf = sum(map(ends_with_crlf, self.lines))
        self.num_long_lines = sum(map(is_long, self.lines))
        self._follow_text()

    @property
    def is_too_large(self) -> bool:
        """Whether a keystroke in it would take too long for suggestions, or its text was dropped."""
        return self.is_lost or self.num_chars > MAX_DOCUMENT_CHARS or self.num_long_lines > 0

    def apply(self, edit: Edit, encoding: PositionEncoding) -> LineChange:
        """Apply one edit and return the lines that it changed.

        Positions beyond an end are moved to that end; a reversed range is put in order.
        """
        first, second = self.place(edit.start, encoding), self.place(edit.end, encoding)
        start, end = min(first, second), max(first, second)
        left = self.lines[start[0]][: start[1]]
        right = self.lines[end[0]][end[1] :]
        top, bottom = start[0], end[0] + 1
        may_join_above = not (left or edit.text) and right.startswith("\n")
        if start[0] == end[0] and not may_join_above and "\n" not in edit.text and "\r" not in edit.text:
            # A long line is not searched for line ends if the typed text contains none.
            middle = paired(f"{left[-1:]}{edit.text}{right[:1]}")
            return self._splice(top, bottom, [f"{left[:-1]}{middle}{right[1:]}"])
        new = paired(f"{left}{edit.text}{right}")
        if new.startswith("\n") and top and self.lines[top - 1].endswith("\r"):
            top -= 1
            new = self.lines[top] + new
        chunk = split_lines(new)
        if bottom < len(self.lines):
            # The replaced lines ended in a line end, and so does the chunk: the rest after it is not a line.
            chunk.pop()
        return self._splice(top, bottom, chunk)

    def num_touched_chars(self, edit: Edit) -> int:
        """Return about how many characters are read to apply an edit."""
        first, last = sorted(min(line, len(self.lines) - 1) for line, _ in (edit.start, edit.end))
        return (
            len(edit.text) + len(self.lines[first]) + len(self.lines[last]) + CHARS_OF_LINE * (last - first)
        )

    def release(self) -> None:
        """Drop the text, until the client sends the whole text again."""
        self.is_lost = True
        self.lines, self.num_chars, self.num_crlf, self.num_long_lines = [""], 0, 0, 0

    def _splice(self, top: int, bottom: int, chunk: list[str]) -> LineChange:
        """Replace the lines from `top` to before `bottom` by those of `chunk`; return the change."""
        old = self.lines[top:bottom]
        self.num_chars += sum(map(num_chars_in, chunk)) - sum(map(num_chars_in, old))
        self.num_crlf += sum(map(ends_with_crlf, chunk)) - sum(map(ends_with_crlf, old))
        self.num_long_lines += sum(map(is_long, chunk)) - sum(map(is_long, old))
        self.lines[top:bottom] = chunk
        self._follow_text()
        return LineChange(top, contents_of(old), contents_of(chunk))

    def copy(self) -> Document:
        """Return a copy that can be changed independently."""
        twin = Document(self.uri, self.language, self.version, "")
        twin.lines, twin.num_chars, twin.newline = self.lines.copy(), self.num_chars, self.newline
        twin.num_crlf, twin.num_long_lines, twin.is_lost = self.num_crlf, self.num_long_lines, self.is_lost
        return twin

    def place(self, place: LineColumn, encoding: PositionEncoding) -> LineColumn:
        """Return the line and index of a client's position in this document."""
        line, units = place
        if line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        return line, index_of(self.content(line), units, encoding)

    def content(self, line: int) -> str:
        """Return a line without its end."""
        return self.lines[line].rstrip("\r\n")

    def contents(self) -> tuple[str, ...]:
        """Return all lines without their ends."""
        return contents_of(self.lines)

    def snapshot(self, line: int, column: int) -> DocumentSnapshot:
        """Return a frozen copy of the text around an existing position."""
        return DocumentSnapshot(
            uri=self.uri,
            language=self.language,
            version=self.version,
            line=line,
            column=column,
            prefix=self._prefix(line, column),
            suffix=self._suffix(line, column),
            num_chars=self.num_chars,
        )

    def check_integrity(self) -> None:
        """Assert the invariants that hold between edits."""
        assert self.lines  # noqa: S101  # the method exists to assert
        assert self.lines == split_lines("".join(self.lines))  # noqa: S101  # as above
        assert self.num_chars == sum(map(num_chars_in, self.lines))  # noqa: S101  # as above
        assert self.num_crlf == sum(map(ends_with_crlf, self.lines))  # noqa: S101  # as above
        assert self.num_long_lines == sum(map(is_long, self.lines))  # noqa: S101  # as above

    def _follow_text(self) -> None:
        """Drop the text if it is far too large, and find the most frequent line end; the first one of two.

        A document is filled after it is opened, and emptied to be filled again.
        """
        if self.num_chars > MAX_KEPT_CHARS:
            self.release()
        num_ends = len(self.lines) - 1
        if num_ends:
            is_first = 2 * self.num_crlf == num_ends and ends_with_crlf(self.lines[0])
            self.newline = "\r\n" if 2 * self.num_crlf > num_ends or is_first else "\n"

    def _prefix(self, line: int, column: int) -> str:
        first, num_chars = line, column
        while first and num_chars + len(self.lines[first - 1]) <= MAX_PREFIX_CHARS:
            first -= 1
            num_chars += len(self.lines[first])
        stepped = -(-first // PREFIX_STEP_LINES) * PREFIX_STEP_LINES
        first = stepped if stepped < line else first
        text = "".join(self.lines[first:line]) + self.lines[line][max(0, column - MAX_PREFIX_CHARS) : column]
        return without_surrogates(plain_newlines(text))

    def _suffix(self, line: int, column: int) -> str:
        parts = [self.lines[line][column : column + MAX_SUFFIX_CHARS]]
        num_chars = len(parts[0])
        for following in self.lines[line + 1 : line + 1 + MAX_SUFFIX_CHARS]:
            if num_chars + len(following) > MAX_SUFFIX_CHARS:
                break
            parts.append(following)
            num_chars += len(following)
        return without_surrogates(plain_newlines("".join(parts)))


def plain_newlines(text: str) -> str:
    """Return `text` with every line end as `\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def typed_word(before: str) -> str:
    """The word at the end of `before`, a beginning of a line; clients filter completions by it."""
    start = len(before)
    while start and (before[start - 1].isalnum() or before[start - 1] == "_"):
        start -= 1
    return before[start:]


def index_of(line: str, num_units: int, encoding: PositionEncoding) -> int:
    """Return the index in `line` that is `num_units` code units from its start.

    A column beyond the end becomes the end, one inside a character its start.
    """
    if encoding == "utf-32" or line.isascii():
        return min(num_units, len(line))
    if encoding == "utf-8":
        data = line.encode("utf-8", "surrogatepass")
        if num_units >= len(data):
            return len(line)
        while num_units and data[num_units] & 0xC0 == 0x80:
            num_units -= 1
        return len(data[:num_units].decode("utf-8", "surrogatepass"))
    data = line.encode("utf-16-le", "surrogatepass")
    if 2 * num_units >= len(data):
        return len(line)
    if num_units and (data[2 * num_units + 1] & 0xFC, data[2 * num_units - 1] & 0xFC) == (0xDC, 0xD8):
        num_units -= 1  # between the halves of a surrogate pair
    return len(data[: 2 * num_units].decode("utf-16-le", "surrogatepass"))


def units_of(text: str, encoding: PositionEncoding) -> int:
    """Number of code units in `text`."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
