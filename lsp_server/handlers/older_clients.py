"""Methods of clients that were written for an account and an older form of completion.

Nothing is signed in anywhere: each client receives the answer that it is. `getCompletions` gives the
suggestions of `textDocument/inlineCompletion` in another shape, in UTF-16 units, as these clients expect.
"""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable
from typing import Any

from pygls.exceptions import JsonRpcInvalidParams

from lsp_server.handlers.inline_completion import TriggerKind, suggest
from lsp_server.protocol import lsp_conversion
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.workspace.documents import index_of

USER = "Slipstream (no account is needed)"
_SIGNED_IN = {"status": "OK", "user": USER}
_SIGNED_IN_ALREADY = {"status": "AlreadySignedIn", "user": USER}

Handler = Callable[[SlipstreamServer, Any], Any]


def _always(answer: Any) -> Handler:
    """Return a handler whose answer depends on nothing."""

    def handler(_server: SlipstreamServer, _params: Any) -> Any:
        return answer

    return handler


def get_version(server: SlipstreamServer, _params: Any) -> dict[str, str]:
    """Return the versions that clients show among their diagnostics."""
    return {
        "version": server.version,
        "buildType": "local",
        "runtimeVersion": f"Python/{platform.python_version()}",
    }


def models(server: SlipstreamServer, _params: Any) -> list[dict[str, Any]]:
    """Return the one model that completes: the settings choose it, not the client."""
    name = server.scheduler.status.details.get("target", "")
    if not name:
        return []
    return [
        {"id": name, "modelName": name, "modelFamily": name, "scopes": ["completion"], "isChatDefault": False}
    ]


def completions_for(asked: TriggerKind) -> Callable[[SlipstreamServer, Any], Awaitable[dict[str, Any]]]:
    """Return the handler of `getCompletions`, or of `getCompletionsCycling`, whose user wants to choose."""

    async def handler(server: SlipstreamServer, params: Any) -> dict[str, Any]:
        try:
            document = params["doc"]
            text_document = {"uri": document["uri"]}
            uri, place = lsp_conversion.read_position(
                {"textDocument": text_document, "position": document["position"]}
            )
        except (LookupError, TypeError) as error:
            raise JsonRpcInvalidParams from error
        offers = await suggest(server, uri, place, asked)
        return {"completions": [lsp_conversion.older_item(offer, document["position"]) for offer in offers]}

    return handler


def notify_shown(server: SlipstreamServer, _params: Any) -> str:
    """The client put a suggestion on the screen."""
    server.session.measurements.num_shown += 1
    return "OK"


def notify_accepted(server: SlipstreamServer, params: Any) -> str:
    """The user accepted `acceptedLength` UTF-16 units of the suggestion `uuid`, or all of it."""
    fields = params if isinstance(params, dict) else {}
    name, length = fields.get("uuid"), fields.get("acceptedLength")
    session = server.session
    record = session.offers.record(name)
    if record is None:
        return "OK"
    is_part = isinstance(length, int) and index_of(record.text, max(0, length), "utf-16") < len(record.text)
    if is_part:
        session.measurements.num_partially_accepted += 1
    else:
        session.measurements.num_accepted += 1
    session.accept(name, length if is_part else None)
    return "OK"


_IN_ORDER = _always("OK")
HANDLERS: dict[str, Handler] = {
    "checkStatus": _always(_SIGNED_IN),
    "signIn": _always(_SIGNED_IN_ALREADY),
    "signInInitiate": _always(_SIGNED_IN_ALREADY),
    "signInConfirm": _always(_SIGNED_IN),
    "signOut": _always({"status": "NotSignedIn"}),
    "getVersion": get_version,
    "setEditorInfo": _IN_ORDER,
    "notifyChangeConfiguration": _IN_ORDER,
    "copilot/models": models,
    "getCompletions": completions_for("by typing"),
    "getCompletionsCycling": completions_for("to choose"),
    "notifyShown": notify_shown,
    "notifyAccepted": notify_accepted,
    "notifyRejected": _IN_ORDER,
}
