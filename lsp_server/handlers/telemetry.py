"""What became of a suggestion: shown, accepted, accepted in part. Counted here and sent nowhere.

These notifications come from clients of several completion servers, so their shape is not relied on.
"""

from __future__ import annotations

from typing import Any

from lsp_server.handlers.prefetching import prefetch
from lsp_server.protocol.lsp_conversion import member, read_position
from lsp_server.protocol.server import SlipstreamServer


def did_show_completion(server: SlipstreamServer, _params: Any) -> None:
    """The client put a suggestion on the screen."""
    server.session.measurements.num_shown += 1


def did_show_inline_edit(server: SlipstreamServer, _params: Any) -> None:
    """The client put a proposed edit on the screen."""
    server.session.measurements.num_edits_shown += 1


def did_partially_accept_completion(server: SlipstreamServer, params: Any) -> None:
    """The user took a part of a suggestion: `acceptedLength` UTF-16 units from its start until now."""
    server.session.measurements.num_partially_accepted += 1
    length = params.get("acceptedLength") if isinstance(params, dict) else None
    if isinstance(length, int):
        server.session.accept(_id_of(params.get("item")), length)


async def did_focus(server: SlipstreamServer, params: Any) -> None:
    """The user looks at another document, or at another place where the client says `position` too.

    A document that was opened just now is prepared once the server knows which file it is.
    """
    server.session.measurements.num_focused += 1
    uri = member(member(params, "textDocument"), "uri")
    server.session.focused_uri = uri if isinstance(uri, str) else ""
    server.show_status()
    try:
        uri, place = read_position(params)
    except (LookupError, TypeError):
        return  # most clients name no position
    version = server.session.version_of(uri)
    await server.open_files.identified(uri)
    if version is not None and server.session.version_of(uri) == version:
        prefetch(server, uri, place)


def _id_of(item: object) -> object:
    """The id that an item's command carries."""
    arguments = member(member(item, "command"), "arguments")
    return arguments[0] if isinstance(arguments, list) and arguments else None
