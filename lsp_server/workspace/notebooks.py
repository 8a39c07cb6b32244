"""Notebooks: the order of their cells, and the text of neighbouring cells around a cursor.

Pure. The session's documents hold the text of the cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from lsp_server.workspace.documents import MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS, Document, DocumentSnapshot

# The most neighbours of a cell in each direction, and the most characters of their text.
MAX_CELLS_AROUND = 500
MAX_CHARS_ABOVE = 32_000
_STEP_CHARS = 4096  # the beginning of a long cell's part stays while the user types

MAX_SHOWN_LINES = 50_000

_BETWEEN = "\n\n"
# A cell that begins so is code of another language, unless the magic only measures or keeps what it does.
_CELL_MAGIC = re.compile(r"%%(?!(?:time|timeit|prun|capture|debug|python3?)\b)")


class Notebooks:
    """The cells of each open notebook, in order."""

    def __init__(self) -> None:
        self._cells: dict[str, list[str]] = {}
        self._notebook_of: dict[str, str] = {}

    def open(self, notebook: str, cells: Iterable[str]) -> None:
        """Record an open notebook with these cells."""
        self.close(notebook)
        self._cells[notebook] = []
        self.splice(notebook, 0, 0, cells)

    def splice(self, notebook: str, start: int, num_deleted: int, cells: Iterable[str]) -> None:
        """Replace `num_deleted` cells from `start` on. Positions beyond an end are moved to that end."""
        held = self._cells.get(notebook)
        if held is None:
            return
        start = max(0, min(start, len(held)))
        end = max(start, min(start + num_deleted, len(held)))
        for cell in held[start:end]:
            self._notebook_of.pop(cell, None)
        del held[start:end]
        # Each cell has one position; if it is named twice, or by two notebooks, the first one counts.
        new = [cell for cell in dict.fromkeys(cells) if cell not in self._notebook_of]
        self._notebook_of |= dict.fromkeys(new, notebook)
        held[start:start] = new

    def close(self, notebook: str) -> list[str]:
        """Record that a notebook is closed; return the cells that it had."""
        cells = self._cells.pop(notebook, [])
        for cell in cells:
            self._notebook_of.pop(cell, None)
        return cells

    def notebook_of(self, cell: str) -> str:
        """Return the notebook of a cell; empty for none."""
        return self._notebook_of.get(cell, "")

    def cells_of(self, notebook: str) -> Sequence[str]:
        """Return the cells of a notebook in order."""
        return self._cells.get(notebook, ())

    def with_neighbours(
        self, snapshot: DocumentSnapshot, documents: Mapping[str, Document]
    ) -> tuple[str, str]:
        """The text before and after a cursor, with the cells of the same language above and below it."""
        cells = self.cells_of(self.notebook_of(snapshot.uri))
        if not cells:
            return snapshot.prefix, snapshot.suffix
        at = cells.index(snapshot.uri)

        def texts(neighbours: Sequence[str], *, from_end: bool) -> Iterable[str]:
            for uri in neighbours[:MAX_CELLS_AROUND]:
                document = documents.get(uri)
                if document is not None and document.language == snapshot.language:
                    text = _beginning_or_end(document, from_end=from_end)
                    if text.strip() and not _CELL_MAGIC.match(text):
                        yield text.rstrip("\n")

        above = texts(cells[max(0, at - MAX_CELLS_AROUND) : at][::-1], from_end=True)
        below = texts(cells[at + 1 : at + 1 + MAX_CELLS_AROUND], from_end=False)
        room = min(MAX_CHARS_ABOVE, MAX_PREFIX_CHARS - len(snapshot.prefix))
        prefix = _joined_above(above, room) + snapshot.prefix
        return prefix, snapshot.suffix + _joined_below(below, MAX_SUFFIX_CHARS - len(snapshot.suffix))


def cell_lines(cells: Iterable[Document | None]) -> list[str]:
    """Return the lines of a notebook's code, for the index."""
    lines: list[str] = []
    for document in cells:
        if document is None or document.language == "markdown" or len(lines) > MAX_SHOWN_LINES:
            continue
        lines += document.lines[:MAX_SHOWN_LINES]
        lines.append(_BETWEEN)
    return lines


def _beginning_or_end(document: Document, *, from_end: bool) -> str:
    """A bounded part of a cell: the text at its end, or at its beginning."""
    if not from_end:
        return document.snapshot(0, 0).suffix
    last = len(document.lines) - 1
    return document.snapshot(last, len(document.lines[last])).prefix


def _joined_above(texts: Iterable[str], room: int) -> str:
    """As many whole cells as there is room for, nearest first; a part of the nearest one at least."""
    parts: list[str] = []
    for text in texts:
        if len(text) + len(_BETWEEN) > room:
            part = text[-(room // _STEP_CHARS * _STEP_CHARS) :] if room >= _STEP_CHARS and not parts else ""
            parts += [part.partition("\n")[2]] if "\n" in part else []
            break
        parts.append(text)
        room -= len(text) + len(_BETWEEN)
    return "".join(f"{text}{_BETWEEN}" for text in reversed(parts))


def _joined_below(texts: Iterable[str], room: int) -> str:
    parts: list[str] = []
    for text in texts:
        if len(text) + len(_BETWEEN) > room:
            break
        parts.append(f"{_BETWEEN}{text}")
        room -= len(text) + len(_BETWEEN)
    return "".join(parts)
