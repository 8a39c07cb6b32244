"""The documents that HTTP clients edit, found again for each request by their lines, because no path arrives.

The same document keeps the engine's caches. Searches are bounded in files, bytes and time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from completion_engine.cutting.language_names import canonical_language, language_of_path
from completion_engine.errors import UserError
from lsp_server.commands.local_engine import read_source, settings_for
from lsp_server.http_api.dialects import CursorText
from lsp_server.workspace.documents import plain_newlines
from ngram_cache.file_names import TOOL_FOLDERS, is_secret_path
from ngram_cache.repository import Repository, SkippedFileError

MAX_DOCUMENTS = 16
_MIN_LINE_CHARS, _MAX_LINES = 8, 40  # short lines are in many files; the longest ones are enough
_MIN_LINES = 3  # a text with fewer is looked for in named files and in those with secrets only
_MIN_SHARE = 0.6  # the user has edited the other lines of a text
_MAX_NEW_LINES = 2  # a text with more may be from another file
_NUM_ANCHOR_LINES = 4  # at each end of a text, which say where in the document it lies
_SEARCH_AGAIN_S, _MAX_SEARCH_S = 30.0, 3.0
_MAX_WALKED_FOLDERS, _MAX_SECRET_BYTES = 20_000, 64 * 1024
# Outside of all folders for the language server, which judges its name alone.
_UNSAVED = "slipstream-http:/{}/{}"
_T = TypeVar("_T")


@dataclass(slots=True)
class HttpDocument:
    """A document that is open at the language server. Files are looked for again after `search_s`."""

    uri: str
    language: str
    text: str = ""
    lines: frozenset[str] = frozenset()  # without indentation
    search_s: float = 0.0

    def write(self, text: str) -> None:
        """Replace the text."""
        self.text, self.lines = text, _stripped_lines(text)

    @property
    def is_unsaved(self) -> bool:
        """Whether it is not known to be a file."""
        return not self.uri.startswith("file:")


class HttpDocuments:
    """The open documents, the one used last at the end."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._open: OrderedDict[str, HttpDocument] = OrderedDict()
        self._num_unsaved = 0
        self._searching = asyncio.Lock()

    async def find(self, cursor: CursorText) -> HttpDocument:
        """Return the document that the cursor is in, a new one if the client did not send it before.

        There is one search at a time. A client that leaves does not end it: the next key needs it too.
        """
        lines = _longest(_stripped_lines(cursor.prefix + cursor.suffix))
        document, is_sure = self._known(lines)
        if document is not None and is_sure:
            return document
        await self._searching.acquire()
        search = asyncio.create_task(self._search(cursor, lines))
        search.add_done_callback(lambda _: self._searching.release())
        return await asyncio.shield(search)

    def place(self, document: HttpDocument, cursor: CursorText) -> int:
        """Write a client's text to its document, the one used last now. Return the cursor's offset.

        The client's text replaces the part of the document between the lines at its ends, and all of it where
        these lines are not in the document once.
        """
        self._open[document.uri] = document
        self._open.move_to_end(document.uri)
        text = document.text
        head = "".join(f"{line}\n" for line in cursor.prefix.split("\n")[:-1][:_NUM_ANCHOR_LINES])
        tail = "".join(f"{line}\n" for line in cursor.suffix.split("\n")[1:-1][-_NUM_ANCHOR_LINES:])
        start, end = text.find(head), text.rfind(tail)
        has_head = head != "" and text.count(head) == 1 and text[:start][-1:] in {"\n", ""}
        has_tail = tail != "" and text.count(tail) == 1 and end >= start
        before, after = text[:start] if has_head else "", text[end + len(tail) :] if has_tail else ""
        document.write(before + cursor.prefix + cursor.suffix + after)
        return len(before) + len(cursor.prefix)

    def _known(self, lines: Sequence[str]) -> tuple[HttpDocument | None, bool]:
        """Return the open document with these lines, and whether no file can be a better one."""
        found = ((known, known.lines) for known in reversed(self._open.values()))
        document, num_found = _best_of(found, lines)
        may_be_another = document is None or document.is_unsaved or len(lines) - num_found > _MAX_NEW_LINES
        is_searched = document is not None and time.monotonic() <= document.search_s
        return document, is_searched or not may_be_another

    async def _search(self, cursor: CursorText, lines: Sequence[str]) -> HttpDocument:
        """Return the document of the file with these lines, or an unsaved one."""
        document, is_sure = self._known(lines)  # an earlier search may have found it
        if document is None or not is_sure:
            names = [name.replace("\\", "/") for name in (cursor.name, *cursor.other_names) if name]
            files = _files(self._folders, names, has_all=len(lines) >= _MIN_LINES)
            stripped = ((path, _stripped_lines(text)) for path, text in files)
            path, _ = await asyncio.to_thread(_best_of, stripped, lines)
            if path is None:
                document = document or self._unsaved(cursor)
            elif (document := self._open.get(path.as_uri())) is None:
                document = HttpDocument(path.as_uri(), language_of_path(path.name))
                with contextlib.suppress(UserError):
                    document.write(plain_newlines(read_source(path)))
            document.search_s = time.monotonic() + _SEARCH_AGAIN_S
            self._open[document.uri] = document
        return document

    def pop_surplus(self) -> list[HttpDocument]:
        """Remove and return the documents beyond the limit, used longest ago."""
        return [self._open.popitem(last=False)[1] for _ in range(len(self._open) - MAX_DOCUMENTS)]

    def _unsaved(self, cursor: CursorText) -> HttpDocument:
        """Return a document without a file. Short texts of one name share one: keys change their lines."""
        name = quote(cursor.name)
        for known in self._open.values():
            is_short = len(_longest(known.lines)) < _MIN_LINES
            if known.is_unsaved and is_short and known.uri.endswith(f"/{name}"):
                return known
        self._num_unsaved += 1
        language = canonical_language(cursor.language) if cursor.language else language_of_path(cursor.name)
        return HttpDocument(_UNSAVED.format(self._num_unsaved, name), language)


def _longest(lines: Iterable[str]) -> list[str]:
    """Return the lines by which a text is recognized."""
    return sorted((line for line in lines if len(line) >= _MIN_LINE_CHARS), key=len)[-_MAX_LINES:]


def _stripped_lines(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.split("\n"))


def _best_of(texts: Iterable[tuple[_T, frozenset[str]]], lines: Sequence[str]) -> tuple[_T | None, int]:
    """Return the owner of the first text with most of these lines, if it has enough, and their number."""
    best, most, until_s = None, 0, time.monotonic() + _MAX_SEARCH_S
    for owner, stripped in texts:
        if (num_found := sum(line in stripped for line in lines)) > most:
            best, most = owner, num_found
        if most == len(lines) or time.monotonic() > until_s:
            break
    return (best, most) if most >= _MIN_SHARE * len(lines) else (None, most)


def _files(folders: Sequence[Path], names: Sequence[str], *, has_all: bool) -> Iterator[tuple[Path, str]]:
    """Yield files and texts: those whose names the language server refuses, then these names, then all."""
    for folder in folders:
        for parent, inner, found in islice(os.walk(folder), _MAX_WALKED_FOLDERS):
            inner[:] = [name for name in inner if name not in TOOL_FOLDERS]
            for path in [Path(parent, name) for name in found]:
                if is_secret_path(path.relative_to(folder).as_posix()) and path.is_file():
                    with contextlib.suppress(OSError), path.open("rb") as secret:
                        yield path, secret.read(_MAX_SECRET_BYTES).decode("utf-8", "replace")
    for folder in folders:
        if (options := settings_for(folder).index) is not None:
            repository = Repository(folder, options)
            files = repository.walk().files[::-1]
            named = [file for file in files if any(_ends_alike(file.path, name) for name in names)]
            for file in (*named, *(files if has_all else ())):
                with contextlib.suppress(SkippedFileError):
                    yield repository.root / file.path, repository.read(file)


def _ends_alike(one: str, other: str) -> bool:
    """Return whether one path is the end of the other one."""
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")
