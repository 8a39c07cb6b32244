"""The command `slipstream.purgeIndex`: forget what is indexed, and begin anew."""

from __future__ import annotations

from typing import Any

from pygls.exceptions import JsonRpcInternalError

from lsp_server.server import SlipstreamServer


async def purge_index(server: SlipstreamServer, *_arguments: Any) -> int:
    """Delete the index of every workspace folder and build it again; return their number.

    Raises JsonRpcInternalError when a file cannot be deleted.
    """
    folders = set(server.session.folders.values())
    try:
        await server.indexing.purge(folders)
    except OSError as error:
        raise JsonRpcInternalError(f"The index cannot be deleted: {error}.") from error
    server.apply_settings()
    return len(folders)
