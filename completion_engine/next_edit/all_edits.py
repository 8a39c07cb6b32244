"""All edits that need no model at once, for a user who looks at them as a list.

In another file, an import that follows a rename renames the uses below it: they are found once it changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from completion_engine.next_edit.candidates import MAX_RECENT_HUNKS
from completion_engine.next_edit.certain_edits import (
    FilesHolding,
    certain_edit,
    edits_by_document,
    no_files,
)
from completion_engine.next_edit.edits import EditAnswer, EditDocument, EditRequest, Hunk, LineEdit
from completion_engine.next_edit.parsing import edited

MAX_EDITS = 200  # the others are proposed one by one
_MAX_OWN = MAX_RECENT_HUNKS // 2  # edits of a file that others follow; the user's are needed beside them


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
