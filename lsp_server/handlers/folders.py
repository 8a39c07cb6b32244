"""Workspace folders that come and go."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types
from pygls.uris import from_fs_path

from lsp_server.handlers.configuration import read_folders
from lsp_server.server import SlipstreamServer
from lsp_server.workspace.session import MAX_FOLDERS
from lsp_server.workspace.uris import path_of

TOO_MANY = f"more than {MAX_FOLDERS} workspace folders are open: the others are not indexed."


def initial_folders(params: types.InitializeParams) -> list[types.WorkspaceFolder]:
    """The folders that the client starts with, however it names them."""
    if params.workspace_folders:
        return list(params.workspace_folders)
    uri = params.root_uri or (from_fs_path(params.root_path) if params.root_path else None)
    if uri:
        return [types.WorkspaceFolder(uri=uri, name="")]
    return []


def add_folders(server: SlipstreamServer, folders: Iterable[types.WorkspaceFolder]) -> None:
    """Take note of folders; those that are no files of this machine, or too many, are left out."""
    for folder in folders:
        if (path := path_of(folder.uri)) is None:
            continue
        if folder.uri not in server.session.folders and len(server.session.folders) >= MAX_FOLDERS:
            server.tell([TOO_MANY], types.MessageType.Warning)
            return
        if path not in server.session.folders.values():
            server.session.unread.add(path)
        server.session.folders[folder.uri] = path


async def did_change_workspace_folders(
    server: SlipstreamServer, params: types.DidChangeWorkspaceFoldersParams
) -> None:
    """Folders were opened or closed in the editor."""
    session = server.session
    for folder in params.event.removed:
        path = session.folders.pop(folder.uri, None)
        if path is not None and path not in session.folders.values():
            session.configuration.drop_repository(path)
            session.unread.discard(path)
    add_folders(server, params.event.added)
    await read_folders(server, session.folders.values())
    server.apply_settings()
