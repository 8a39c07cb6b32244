"""`slipstream/why`: for any place, what came of it and by which rule."""

from __future__ import annotations

import asyncio
from typing import Any

from pygls.exceptions import JsonRpcInvalidParams

from lsp_server import conversion
from lsp_server.documents import Place
from lsp_server.handlers.suggesting import suggest
from lsp_server.scheduling import SupersededError
from lsp_server.server import SlipstreamServer


async def why(server: SlipstreamServer, params: Any) -> dict[str, Any]:
    """Recalls the last completion at this place, or asks for one now as an editor would.

    Raises JsonRpcInvalidParams for parameters that name no place.
    """
    uri, place = _parse(params)
    snapshot = server.session.snapshot(uri, place)
    if snapshot is None:
        return conversion.unknown_document()
    record = server.session.last_record_at(snapshot)
    if record is None or record.outcome == "superseded":
        try:
            await suggest(server, uri, place, is_invoked=False)
        except SupersededError:
            raise asyncio.CancelledError from None
        record = server.session.last_record_at(snapshot)
    return conversion.explanation(record) if record else conversion.unknown_document()


def _parse(params: Any) -> tuple[str, Place]:
    try:
        position = params["position"]
        uri, line, column = params["textDocument"]["uri"], position["line"], position["character"]
    except (TypeError, KeyError) as error:
        raise JsonRpcInvalidParams("Expected {textDocument: {uri}, position: {line, character}}.") from error
    if not (isinstance(uri, str) and isinstance(line, int) and isinstance(column, int)):
        raise JsonRpcInvalidParams("uri is a string; line and character are integers.")
    return uri, (max(0, line), max(0, column))
