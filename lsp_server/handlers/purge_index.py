"""The command `slipstream.purgeIndex`: forget what is indexed, and begin anew."""

from __future__ import annotations

from typing import Any

from pygls.exceptions import JsonRpcInternalError

from lsp_server.server import SlipstreamServer
from lsp_server.sharing import hangs
from lsp_server.supervision import on_own_thread


async def purge_index(server: SlipstreamServer, *_arguments: Any) -> int:
    """The number of workspace folders whose index is deleted now. They are built again afterwards,
    those too that were set aside because the server hung at them.

    Raises JsonRpcInternalError when a file cannot be deleted.
    """
    folders = set(server.session.folders.values())
    try:
        await server.indexing.purge(folders)
        for folder in folders & server.session.set_aside:
            await on_own_thread(hangs.forgive, str(folder))
            server.session.set_aside.discard(folder)
    except OSError as error:
        raise JsonRpcInternalError(f"The index cannot be deleted: {error}.") from error
    server.apply_settings()
    return len(folders)
