"""`textDocument/inlineCompletion`, and `textDocument/completion` for clients that know no better."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from lsp_server import conversion
from lsp_server.documents import Place
from lsp_server.handlers.suggesting import Selected, suggest
from lsp_server.scheduling import SupersededError
from lsp_server.server import SlipstreamServer


async def inline_completion(
    server: SlipstreamServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """One suggestion or none."""
    is_invoked = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
    uri, place = params.text_document.uri, _place(params.position)
    selected = None
    if (info := params.context.selected_completion_info) is not None:
        selected = Selected(_place(info.range.start), _place(info.range.end), info.text)
    try:
        offers = await suggest(server, uri, place, is_invoked=is_invoked, selected=selected)
    except SupersededError:
        # Nobody waits for this one: it ends as one that the client cancelled itself.
        raise asyncio.CancelledError from None
    return conversion.inline_completions(offers, server.session.encoding)


async def completion(server: SlipstreamServer, params: types.CompletionParams) -> types.CompletionList:
    """The same suggestion as an item of the completion list."""
    kind = params.context.trigger_kind if params.context else types.CompletionTriggerKind.Invoked
    # Typing a word asks with `Invoked` too, so a manual trigger cannot be told from an automatic one here.
    is_invoked = kind == types.CompletionTriggerKind.Invoked
    uri, place = params.text_document.uri, _place(params.position)
    try:
        offers = await suggest(server, uri, place, is_invoked=is_invoked)
    except SupersededError:
        raise asyncio.CancelledError from None
    return conversion.completions(offers, server.session.encoding)


def _place(position: types.Position) -> Place:
    return position.line, position.character
