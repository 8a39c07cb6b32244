"""Which function answers which method. The only place where methods are registered.

`def` handlers run on the event loop and return within microseconds; `async def` handlers may wait for
another thread or the client, and are cancelled by `$/cancelRequest`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from lsprotocol import types

from lsp_server.handlers import (
    document_sync,
    folders,
    inline_completion,
    lifecycle,
    next_edit,
    older_clients,
    reports,
    user_actions,
)
from lsp_server.protocol.server import SlipstreamServer


@dataclass(frozen=True, slots=True)
class Route:
    """A method, its handler and the options it is advertised with."""

    method: str
    handler: Callable[..., Any]
    options: Any = None


ROUTES = (
    Route(types.INITIALIZE, lifecycle.initialize),
    Route(types.INITIALIZED, lifecycle.initialized),
    Route(types.TEXT_DOCUMENT_DID_OPEN, document_sync.did_open),
    Route(types.TEXT_DOCUMENT_DID_CHANGE, document_sync.did_change),
    Route(types.TEXT_DOCUMENT_DID_SAVE, document_sync.did_save),
    Route(types.TEXT_DOCUMENT_DID_CLOSE, document_sync.did_close),
    Route(types.NOTEBOOK_DOCUMENT_DID_OPEN, document_sync.did_open_notebook),
    Route(types.NOTEBOOK_DOCUMENT_DID_CHANGE, document_sync.did_change_notebook),
    Route(types.NOTEBOOK_DOCUMENT_DID_CLOSE, document_sync.did_close_notebook),
    Route(
        types.TEXT_DOCUMENT_INLINE_COMPLETION,
        inline_completion.inline_completion,
        types.InlineCompletionOptions(),
    ),
    Route(types.WORKSPACE_DID_CHANGE_CONFIGURATION, folders.did_change_configuration),
    Route(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, folders.did_change_workspace_folders),
    Route(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, folders.did_change_watched_files),
    Route(
        types.WORKSPACE_EXECUTE_COMMAND,
        user_actions.execute_command,
        types.ExecuteCommandOptions(commands=list(user_actions.COMMANDS)),
    ),
    Route("textDocument/copilotInlineEdit", next_edit.next_edit),
    Route("slipstream/stats", reports.stats),
    Route("slipstream/why", reports.why),
    Route("slipstream/complete", reports.complete),
    Route("textDocument/didShowCompletion", user_actions.did_show_completion),
    Route("textDocument/didPartiallyAcceptCompletion", user_actions.did_partially_accept_completion),
    Route("textDocument/didShowInlineEdit", user_actions.did_show_inline_edit),
    Route("textDocument/didFocus", user_actions.did_focus),
    *(Route(method, handler) for method, handler in older_clients.HANDLERS.items()),
)


def register(server: SlipstreamServer) -> None:
    """Connect every method with its handler."""
    for route in ROUTES:
        server.protocol.connect(route.method, partial(route.handler, server), route.options)
    server.protocol.on_unhandled = partial(document_sync.not_followed, server)
