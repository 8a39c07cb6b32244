"""`textDocument/inlineCompletion`, and `textDocument/completion` for clients that know no better."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from lsp_server.engine.scheduling import SupersededError
from lsp_server.handlers.suggesting import Selected, TriggerKind, suggest
from lsp_server.protocol import lsp_conversion
from lsp_server.protocol.lsp_conversion import line_column_of
from lsp_server.server import SlipstreamServer


async def inline_completion(
    server: SlipstreamServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """One suggestion or none; a choice where the user asked."""
    is_invoked = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
    asked: TriggerKind = "to choose" if is_invoked else "by typing"
    uri, place = params.text_document.uri, line_column_of(params.position)
    selected = None
    if (info := params.context.selected_completion_info) is not None:
        selected = Selected(line_column_of(info.range.start), line_column_of(info.range.end), info.text)
    try:
        offers = await suggest(server, uri, place, asked, selected)
    except SupersededError:
        # Nobody waits for this one: it ends as one that the client cancelled itself.
        raise asyncio.CancelledError from None
    return lsp_conversion.inline_completions(offers, server.session.encoding)


async def completion(server: SlipstreamServer, params: types.CompletionParams) -> types.CompletionList:
    """The same as items of the completion list."""
    kind = params.context.trigger_kind if params.context else types.CompletionTriggerKind.Invoked
    uri, place = params.text_document.uri, line_column_of(params.position)
    # Typing a word asks with `Invoked` too: only behind something else was it certainly the user.
    asked: TriggerKind = "by typing"
    if kind == types.CompletionTriggerKind.Invoked:
        asked = "maybe" if server.session.is_behind_word(uri, place) else "to choose"
    try:
        offers = await suggest(server, uri, place, asked)
    except SupersededError:
        raise asyncio.CancelledError from None
    return lsp_conversion.completions(offers, server.session.encoding)
