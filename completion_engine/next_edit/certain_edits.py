"""Edits that need no model: the remaining uses of a renamed definition, the nearest first.

Owns the bounds of the search in several documents. Runs on any thread, beside the engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from completion_engine.next_edit.candidates import MAX_RECENT_HUNKS, is_unwanted
from completion_engine.next_edit.edits import EditAnswer, EditDocument, EditRequest, Hunk, ProposedEdit
from completion_engine.next_edit.linked_imports import RenamedExport, import_edits, renamed_exports
from completion_engine.next_edit.linked_names import LinkedEdit, linked_edits
from completion_engine.next_edit.parsing import DocumentParser, ParsedText

MAX_PARSED = 12  # documents
MAX_S = 0.2  # after which no further document is parsed
# Between the shares in the history of a repository and in releases months apart; see
# docs/experiments/next_edit.md.
PROBABILITY = 0.95

# Returns documents whose text holds one of the names; called at most once, and read one by one.
FilesHolding = Callable[[Sequence[str]], Iterable[EditDocument]]


def no_files(_names: Sequence[str]) -> Iterable[EditDocument]:
    """There are no files besides the documents of a request."""
    return ()


def certain_edit(request: EditRequest, files_holding: FilesHolding = no_files) -> EditAnswer | None:
    """Return the nearest edit that syntax trees decide; None if there is none.

    `files_holding` returns files that are not open. They come after all documents.
    """
    begin_s = time.perf_counter()
    search = _Search(request.hunks[-MAX_RECENT_HUNKS:], begin_s + MAX_S)
    exports = [export for document in request.documents for export in search.exports(document)]
    names = [export.rename.old for export in exports]
    files = (file for it in [names] if it for file in files_holding(it))
    for document in chain(request.documents, files):
        found = [one for one in search.edits(document, exports) if not is_unwanted(one.edit, request)]
        if found:
            nearest = min(found, key=lambda one: abs(one.edit.first_line - request.line))
            proposal = ProposedEdit(nearest.edit, nearest.repeats, nearest.num_examples, None, PROBABILITY)
            return EditAnswer(proposal, num_candidates=len(found), ms=(time.perf_counter() - begin_s) * 1e3)
    return None


class _Search:
    """Finds the linked edits of hunks, and parses each document once. Ends at `until_s`."""

    def __init__(self, hunks: Sequence[Hunk], until_s: float) -> None:
        self._hunks, self._until_s = hunks, until_s
        self._parser = DocumentParser()
        self._trees: dict[str, ParsedText | None] = {}

    def exports(self, document: EditDocument) -> Iterator[RenamedExport]:
        """Yield the definitions of a document that hunks renamed."""
        if self._is_changed(document) and (parsed := self._parsed(document)) is not None:
            yield from renamed_exports(document, parsed, self._hunks)

    def edits(self, document: EditDocument, exports: Sequence[RenamedExport]) -> Iterator[LinkedEdit]:
        """Yield the edits of a document that its own renames, or those of the exports, call for."""
        others = [
            one
            for one in exports
            if one.rename.hunks[0].document != document.document
            and any(one.rename.old in line for line in document.lines)
        ]
        if not (others or self._is_changed(document)) or (parsed := self._parsed(document)) is None:
            return
        yield from linked_edits(document, parsed, self._hunks)
        for export in others:
            yield from import_edits(document, parsed, export)

    def _is_changed(self, document: EditDocument) -> bool:
        return any(hunk.document == document.document for hunk in self._hunks)

    def _parsed(self, document: EditDocument) -> ParsedText | None:
        if document.document not in self._trees:
            is_late = time.perf_counter() > self._until_s or len(self._trees) >= MAX_PARSED
            self._trees[document.document] = None if is_late else self._parser.parsed(document)
        return self._trees[document.document]
