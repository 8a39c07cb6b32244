"""The next edit in the protocol's words: the request, the answer, and its explanation.

Does not depend on how an edit was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from completion_engine.next_edit.edits import LineEdit, common_ends
from completion_engine.next_edit.substitutions import tokens_of
from lsp_server.protocol.reasons import REASONS, texts
from lsp_server.workspace.documents import Document, PositionEncoding, units_of
from lsp_server.workspace.offers import EditRecord
from ngram_cache.redaction import blank_secrets

ACCEPTED_EDIT_COMMAND = "slipstream.acceptedEdit"
REJECTED_EDIT_COMMAND = "slipstream.rejectedEdit"
EXPECTED = "Expected {textDocument: {uri}, position: {line, character}}."


@dataclass(frozen=True, slots=True)
class EditContext:
    """The context of a request. A client `takes_other_documents` if it shows edits of other open documents,
    and `takes_other_files` if it shows those of files that are not open. If it `wants_all`, the answer holds
    all edits that need no model.
    """

    trigger_kind: int = 0
    takes_other_documents: bool = False
    takes_other_files: bool = False
    wants_all: bool = False


def read_context(params: Any) -> EditContext:
    """Return the context of a request; anything that is missing or malformed has its default."""
    context = params.get("context") if isinstance(params, dict) else None
    if not isinstance(context, dict):
        return EditContext()
    kind, wide = context.get("triggerKind"), context.get("otherDocuments")
    files, wants_all = context.get("otherFiles"), context.get("allEdits")
    return EditContext(kind if isinstance(kind, int) else 0, wide is True, files is True, wants_all is True)


def no_edit(rule: str) -> dict[str, Any]:
    """The answer without an edit, and the reason."""
    return {"edits": [], "reason": REASONS.get(rule, "")}


def some_edits(
    record: EditRecord,
    edits: Sequence[LineEdit],
    documents: Mapping[str, Document],
    encoding: PositionEncoding,
) -> dict[str, Any]:
    """The answer with the edits of a record; the first has its command, and how many places its kind has.

    An edit of an open document replaces as little of its lines as whole tokens allow. A file that is not open
    has no version.
    """
    command = {"title": "Slipstream: accepted", "command": ACCEPTED_EDIT_COMMAND, "arguments": [record.id]}
    found = [_edit(edit, documents.get(edit.document), encoding) for edit in edits]
    proposal = record.answer.proposal
    is_certain = proposal is not None and proposal.log_odds is None
    found[0] |= {"command": command, "numPlaces": record.answer.num_candidates if is_certain else 1}
    return {"edits": found}


def _edit(edit: LineEdit, document: Document | None, encoding: PositionEncoding) -> dict[str, Any]:
    if document is not None:
        edit = _with_line_end(edit, document)
    old, new = ("\n".join(side) for side in (edit.old, edit.new))
    start, end = changed_span(old, new)
    inserted = new[start : len(new) - (len(old) - end)]
    return {
        "text": inserted.replace("\n", document.newline if document else "\n"),
        "textDocument": {"uri": edit.document, "version": document.version if document else None},
        "range": {
            "start": _position(edit.first_line, old[:start], encoding),
            "end": _position(edit.first_line, old[:end], encoding),
        },
    }


def _with_line_end(edit: LineEdit, document: Document) -> LineEdit:
    """Return an edit that takes lines away with the line end after them, or before the last line."""
    if edit.new:
        return edit
    if edit.end_line < len(document.lines):
        following = document.content(edit.end_line)
        return replace(edit, old=(*edit.old, following), new=(following,))
    if edit.first_line == 0:
        return replace(edit, new=("",))
    above = document.content(edit.first_line - 1)
    return replace(edit, first_line=edit.first_line - 1, old=(above, *edit.old), new=(above,))


def changed_span(old: str, new: str) -> tuple[int, int]:
    """Return the span of `old` that differs from `new`, in whole tokens."""
    before = tokens_of(old)
    start, end = common_ends(before, tokens_of(new))
    return sum(map(len, before[:start])), len(old) - sum(map(len, before[len(before) - end :]))


def _position(line: int, before: str, encoding: PositionEncoding) -> dict[str, int]:
    above, _, last = before.rpartition("\n")
    lines = above.count("\n") + 1 if len(last) < len(before) else 0
    return {"line": line + lines, "character": units_of(last, encoding)}


def edit_explanation(record: EditRecord) -> dict[str, Any]:
    """The answer to `slipstream/why` for an edit: the hunk that it repeats, and what spoke for it."""
    answer, proposal = record.answer, record.answer.proposal
    explanation: dict[str, Any] = {
        "shown": proposal is not None,
        "rule": answer.rule,
        "reason": REASONS[answer.rule] if answer.rule else "",
        "outcome": record.outcome,
        "num_candidates": answer.num_candidates,
        "num_scored": answer.num_scored,
        "ms": round(answer.ms, 3),
        "texts": texts(),
    }
    if proposal is None:
        return explanation
    repeats = proposal.repeats
    return explanation | {
        "old": _shown(proposal.edit.old),
        "new": _shown(proposal.edit.new),
        "line": proposal.edit.first_line,
        "repeats": {
            "document": repeats.document,
            "path": record.path,
            "line": repeats.first_line,
            "old": _shown(repeats.old),
            "new": _shown(repeats.new),
        },
        "num_examples": proposal.num_examples,
        "log_odds": None if proposal.log_odds is None else round(proposal.log_odds, 3),
        "probability": round(proposal.probability, 4),
    }


def _shown(lines: tuple[str, ...]) -> str:
    return blank_secrets("\n".join(lines))
