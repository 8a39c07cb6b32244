"""Files that changed on disk, by the client's watch."""

from __future__ import annotations

from lsprotocol import types

from lsp_server.handlers.configuration import read_folders
from lsp_server.server import SlipstreamServer
from lsp_server.workspace.settings_file import REPOSITORY_FILE
from lsp_server.workspace.uris import path_of


async def did_change_watched_files(
    server: SlipstreamServer, params: types.DidChangeWatchedFilesParams
) -> None:
    """Bring the indexes up to date; a folder's own settings file is read again."""
    paths = [path for event in params.changes if (path := path_of(event.uri)) is not None]
    server.indexing.files_changed(paths)
    folders = set(server.session.folders.values())
    narrowed = {path.parent for path in paths if path.name == REPOSITORY_FILE} & folders
    if narrowed:
        await read_folders(server, narrowed)
        server.apply_settings()
