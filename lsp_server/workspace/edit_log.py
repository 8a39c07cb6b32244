"""The user's recent edits: keystrokes joined to hunks, for the documents that may be indexed, and the
last deletion, in any document.

Records which text was replaced by which, and where the new text is now. Bounded for each document and in all;
closed documents are dropped. Used on the event loop only.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from completion_engine.next_edit.edits import Hunk, common_ends
from lsp_server.workspace.documents import Document, LineChange
from lsp_server.workspace.lines import contents_of

MAX_DOCUMENTS = 32
MAX_HUNKS = 40  # hunks of each document; each accepted place of a rename is one
MAX_LINES = 60  # lines on each side of a hunk; larger changes are not proposed again elsewhere
MAX_LINE_CHARS = 2_000
MIN_DELETED_CHARS = 2  # a single character was probably deleted in passing
_WITHIN_WORD = re.compile(r"\w\w")
JOIN_S = 60.0  # after a longer time, a change of the same line begins a new hunk


class EditLog:
    """The hunks of open documents. Only allowed documents are recorded."""

    def __init__(self) -> None:
        self._hunks: OrderedDict[str, list[Hunk]] = OrderedDict()

    def allow(self, document: str) -> None:
        """Record a document from now on, because no rule excludes it from the index."""
        self._hunks.setdefault(document, [])
        while len(self._hunks) > MAX_DOCUMENTS:
            self._hunks.popitem(last=False)

    def forget(self, document: str) -> None:
        """Drop a document and its hunks: it was closed, or may no longer be indexed."""
        self._hunks.pop(document, None)

    @property
    def documents(self) -> tuple[str, ...]:
        """Return the recorded documents."""
        return tuple(self._hunks)

    def clear(self, document: str) -> None:
        """Drop the hunks of a recorded document, because too much of it changed at once."""
        if document in self._hunks:
            self._hunks[document] = []

    def is_followed(self, document: str) -> bool:
        """Return whether a document's edits are recorded."""
        return document in self._hunks

    def changed(self, document: str, change: LineChange, now_s: float) -> None:
        """Record one change of a document."""
        hunks = self._hunks.get(document)
        if hunks is None:
            return
        self._hunks.move_to_end(document)
        change = trimmed(change)
        if not (change.old or change.new):
            return
        if max(len(change.old), len(change.new)) > MAX_LINES:
            self._hunks[document] = []
            return
        touched = [hunk for hunk in hunks if _touches(hunk, change)]
        moved = [_moved(hunk, change) for hunk in hunks if hunk not in touched]
        joined = [hunk for hunk in touched if now_s - hunk.time_s <= JOIN_S]
        hunk = _joined(document, joined, change, now_s)
        kept = [hunk] if hunk is not None else []
        self._hunks[document] = [*moved, *kept][-MAX_HUNKS:]

    def replaced(self, document: str, old: Sequence[str], new: Sequence[str], now_s: float) -> None:
        """Record that the client sent the whole text of a document."""
        self.changed(document, LineChange(0, tuple(old), tuple(new)), now_s)

    def hunks(self) -> tuple[Hunk, ...]:
        """Return all hunks, the one changed last at the end."""
        everything = [hunk for hunks in self._hunks.values() for hunk in hunks]
        return tuple(sorted(everything, key=lambda hunk: hunk.time_s))

    def check_integrity(self) -> None:
        """Assert that the hunks of a document are bounded, are real changes and do not overlap."""
        for hunks in self._hunks.values():
            assert len(hunks) <= MAX_HUNKS  # noqa: S101 - the method exists to assert
            ordered = sorted(hunks, key=lambda hunk: (hunk.first_line, hunk.end_line))
            assert all(hunk.old != hunk.new for hunk in ordered)  # noqa: S101 - as above
            assert all(one.end_line <= other.first_line for one, other in pairwise(ordered))  # noqa: S101 - as above


class LastDeletion:
    """The text that the user deleted last, key by key or at once, until another edit follows."""

    def __init__(self) -> None:
        self._hunk: Hunk | None = None

    def changed(self, document: str, change: LineChange, now_s: float) -> None:
        """Record one change of a document; an insertion ends the deletion."""
        hunk, change = self._hunk, trimmed(change)
        if not (change.old or change.new):
            return
        joined = [hunk] if hunk is not None and hunk.document == document and _touches(hunk, change) else []
        old, new = ("".join(f"{line}\n" for line in lines) for lines in (change.old, change.new))
        is_deletion = len(new) < len(old) and sum(common_ends(old, new)) == len(new)
        self._hunk = _joined(document, joined, change, now_s) if is_deletion else None

    def clear(self) -> None:
        """Drop it, because an edit was not read."""
        self._hunk = None

    def text_at(self, document: Document, line: int, column: int) -> str:
        """Return the deleted text that would stand after this cursor position; empty elsewhere."""
        hunk = self._hunk
        if hunk is None or hunk.document != document.uri:
            return ""
        first, end = max(0, hunk.first_line - 1), hunk.end_line + 1
        if not first <= line < end:
            return ""
        above = contents_of(document.lines[first : hunk.first_line])
        below = contents_of(document.lines[hunk.end_line : end])
        old, new = ("\n".join((*above, *lines, *below)) for lines in (hunk.old, hunk.new))
        cursor = len("\n".join(contents_of(document.lines[first:line]))) + (line > first) + column
        removed = old[cursor : len(old) - len(new) + cursor]
        return removed if f"{new[:cursor]}{removed}{new[cursor:]}" == old else ""


def restores(text: str, deleted: str) -> bool:
    """Return whether a suggestion would bring deleted text back, or the beginning of it."""
    text, deleted = text.strip(), deleted.strip()
    if len(deleted) < MIN_DELETED_CHARS or not text:
        return False
    goes_on = _WITHIN_WORD.match(text, len(deleted) - 1) is not None
    return deleted.startswith(text) or (text.startswith(deleted) and not goes_on)


def trimmed(change: LineChange) -> LineChange:
    """Return a change without equal lines at its beginning and end."""
    old, new = change.old, change.new
    start, end = common_ends(old, new)
    return LineChange(change.top + start, old[start : len(old) - end], new[start : len(new) - end])


def _touches(hunk: Hunk, change: LineChange) -> bool:
    """Return whether a change shares a line with a hunk, or adds or removes lines right beside it."""
    bottom = change.top + len(change.old)
    if change.top < hunk.end_line and hunk.first_line < bottom:
        return True
    is_beside = change.top <= hunk.end_line and hunk.first_line <= bottom
    return is_beside and not (change.old and change.new and hunk.new)


def _moved(hunk: Hunk, change: LineChange) -> Hunk:
    """Return a hunk that a change did not touch, at its new line."""
    if hunk.first_line < change.top + len(change.old):
        return hunk
    return replace(hunk, first_line=hunk.first_line + len(change.new) - len(change.old))


def _joined(document: str, hunks: Sequence[Hunk], change: LineChange, now_s: float) -> Hunk | None:
    """Return a change joined with the hunks that it touches; None if together they change nothing."""
    first, old, now = _union(hunks, change)
    above, below = now[: change.top - first], now[change.top + len(change.old) - first :]
    whole = trimmed(LineChange(first, tuple(old), (*above, *change.new, *below)))
    is_small = max(len(whole.old), len(whole.new)) <= MAX_LINES
    has_long_line = any(len(line) > MAX_LINE_CHARS for line in (*whole.old, *whole.new))
    if whole.old == whole.new or not is_small or has_long_line:
        return None
    return Hunk(document, whole.top, whole.old, whole.new, now_s)


def _union(hunks: Sequence[Hunk], change: LineChange) -> tuple[int, list[str], list[str]]:
    """Return the first line of all that a change and the hunks it touches cover.

    Its lines follow, as they were before the hunks and as they are before the change.
    """
    first = min([change.top, *(hunk.first_line for hunk in hunks)])
    end = max([change.top + len(change.old), *(hunk.end_line for hunk in hunks)])
    waiting = sorted(hunks, key=lambda hunk: (hunk.first_line, hunk.end_line))
    old: list[str] = []
    now: list[str] = []
    line = first
    while line < end or waiting:
        if waiting and waiting[0].first_line <= line:
            hunk = waiting.pop(0)
            old += hunk.old
            now += hunk.new
            line = hunk.end_line
        else:
            old.append(change.old[line - change.top])
            now.append(change.old[line - change.top])
            line += 1
    return first, old, now
