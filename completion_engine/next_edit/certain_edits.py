"""Edits that need no model, the nearest first: uses of a renamed definition, and imports from a module that
another import left; one of them, or all for a list.

Owns the bounds of the search in several documents. Runs on any thread, beside the engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from completion_engine.next_edit.candidates import MAX_RECENT_HUNKS, is_unwanted
from completion_engine.next_edit.edits import (
    EditAnswer,
    EditDocument,
    EditRequest,
    Hunk,
    LineEdit,
    ProposedEdit,
)
from completion_engine.next_edit.import_edits import (
    MovedName,
    RenamedExport,
    import_edits,
    moved_import_edits,
    moved_names,
    renamed_exports,
    still_bound,
)
from completion_engine.next_edit.linked_names import LinkedEdit, linked_edits
from completion_engine.next_edit.module_paths import leads_to
from completion_engine.next_edit.parsing import DocumentParser, ParsedText, edited

MAX_PARSED = 12  # documents
MAX_HUNKS = 40  # the latest ones; a rename is followed while its own hunk is one of them
MAX_MOVED = 16  # names that hunks of one document import from another module
MAX_S = 0.2  # processor time of the thread; no document is parsed after it
# Between the shares in the history of a repository and in releases months apart; see
# docs/experiments/next_edit.md.
PROBABILITY = 0.95

# Returns documents whose text holds one of some names, those named as one of some modules first; called at
# most once, and read one by one.
FilesHolding = Callable[[Sequence[str], Sequence[str]], Iterable[EditDocument]]
MAX_EDITS = 200  # the others are proposed one by one
_MAX_OWN = MAX_RECENT_HUNKS // 2  # edits of a file that others follow; the user's are needed beside them


def no_files(_names: Sequence[str], _modules: Sequence[str]) -> Iterable[EditDocument]:
    """There are no files besides the documents of a request."""
    return ()


def certain_edit(
    request: EditRequest, files_holding: FilesHolding = no_files, *, changes_files: bool = True
) -> EditAnswer | None:
    """Return the nearest edit that syntax trees decide; None if there is none.

    `files_holding` returns files that are not open. They come after all documents. Without `changes_files`
    they are evidence, and no edit of them is proposed.
    """
    begin_s = time.perf_counter()
    found = next(edits_by_document(request, files_holding, changes_files=changes_files), None)
    if found is None:
        return None
    nearest = min(found, key=lambda one: abs(one.edit.first_line - request.line))
    proposal = ProposedEdit(nearest.edit, nearest.repeats, nearest.num_examples, None, PROBABILITY)
    return EditAnswer(proposal, num_candidates=len(found), ms=(time.perf_counter() - begin_s) * 1e3)


def edits_by_document(
    request: EditRequest, files_holding: FilesHolding, *, changes_files: bool
) -> Iterator[list[LinkedEdit]]:
    """Yield the edits of each document that has any, see `certain_edit`."""
    search = _Search(request.hunks[-MAX_HUNKS:], is_invoked=request.is_invoked)
    changes = search.changes(request.documents)
    files: Iterable[EditDocument] = (
        file for it in [changes.names] if it for file in files_holding(it, changes.old_modules)
    )
    if changes.moved:
        files = list(files)
        changes = search.without_bound(changes, [*request.documents, *files])
    for document in chain(request.documents, files if changes_files else ()):
        found = [one for one in search.edits(document, changes) if not is_unwanted(one.edit, request)]
        if found:
            yield found


@dataclass(frozen=True, slots=True)
class _Changes:
    """Changes that hunks made and that other documents and files may follow."""

    exports: tuple[RenamedExport, ...]
    moved: tuple[MovedName, ...]

    @property
    def names(self) -> list[str]:
        """The names that a document must hold one of to follow."""
        return [*(it.rename.old for it in self.exports), *(it.name for it in self.moved)]

    @property
    def old_modules(self) -> list[str]:
        """The names of the files that moved names were imported from."""
        return sorted({it.old_file for it in self.moved})


class _Search:
    """Finds the edits that hunks call for, and parses each document once. Used on one thread."""

    def __init__(self, hunks: Sequence[Hunk], *, is_invoked: bool) -> None:
        self._hunks, self._is_invoked = hunks, is_invoked
        # Other programs on the machine change no answer.
        self._until_s = time.thread_time() + MAX_S
        self._parser = DocumentParser()
        self._trees: dict[str, ParsedText | None] = {}

    def changes(self, documents: Sequence[EditDocument]) -> _Changes:
        """Return what hunks of some documents changed."""
        exports: list[RenamedExport] = []
        moved: list[MovedName] = []
        for document in documents:
            if self._is_changed(document) and (parsed := self._parsed(document)) is not None:
                exports += renamed_exports(document, parsed, self._hunks, is_invoked=self._is_invoked)
                moved += islice(moved_names(document, parsed, self._hunks), MAX_MOVED)
        return _Changes(tuple(exports), tuple(moved))

    def without_bound(self, changes: _Changes, documents: Sequence[EditDocument]) -> _Changes:
        """Return the changes without names that their old modules, some of the documents, still bind."""
        bound: frozenset[MovedName] = frozenset()
        for document in documents:
            is_old = any(leads_to(it.old, it.path, document.path, it.name) for it in changes.moved)
            if is_old and (parsed := self._parsed(document)) is not None:
                bound |= still_bound(document, parsed, changes.moved)
        return replace(changes, moved=tuple(it for it in changes.moved if it not in bound))

    def edits(self, document: EditDocument, changes: _Changes) -> Iterator[LinkedEdit]:
        """Yield the edits of a document that its own hunks, or those of other documents, call for."""
        is_concerned = any(name in line for name in changes.names for line in document.lines)
        if not (is_concerned or self._is_changed(document)) or (parsed := self._parsed(document)) is None:
            return
        yield from linked_edits(document, parsed, self._hunks, is_invoked=self._is_invoked)
        for export in changes.exports:
            if export.rename.hunks[0].document != document.document:
                yield from import_edits(document, parsed, export)
        yield from moved_import_edits(document, parsed, changes.moved)

    def _is_changed(self, document: EditDocument) -> bool:
        return any(hunk.document == document.document for hunk in self._hunks)

    def _parsed(self, document: EditDocument) -> ParsedText | None:
        if document.document not in self._trees:
            is_late = time.thread_time() > self._until_s or len(self._trees) >= MAX_PARSED
            self._trees[document.document] = None if is_late else self._parser.parsed(document)
        return self._trees[document.document]


def all_certain_edits(
    request: EditRequest, files_holding: FilesHolding = no_files, *, changes_files: bool = True
) -> EditAnswer | None:
    """Return the answer of `certain_edit`, with all other edits that need no model."""
    documents = {it.document: it for it in request.documents}

    def remembered(names: Sequence[str], modules: Sequence[str]) -> Iterator[EditDocument]:
        for file in files_holding(names, modules):
            documents.setdefault(file.document, file)
            yield file

    answer = certain_edit(request, remembered, changes_files=changes_files)
    if answer is None or answer.proposal is None:
        return None
    changed = {hunk.document for hunk in request.hunks}
    found = [answer.proposal.edit]
    for linked in edits_by_document(request, remembered, changes_files=changes_files):
        found += _apart(found, [one.edit for one in linked])
        document = linked[0].edit.document
        if document not in changed:
            edits = [it for it in found if it.document == document]
            found += _following(documents[document], edits, request.hunks)
    return replace(answer, others=tuple(found[1:MAX_EDITS]))


def _following(document: EditDocument, edits: Sequence[LineEdit], made: Sequence[Hunk]) -> list[LineEdit]:
    """Return the edits of a document that its own edits call for after the user's, unless they move lines."""
    if any(len(edit.old) != len(edit.new) for edit in edits):
        return []
    own = [Hunk(edit.document, edit.first_line, edit.old, edit.new) for edit in edits[:_MAX_OWN]]
    for edit in edits:
        document = edited(document, edit)
    request = EditRequest([document], [*made, *own], edits[0].first_line)
    linked = edits_by_document(request, no_files, changes_files=False)
    return list(_apart(edits, (one.edit for found in linked for one in found)))


def _apart(known: Sequence[LineEdit], edits: Iterable[LineEdit]) -> Iterator[LineEdit]:
    """Yield the edits that share no line with a known one or with each other."""
    taken = {(edit.document, line) for edit in known for line in range(edit.first_line, edit.end_line)}
    for edit in edits:
        lines = {(edit.document, line) for line in range(edit.first_line, edit.end_line)}
        if not lines & taken:
            taken |= lines
            yield edit
