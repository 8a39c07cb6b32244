"""Workspace folders that come and go, and files that changed on disk, by the client's watch or by our own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import from_fs_path

from lsp_server.handlers.configuration import read_folders
from lsp_server.protocol.lsp_conversion import member
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.sharing.supervision import on_loop
from lsp_server.workspace.folder_worker import MAX_PATHS
from lsp_server.workspace.locations import MAX_FOLDERS, path_of
from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_reading import REPOSITORY_FILE
from ngram_cache.repository import RepositoryOptions

# Paths that are handled before others get their turn.
NUM_AT_ONCE = 32
TOO_MANY = f"more than {MAX_FOLDERS} workspace folders are open: the others are not indexed."


async def did_change_watched_files(server: SlipstreamServer, params: Any) -> None:
    """Follow what the client saw; after more changes than an index takes, whole folders are read again."""
    changes = member(params, "changes")
    uris = [member(change, "uri") for change in changes] if isinstance(changes, list) else []
    if len(uris) > MAX_PATHS:
        await files_changed(server, server.session.folders.paths)
        return
    for first in range(0, len(uris), NUM_AT_ONCE):
        named = (path_of(uri) for uri in uris[first : first + NUM_AT_ONCE] if isinstance(uri, str))
        await files_changed(server, [path for path in named if path is not None])
        await asyncio.sleep(0)


async def files_changed(server: SlipstreamServer, paths: Sequence[Path]) -> None:
    """Bring the indexes up to date; a folder's own settings file is read again."""
    server.indexes.files_changed(paths)
    await settings_may_have_changed(server, paths)


async def settings_may_have_changed(server: SlipstreamServer, paths: Iterable[Path]) -> None:
    """Read the settings files in `paths` again. A folder in `paths` covers all files below it."""
    session = server.session
    named = {path.parent if path.name == REPOSITORY_FILE else path for path in paths}
    folders = [folder for folder in session.folders.paths if folder in named]
    if not folders or server.has_ended:
        return

    def known() -> list[tuple[Settings, RepositoryOptions | None]]:
        return [(session.configuration.of(folder), session.index_options(folder)) for folder in folders]

    before = known()
    await read_folders(server, folders)
    if known() != before:
        server.apply_settings()


def watch_files(server: SlipstreamServer) -> None:
    """Watch files in the server: changes are handled like the client's notifications."""
    loop = asyncio.get_running_loop()
    reading: set[asyncio.Task[None]] = set()

    def read(paths: set[Path]) -> None:
        task = loop.create_task(settings_may_have_changed(server, paths))
        reading.add(task)
        task.add_done_callback(reading.discard)

    server.indexes.watch_files(partial(on_loop, loop, read))


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
            server.messages.show([TOO_MANY], types.MessageType.Warning)
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
