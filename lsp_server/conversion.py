"""What the server knows, in the words of the protocol. The only builder of LSP results.

Owns protocol types on the way out. Must not know how anything was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lsprotocol import types

from completion_engine.stats import Completion
from lsp_server.documents import Document, Place
from lsp_server.engine_thread import EngineStatus
from lsp_server.folder_worker import FolderReport
from lsp_server.positions import PositionEncoding, units_of
from lsp_server.session import Offer, Record

ACCEPTED_COMMAND = "slipstream.accepted"

# The kinds that clients of other completion servers already show.
_KINDS = {"loading": "Normal", "warming": "Normal", "ready": "Normal", "error": "Error"}

# What a person is told about a place that got no suggestion, by the rule's name.
_REASONS = {
    "engine-loading": "The model is still loading.",
    "engine-error": "The engine could not do it; see the server's state.",
    "engine-failed": "The engine failed on this place; the traceback is in the log.",
    "language-disabled": "Completions are switched off for this language.",
    "trigger-manual": "Completions come only when they are asked for: the setting trigger is manual.",
    "superseded": "A newer request took its place.",
    "document-changed": "The document changed in another way while the suggestion was computed.",
    "unknown-document": "This document is not open.",
}


def inline_completions(offers: Sequence[Offer], encoding: PositionEncoding) -> types.InlineCompletionList:
    """The answer to `textDocument/inlineCompletion`."""
    return types.InlineCompletionList(items=[_inline_item(offer, encoding) for offer in offers])


def completions(offers: Sequence[Offer], encoding: PositionEncoding) -> types.CompletionList:
    """The answer to `textDocument/completion`; incomplete, because each keystroke changes it."""
    return types.CompletionList(is_incomplete=True, items=[_item(offer, encoding) for offer in offers])


def _inline_item(offer: Offer, encoding: PositionEncoding) -> types.InlineCompletionItem:
    return types.InlineCompletionItem(
        insert_text=_inserted(offer), range=_replaced(offer, encoding), command=_accepted(offer)
    )


def _item(offer: Offer, encoding: PositionEncoding) -> types.CompletionItem:
    first, *more = offer.text.strip().splitlines() or [""]
    typed = _typed_word(offer)
    start = offer.column - len(typed)
    replaced = _replaced(offer, encoding)
    replaced.start = _position(offer.document, (offer.line, start), encoding)
    return types.CompletionItem(
        label=f"{typed}{first}{' …' if more else ''}",
        kind=types.CompletionItemKind.Text,
        detail="Slipstream",
        documentation=offer.text if more else None,
        filter_text=f"{typed}{offer.text}",
        sort_text="\uffff",
        text_edit=types.TextEdit(range=replaced, new_text=f"{typed}{_inserted(offer)}"),
        insert_text_mode=types.InsertTextMode.AsIs,
        command=_accepted(offer),
    )


def _typed_word(offer: Offer) -> str:
    """The word left of the cursor: clients filter a completion by it."""
    before = offer.document.content(offer.line)[: offer.column]
    start = len(before)
    while start and (before[start - 1].isalnum() or before[start - 1] == "_"):
        start -= 1
    return before[start:]


def _inserted(offer: Offer) -> str:
    return offer.text.replace("\n", offer.document.newline)


def _replaced(offer: Offer, encoding: PositionEncoding) -> types.Range:
    end = offer.column + offer.num_replaced
    return types.Range(
        start=_position(offer.document, (offer.line, offer.column), encoding),
        end=_position(offer.document, (offer.line, end), encoding),
    )


def _accepted(offer: Offer) -> types.Command:
    return types.Command(
        title="Slipstream: accepted", command=ACCEPTED_COMMAND, arguments=cast(Any, [offer.id])
    )


def _position(document: Document, place: Place, encoding: PositionEncoding) -> types.Position:
    line, column = place
    return types.Position(line=line, character=units_of(document.content(line)[:column], encoding))


def shown_status(status: EngineStatus) -> dict[str, Any]:
    """The parameters of `didChangeStatus`."""
    return {
        "busy": status.state == "loading",
        "message": f"{status.message} {status.advice}".strip(),
        "kind": _KINDS[status.state],
    }


def engine_state(status: EngineStatus) -> dict[str, Any]:
    """The engine's part of the answer to `slipstream/stats`."""
    return {
        "state": status.state,
        "message": status.message,
        "advice": status.advice,
        "progress": {"done": status.done, "total": status.total},
        "engine": status.details,
    }


def index_state(report: FolderReport) -> dict[str, Any]:
    """One folder's part of the answer to `slipstream/stats`."""
    return {
        "folder": str(report.folder),
        "state": report.state,
        "num_files": report.num_files,
        "num_tokens": report.num_tokens,
        "progress": {"done": report.done, "total": report.total, "path": report.path},
        "problem": report.problem,
    }


def unknown_document() -> dict[str, Any]:
    """The answer to `slipstream/why` about a document that is not open."""
    return {
        "triggered": False,
        "shown": False,
        "rule": "unknown-document",
        "reason": _REASONS["unknown-document"],
    }


def explanation(record: Record) -> dict[str, Any]:
    """The answer to `slipstream/why`: what happened at a place, and where each character came from."""
    rule = record.outcome or record.completion.rule
    return {
        "triggered": record.is_triggered,
        "shown": bool(record.text),
        "rule": rule,
        "reason": _REASONS.get(rule, f"The rule {rule} filtered it." if rule else ""),
        "text": record.text,
        "num_replaced": record.completion.num_replaced,
        "pieces": _pieces(record.completion),
        "stats": record.completion.stats.as_dict(),
    }


def _pieces(completion: Completion) -> list[dict[str, str]]:
    return [
        {"text": piece.text, "source": piece.source, "evidence": piece.evidence}
        for piece in completion.pieces
    ]
