"""What the user did: the commands that editors run for them, and what became of a suggestion or an edit.

`workspace/executeCommand`, and notifications of clients of several completion servers, whose shape is not
relied on. Counted here and sent nowhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInternalError, JsonRpcInvalidParams

from lsp_server.handlers.prefetching import prefetch
from lsp_server.protocol.edit_conversion import ACCEPTED_EDIT_COMMAND, REJECTED_EDIT_COMMAND
from lsp_server.protocol.lsp_conversion import ACCEPTED_COMMAND, member, read_position
from lsp_server.protocol.server import SlipstreamServer


async def execute_command(server: SlipstreamServer, params: types.ExecuteCommandParams) -> Any:
    """Run a command. Raises JsonRpcInvalidParams for one that does not exist."""
    if (command := COMMANDS.get(params.command)) is None:
        raise JsonRpcInvalidParams(f"There is no command {params.command!r}.")
    return await command(server, params.arguments or ())


async def _accepted(server: SlipstreamServer, arguments: Sequence[Any]) -> None:
    """The user accepted a whole suggestion; the first argument is its id."""
    server.session.measurements.num_accepted += 1
    if arguments:
        server.session.accept(arguments[0])


async def _accepted_edit(server: SlipstreamServer, arguments: Sequence[Any]) -> None:
    """The user applied a proposed edit; the first argument is its id."""
    if arguments and server.session.proposals.accept(arguments[0]):
        server.session.measurements.num_edits_accepted += 1


async def _rejected_edit(server: SlipstreamServer, arguments: Sequence[Any]) -> None:
    """The user dismissed a proposed edit; the first argument is its id. It is not proposed again."""
    if arguments and server.session.proposals.reject(arguments[0]):
        server.session.measurements.num_edits_rejected += 1


async def _purge_index(server: SlipstreamServer, _arguments: Sequence[Any]) -> int:
    """Delete the index of every workspace folder and build it again; return their number.

    Raises JsonRpcInternalError when a file cannot be deleted.
    """
    folders = server.session.folders.paths
    try:
        await server.indexes.purge(folders)
    except OSError as error:
        raise JsonRpcInternalError(f"The index cannot be deleted: {error}.") from error
    server.apply_settings()
    return len(folders)


COMMANDS: dict[str, Callable[[SlipstreamServer, Sequence[Any]], Awaitable[Any]]] = {
    ACCEPTED_COMMAND: _accepted,
    ACCEPTED_EDIT_COMMAND: _accepted_edit,
    REJECTED_EDIT_COMMAND: _rejected_edit,
    "slipstream.purgeIndex": _purge_index,
}


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
