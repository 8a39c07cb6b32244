"""Workspace folders that come and go."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types
from pygls.uris import from_fs_path

from lsp_server.handlers.configuration import read_folders
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.workspace.locations import MAX_FOLDERS, path_of

TOO_MANY = f"more than {MAX_FOLDERS} workspace folders are open: the others are not indexed."


def initial_folders(params: types.InitializeParams) -> list[types.WorkspaceFolder]:
    """The folders that the client starts with, however it names them."""
    if params.workspace_folders:
        return list(params.workspace_folders)
    uri = params.root_uri or (from_fs_path(params.root_path) if params.root_path else None)
    if uri:
        return [types.WorkspaceFolder(uri=uri, name="")]
    return []


def change_folders(
    server: SlipstreamServer,
    added: Iterable[types.WorkspaceFolder],
    removed: Iterable[types.WorkspaceFolder] = (),
) -> None:
    """Add and remove folders. Open documents are found anew, and shown to the index of their folder.

    Folders that are not files of this machine, or too many, are left out.
    """
    session = server.session
    for folder in removed:
        if (path := session.folders.remove(folder.uri)) is not None:
            session.configuration.drop_repository(path)
    for folder in added:
        path = path_of(folder.uri)
        if path is not None and not session.folders.add(folder.uri, path):
            server.tell([TOO_MANY], types.MessageType.Warning)
            break
    server.open_files.relocate()
    for uri in session.followed:
        server.open_files.identify(uri)


async def did_change_workspace_folders(
    server: SlipstreamServer, params: types.DidChangeWorkspaceFoldersParams
) -> None:
    """Folders were opened or closed in the editor."""
    change_folders(server, params.event.added, params.event.removed)
    await read_folders(server, server.session.folders.paths)
    server.apply_settings()
