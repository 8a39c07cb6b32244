"""`workspace/executeCommand`: the commands that editors run on behalf of the user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInternalError, JsonRpcInvalidParams

from lsp_server.protocol.edit_conversion import ACCEPTED_EDIT_COMMAND, REJECTED_EDIT_COMMAND
from lsp_server.protocol.lsp_conversion import ACCEPTED_COMMAND
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
