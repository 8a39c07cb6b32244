"""The documents that HTTP clients edit: found again for each request by their lines, and sent as edits.

A client sends the lines around the cursor and no path. The same text in a document of the language server
keeps the engine's caches.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from completion_engine.cutting.language_names import UNKNOWN, canonical_language, language_of_path
from completion_engine.errors import UserError
from lsp_server.commands.source_file import read_source
from lsp_server.http_door.line_index import MIN_SHARE, LineIndex, share_of, significant_lines
from lsp_server.workspace.documents import plain_newlines

MAX_DOCUMENTS = 16
# So many lines at an end of the client's text say where in the document it lies.
_NUM_ANCHOR_LINES = 4
# The rules of no file apply to this scheme, so the language server treats the text as outside of all folders.
_UNSAVED = "slipstream-http:/unsaved-{}"

# The language of a text without a file, by what only this language writes; the first match counts.
_GUESSES = tuple(
    (language, re.compile(pattern, re.MULTILINE))
    for language, pattern in (
        ("shellscript", r"\A#!.*\b(ba|z|da)?sh\b"),
        ("php", r"<\?php"),
        ("rust", r"^\s*(pub )?(fn \w+.*\{|impl\b|use \w+::)|^\s*let mut "),
        ("go", r"^package \w+$|^func .*\{$"),
        ("python", r"^\s*(def|class) .*:\s*$|^(from [\w.]+ )?import [\w., ]+$"),
        ("cpp", r"^#include <\w+>|\bstd::"),
        ("c", r"^#include\b"),
        ("java", r"^(package|import) [\w.]+;|^\s*public (static|class|final) "),
        ("typescript", r"^\s*(export )?(interface|type) \w+|: (string|number|boolean)\b"),
        ("javascript", r"^\s*(const|let|var|export|import|function)\b"),
        ("lua", r"^\s*local (function )?\w+|^\s*end\)?$"),
        ("ruby", r"^\s*(def|module|class) \w+[^:{]*$"),
    )
)


@dataclass(frozen=True, slots=True)
class CursorText:
    """The text around a cursor as a client sends it, and what it says about the file."""

    prefix: str
    suffix: str
    file_names: tuple[str, ...] = ()
    language: str = ""


@dataclass(slots=True, eq=False)
class HttpDocument:
    """A document that is open at the language server; `text` is what the server has."""

    uri: str
    language: str
    text: str
    lines: frozenset[int] = field(default_factory=frozenset)

    @property
    def is_unsaved(self) -> bool:
        """Whether no file of the folders was found for it."""
        return self.uri.startswith(_UNSAVED.format(""))


@dataclass(frozen=True, slots=True)
class Placed:
    """A document, and its text with the client's in it up to the cursor's `offset`."""

    document: HttpDocument
    text: str
    offset: int


class HttpDocuments:
    """The open documents, the one used last at the end."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, HttpDocument] = OrderedDict()
        self._num_unsaved = 0

    def place(self, cursor: CursorText, index: LineIndex) -> Placed:
        """Return the document that the cursor is in, a new one if the client did not send it before."""
        text = cursor.prefix + cursor.suffix
        lines = significant_lines(text)
        document = self._nearest(lines)
        found = index.find(lines, cursor.file_names)
        if found and (
            document is None or document.is_unsaved or found.share > share_of(lines, document.lines)
        ):
            document = self._of_file(found.path)
        if document is None:
            self._num_unsaved += 1
            language = _language_of(cursor)
            document = HttpDocument(_UNSAVED.format(self._num_unsaved), language, "")
        before, after = _around(document.text, cursor)
        whole = before + text + after
        document.lines = significant_lines(whole)
        self._documents[document.uri] = document
        self._documents.move_to_end(document.uri)
        return Placed(document, whole, len(before) + len(cursor.prefix))

    def surplus(self) -> list[HttpDocument]:
        """Remove and return the documents beyond the limit, used longest ago."""
        num_surplus = max(0, len(self._documents) - MAX_DOCUMENTS)
        return [self._documents.popitem(last=False)[1] for _ in range(num_surplus)]

    def _nearest(self, lines: frozenset[int]) -> HttpDocument | None:
        """Return the document with these lines; for a text with hardly any, the last unsaved one."""
        shared = [(share_of(lines, known.lines), known) for known in reversed(self._documents.values())]
        share, nearest = max(shared, key=lambda pair: pair[0], default=(0.0, None))
        if share >= MIN_SHARE:
            return nearest
        small = [known for _, known in shared if known.is_unsaved and len(known.lines) <= 1]
        return small[0] if small and len(lines) <= 1 else None

    def _of_file(self, path: Path) -> HttpDocument:
        """Return the document of a file, with the text of the disk if it is not open."""
        uri = path.as_uri()
        if uri not in self._documents:
            try:
                text = plain_newlines(read_source(path))
            except UserError:
                text = ""
            return HttpDocument(uri, language_of_path(path.name), text)
        return self._documents[uri]


def _around(text: str, cursor: CursorText) -> tuple[str, str]:
    """Return the parts of a document before and after the client's text, by the lines at its ends.

    Clients send only some lines around the cursor. Empty where these lines are not in the document once.
    """
    head = _whole_lines(cursor.prefix.split("\n")[:-1][:_NUM_ANCHOR_LINES])
    tail = _whole_lines(cursor.suffix.split("\n")[1:-1][-_NUM_ANCHOR_LINES:])
    start, end = text.find(head), text.rfind(tail)
    has_head = head != "" and text.count(head) == 1 and text[start - 1 : start] in {"\n", ""}
    has_tail = tail != "" and text.count(tail) == 1 and end >= start
    return text[:start] if has_head else "", text[end + len(tail) :] if has_tail else ""


def _whole_lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _language_of(cursor: CursorText) -> str:
    """Return the language that the client names, or that its file has, or that the text looks like."""
    if cursor.language:
        return canonical_language(cursor.language)
    named = [language_of_path(name) for name in cursor.file_names]
    text = (cursor.prefix + cursor.suffix)[: 64 * 1024]
    guessed = [language for language, pattern in _GUESSES if pattern.search(text)]
    return next((language for language in named if language != UNKNOWN), (guessed or [UNKNOWN])[0])


@dataclass(frozen=True, slots=True)
class RangeEdit:
    """The replacement of `old[start:end]` by `text`."""

    start: int
    end: int
    text: str


def edits_between(old: str, new: str) -> list[RangeEdit]:
    """Return the edits from one text to another, as a user at the cursor would make them.

    A removal takes one character more and inserts it again. A client may send its own proposal as text and
    take it back, which is not a deletion by the user.
    """
    if old == new:
        return []
    start = _num_common(old, new)
    num_after = _num_common(old[start:][::-1], new[start:][::-1])
    end, text = len(old) - num_after, new[start : len(new) - num_after]
    if text or not start:
        return [RangeEdit(start, end, text)]
    return [RangeEdit(start - 1, end, ""), RangeEdit(start - 1, start - 1, old[start - 1])]


def _num_common(one: str, other: str) -> int:
    """Return the number of equal characters at the beginning, by bisection."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def position_at(text: str, offset: int) -> dict[str, int]:
    """Return the position of the protocol at an offset, in characters of UTF-32."""
    line = text.count("\n", 0, offset)
    return {"line": line, "character": offset - (text.rfind("\n", 0, offset) + 1)}
