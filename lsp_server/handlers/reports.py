"""`slipstream/stats`, `slipstream/why` and `slipstream/complete`: the server, and a suggestion explained."""

from __future__ import annotations

import asyncio
from typing import Any

from pygls.exceptions import JsonRpcInvalidParams

from lsp_server.handlers.inline_completion import ClientLimits, suggest
from lsp_server.protocol import lsp_conversion
from lsp_server.protocol.edit_conversion import edit_explanation
from lsp_server.protocol.lsp_conversion import read_position
from lsp_server.protocol.reasons import REASONS, texts
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.workspace.documents import LineColumn
from lsp_server.workspace.offers import CompletionRecord

_MAX_LIMIT = 1_000_000  # milliseconds or tokens; whole numbers of JSON have no end
_EXPECTED = "Expected {id} or {textDocument: {uri}, position: {line, character}}."


async def why(server: SlipstreamServer, params: Any) -> dict[str, Any]:
    """Recalls a suggestion by its id; or the last completion at a place, or asks for one as an editor would.

    Raises JsonRpcInvalidParams for parameters that name neither.
    """
    if isinstance(params, dict) and isinstance(record_id := params.get("id"), str):
        if (edit_record := server.session.proposals.record(record_id)) is not None:
            return edit_explanation(edit_record)
        record = server.session.offers.record(record_id)
        return _explained(server, record) if record else lsp_conversion.unknown("unknown-suggestion")
    uri, place = _parse(params)
    snapshot = server.session.snapshot(uri, place)
    if snapshot is None:
        return lsp_conversion.unknown(_unknown(server, uri))
    record = server.session.offers.last_at(snapshot)
    if record is None or record.outcome == "superseded":
        await suggest(server, uri, place, "by typing")
        record = server.session.offers.last_at(snapshot)
    answer = _explained(server, record) if record else lsp_conversion.unknown("unknown-document")
    edit = server.session.proposals.last_of(uri)
    return {**answer, "next_edit": edit_explanation(edit)} if edit else answer


async def complete(server: SlipstreamServer, params: Any) -> dict[str, Any]:
    """The `text` to insert at a cursor, for a client that replaces nothing and shows no text that grows.

    The client does not say if the user asked. `deadlineMs` and `maxTokens` are its own limits. Without a
    text, `rule` and `reason` say why.
    """
    uri, place = _parse(params)
    given = (params.get(name) for name in ("deadlineMs", "maxTokens"))
    deadline_ms, num_tokens = (
        min(it, _MAX_LIMIT) if isinstance(it, int) and it > 0 else None for it in given
    )
    try:
        offers = await suggest(server, uri, place, "maybe", ClientLimits(None, deadline_ms or 0, num_tokens))
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) and task.cancelling():
            raise  # the client cancelled it; otherwise a newer request came
        return {"text": "", "rule": "superseded", "reason": REASONS["superseded"], "stats": {}}
    snapshot = server.session.snapshot(uri, place)
    record = server.session.offers.last_at(snapshot) if snapshot else None
    if snapshot is None or record is None:
        return {"text": "", "rule": (rule := _unknown(server, uri)), "reason": REASONS[rule], "stats": {}}
    text = lsp_conversion.inserted_text(offers[0], snapshot.suffix) if offers else ""
    reason = REASONS["replaces-text"] if offers and not text else lsp_conversion.reason_for(record)
    rule = record.outcome or record.completion.rule
    return {"text": text, "rule": rule, "reason": reason, "stats": record.completion.stats.as_dict()}


def _unknown(server: SlipstreamServer, uri: str) -> str:
    """Return the rule by which a document that is not followed gets nothing."""
    return "document-too-large" if uri in server.session.too_large else "unknown-document"


def _explained(server: SlipstreamServer, record: CompletionRecord) -> dict[str, Any]:
    found = lsp_conversion.explanation(record, server.session.location_of(record.snapshot.uri).folder)
    is_writing = server.growth.may_grow(record.snapshot) and not server.scheduler.is_quiet
    return {**found, "reason": REASONS["still-writing"]} if is_writing else found


def _parse(params: Any) -> tuple[str, LineColumn]:
    try:
        return read_position(params)
    except LookupError as error:
        raise JsonRpcInvalidParams(_EXPECTED) from error
    except TypeError as error:
        raise JsonRpcInvalidParams(str(error)) from error


async def stats(server: SlipstreamServer, _params: Any) -> dict[str, Any]:
    """The engine's state, counters, latencies, the state of each folder's index, and the usage by day."""
    usage = await server.usage.summaries() if server.usage else None
    return {
        **lsp_conversion.engine_state(server.scheduler.status),
        **server.session.measurements.as_dict(),
        "texts": texts(server.session.measurements.rules),
        "usage": usage,
        "num_documents": len(server.session.documents),
        "index": [lsp_conversion.index_state(report) for report in server.indexes.reports()],
    }
