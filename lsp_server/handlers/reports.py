"""`slipstream/stats`, `slipstream/why` and `slipstream/complete`: the server, and a suggestion explained."""

from __future__ import annotations

import asyncio
from typing import Any

from pygls.exceptions import JsonRpcInvalidParams

from lsp_server.engine.scheduler import SupersededError
from lsp_server.handlers.inline_completion import Limits, suggest
from lsp_server.protocol import lsp_conversion
from lsp_server.protocol.edit_conversion import edit_explanation
from lsp_server.protocol.lsp_conversion import read_position
from lsp_server.protocol.reasons import REASONS, texts
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.workspace.documents import LineColumn
from lsp_server.workspace.offers import CompletionRecord

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
    return await _why_at(server, *_parse(params))


async def complete(server: SlipstreamServer, params: Any) -> dict[str, Any]:
    """The suggestion at a cursor with its explanation, within the client's `deadlineMs` and `maxTokens`.

    It may be for the user or for the editor: the client does not say. `text` replaces the `num_replaced`
    characters after the cursor.
    """
    uri, place = _parse(params)
    given = {"deadline_ms": params.get("deadlineMs"), "max_tokens": params.get("maxTokens")}
    limits = Limits(**{name: value for name, value in given.items() if isinstance(value, int) and value > 0})
    try:
        offers = await suggest(server, uri, place, "maybe", limits=limits)
    except SupersededError:
        raise asyncio.CancelledError from None
    best = offers[0] if offers else None
    text, num_replaced = (best.typed + best.text, best.num_replaced) if best else ("", 0)
    return {**await _why_at(server, uri, place), "text": text, "num_replaced": num_replaced}


async def _why_at(server: SlipstreamServer, uri: str, place: LineColumn) -> dict[str, Any]:
    snapshot = server.session.snapshot(uri, place)
    if snapshot is None:
        return lsp_conversion.unknown(
            "document-too-large" if uri in server.session.too_large else "unknown-document"
        )
    record = server.session.offers.last_at(snapshot)
    if record is None or record.outcome == "superseded":
        try:
            await suggest(server, uri, place, "by typing")
        except SupersededError:
            raise asyncio.CancelledError from None
        record = server.session.offers.last_at(snapshot)
    answer = _explained(server, record) if record else lsp_conversion.unknown("unknown-document")
    edit = server.session.proposals.last_of(uri)
    return {**answer, "next_edit": edit_explanation(edit)} if edit else answer


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
