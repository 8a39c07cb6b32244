"""Converts values of the protocol to the server's own and back: positions inward, all results outward."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from lsprotocol import types

from completion_engine.request import CompletionSegment
from completion_engine.text_window import MAX_CHARS_AFTER, MAX_CHARS_BEFORE
from lsp_server.engine.engine_types import EngineStatus
from lsp_server.protocol.reasons import REASONS, STATES, reason_of, texts
from lsp_server.workspace.documents import LineColumn, PositionEncoding, typed_word, units_of
from lsp_server.workspace.measurements import FolderReport, percent
from lsp_server.workspace.offers import CompletionRecord, Offer
from ngram_cache.redaction import blank_parts

ACCEPTED_COMMAND = "slipstream.accepted"

# Request for clients with notebooks: all of them, with all cells.
ALL_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")], save=False
)

# The kinds that clients of other completion servers already show.
_KINDS = {"loading": "Normal", "ready": "Normal", "error": "Error"}
_OLDER_KINDS = {"Normal": "Normal", "Error": "Error", "Inactive": "Warning"}


def line_column_of(position: types.Position) -> LineColumn:
    """A position of the protocol as line and column, in the client's units."""
    return position.line, position.character


def member(value: object, name: str) -> Any:
    """Return the value of an object of JSON under a name; None for anything else."""
    return value.get(name) if isinstance(value, dict) else None


def read_position(params: Any) -> tuple[str, LineColumn]:
    """The URI and the position in `{textDocument: {uri}, position: {line, character}}`.

    Raises LookupError if a part is missing, TypeError if one has the wrong type.
    """
    try:
        position = params["position"]
        uri, line, column = params["textDocument"]["uri"], position["line"], position["character"]
    except (TypeError, KeyError) as error:
        raise LookupError(params) from error
    if not (isinstance(uri, str) and isinstance(line, int) and isinstance(column, int)):
        raise TypeError("uri is a string; line and character are integers.")
    return uri, (max(0, line), max(0, column))


def inline_completions(offers: Sequence[Offer], encoding: PositionEncoding) -> types.InlineCompletionList:
    """The answer to `textDocument/inlineCompletion`."""
    return types.InlineCompletionList(items=[_inline_item(offer, encoding) for offer in offers])


def completions(offers: Sequence[Offer], encoding: PositionEncoding) -> types.CompletionList:
    """The answer to `textDocument/completion`; incomplete, because each keystroke changes it.

    Clients apply its ranges to the line as it was when they asked, and match with what is typed now.
    """
    here = [offer for offer in offers if "\n" not in offer.typed]
    items = [_item(offer, rank, encoding) for rank, offer in enumerate(here)]
    return types.CompletionList(is_incomplete=True, items=items)


def _inline_item(offer: Offer, encoding: PositionEncoding) -> types.InlineCompletionItem:
    return types.InlineCompletionItem(
        insert_text=offer.text.replace("\n", offer.document.newline),
        range=_span(offer, offer.document.content(offer.line)[: offer.column], "", encoding),
        command=_accepted(offer),
    )


def older_item(offer: Offer, position: object) -> dict[str, Any]:
    """One of the `completions` that `getCompletions` returns for a `position`.

    Its text begins with the line: where clients accept a part, they count from the line's beginning.
    """
    before = offer.document.content(offer.line)[: offer.column]
    text = offer.text.replace("\n", offer.document.newline)
    span = _span(offer, before, before, "utf-16")
    return {
        "uuid": offer.id,
        "text": before + text,
        "displayText": text,
        "range": {
            "start": {"line": span.start.line, "character": span.start.character},
            "end": {"line": span.end.line, "character": span.end.character},
        },
        "position": position,
    }


def inserted_text(offer: Offer, after: str) -> str:
    """The text that has the same effect in front of what is `after` the cursor; empty if there is none."""
    text, replaced = offer.typed + offer.text, after[: offer.num_replaced]
    return text.removesuffix(replaced) if text.endswith(replaced) else ""


def _item(offer: Offer, rank: int, encoding: PositionEncoding) -> types.CompletionItem:
    """An item that replaces the word left of the cursor too: clients match that word with `filter_text`.

    It sorts after the items of other servers, and its range stays on the cursor's line.
    """
    before = offer.document.content(offer.line)[: offer.column - len(offer.typed)]
    word = typed_word(before)
    whole = f"{word}{offer.typed}{offer.text}"
    first, *more = whole.strip().splitlines() or [""]
    fenced = f"````{offer.document.language}\n{whole}\n````"  # keeps the indentation where it is shown
    return types.CompletionItem(
        label=f"{first} …" if more else first,
        kind=types.CompletionItemKind.Text,
        detail="Slipstream",
        documentation=types.MarkupContent(types.MarkupKind.Markdown, fenced) if more else None,
        filter_text=first,
        sort_text=f"\uffff{rank}",
        text_edit=types.TextEdit(
            _span(offer, before, word, encoding), whole.replace("\n", offer.document.newline)
        ),
        insert_text_mode=types.InsertTextMode.AsIs,
        command=_accepted(offer),
    )


def _span(offer: Offer, before: str, taken: str, encoding: PositionEncoding) -> types.Range:
    """From `taken`, the end of the line's text `before` the cursor, to the end of what the offer replaces."""
    replaced = offer.document.content(offer.line)[offer.column :][: offer.num_replaced]
    start = units_of(before.removesuffix(taken), encoding)
    end = units_of(before, encoding) + units_of(replaced, encoding)
    return types.Range(types.Position(offer.line, start), types.Position(offer.line, end))


def _accepted(offer: Offer) -> types.Command:
    return types.Command(
        title="Slipstream: accepted", command=ACCEPTED_COMMAND, arguments=cast(Any, [offer.id])
    )


def shown_status(status: EngineStatus, inactive_by: str = "") -> dict[str, Any]:
    """The parameters of `didChangeStatus`.

    `inactive_by` names the rule by which nothing is suggested in the document that the user looks at.
    """
    message = f"{status.message} {status.advice}".strip() or STATES[status.state]
    kind = _KINDS[status.state]
    if inactive_by and kind != "Error":
        message, kind = REASONS[inactive_by], "Inactive"
    return {
        "busy": status.state == "loading",
        "message": message,
        "kind": kind,
        "state": status.state,
        "percent": percent(status.done, status.total) if status.state == "loading" else None,
    }


def older_status(status: dict[str, Any]) -> dict[str, str]:
    """The parameters of `statusNotification`, by those of `didChangeStatus`."""
    kind = "InProgress" if status["busy"] else _OLDER_KINDS[status["kind"]]
    return {"status": kind, "message": status["message"] if kind != "Normal" else ""}


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


def unknown(rule: str) -> dict[str, Any]:
    """The answer to `slipstream/why` for an unknown record; `rule` names the reason."""
    return {"triggered": False, "shown": False, "rule": rule, "reason": REASONS[rule], "texts": texts()}


def reason_for(record: CompletionRecord) -> str:
    """The sentence about the end of a suggestion, or about none."""
    rule = record.outcome or record.completion.rule
    return reason_of(rule, record.completion.stats.finish_reason, is_shown=bool(record.text))


def explanation(record: CompletionRecord, folder: Path | None) -> dict[str, Any]:
    """The answer to `slipstream/why`: the result at a position, and the source of each character.

    `rule` names the end or the reason of no suggestion for programs, and `reason` for people. `folder` is the
    workspace folder whose index was drafted from. Secrets that the text around the cursor shows are left out.
    """
    rule = record.outcome or record.completion.rule
    segments, around = record.completion.segments, record.snapshot
    before, after = around.prefix[-MAX_CHARS_BEFORE:], around.suffix[:MAX_CHARS_AFTER]
    pieces = blank_parts(before, *(segment.text for segment in segments), after)[1:-1]
    return {
        "triggered": record.is_triggered,
        "shown": bool(record.text),
        "rule": rule,
        "reason": reason_for(record),
        "text": blank_parts(before, record.text, after)[1],
        "num_replaced": record.completion.num_replaced,
        "pieces": [_segment(*pair, folder) for pair in zip(segments, pieces, strict=True)],
        "stats": record.completion.stats.as_dict(),
        "texts": texts(),
    }


def _segment(segment: CompletionSegment, text: str, folder: Path | None) -> dict[str, Any]:
    file = str(folder / segment.path) if folder and segment.path else None
    return {
        "text": text,
        "source": segment.source,
        "evidence": segment.evidence,
        "file": file,
        "line": segment.line if file else None,
    }
