"""Settings from the editor and from each folder's own file; workspace folders that come and go; and files
that changed on disk, by the client's watch or by our own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.uris import from_fs_path

from lsp_server.protocol.lsp_conversion import member
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.sharing.supervision import AnyResult, on_loop, on_own_thread
from lsp_server.workspace import settings_reading
from lsp_server.workspace.folder_worker import MAX_PATHS
from lsp_server.workspace.locations import MAX_FOLDERS, READING_S, path_of
from lsp_server.workspace.open_files import Reading, find_folder
from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_reading import REPOSITORY_FILE, UNREADABLE, FoundSettings
from ngram_cache.repository import RepositoryOptions

logger = logging.getLogger(__name__)

SECTION = "slipstream"
PULL_TIMEOUT_S = 3.0
# Files that could not be read, for example because the system had no thread, are tried again after this.
READ_AGAIN_S = 1.0
# Paths that are handled before others get their turn.
NUM_AT_ONCE = 32
TOO_MANY = f"more than {MAX_FOLDERS} workspace folders are open: the others are not indexed."


async def did_change_configuration(
    server: SlipstreamServer, params: types.DidChangeConfigurationParams
) -> None:
    """New settings: those that came along, or else those that the client gives when asked."""
    pushed = member(params.settings, SECTION)
    if pushed is None and can_pull(server):
        await pull(server)
    else:
        set_editor_layer(server, pushed)
    server.apply_settings()


def set_editor_layer(server: SlipstreamServer, values: Any) -> None:
    """Apply the editor's values and report invalid ones."""
    problems = server.session.configuration.set_layer("the editor's settings", values)
    server.messages.show(problems, types.MessageType.Warning)


def can_pull(server: SlipstreamServer) -> bool:
    """Whether the client answers questions about its settings."""
    workspace = server.client_capabilities.workspace
    return bool(workspace and workspace.configuration)


async def pull(server: SlipstreamServer) -> None:
    """Ask the client for our section. Without an answer, what held before stays in force."""
    params = types.ConfigurationParams(items=[types.ConfigurationItem(section=SECTION)])
    try:
        values = await server.protocol.ask(types.WORKSPACE_CONFIGURATION, params, PULL_TIMEOUT_S)
    except JsonRpcException as error:
        logger.warning("The client does not send its settings: %r", error)
        set_editor_layer(server, UNREADABLE)
        return
    if isinstance(values, Sequence):
        values = values[0] if values else None
    set_editor_layer(server, values)


async def read_files(server: SlipstreamServer) -> None:
    """Read the user's own settings file and those of the folders."""
    await _in_time(server, {_user_file(server), *_begun(server, server.session.folders.paths)})


async def read_folders(server: SlipstreamServer, folders: Iterable[Path]) -> None:
    """Read the narrowing files of the folders."""
    await _in_time(server, _begun(server, folders))


def _user_file(server: SlipstreamServer) -> Reading:
    return server.readings.begin(settings_reading.user_file(), lambda path: _read_user_file(server, path))


def _begun(server: SlipstreamServer, folders: Iterable[Path]) -> set[Reading]:
    return {server.readings.begin(folder, lambda folder: _read(server, folder)) for folder in folders}


async def _in_time(server: SlipstreamServer, readings: set[Reading]) -> None:
    """Wait for readings, side by side; apply one when it arrives where a disk does not respond in time."""
    if readings:
        _, late = await asyncio.wait(readings, timeout=READING_S)
        for reading in late:
            reading.add_done_callback(lambda _reading: server.apply_settings())


async def _until_read(server: SlipstreamServer, read: Callable[[Path], AnyResult], path: Path) -> AnyResult:
    """Read on another thread, again and again until it succeeds. Raises CancelledError once all has ended."""
    while not server.has_ended:
        try:
            return await on_own_thread(read, path)
        except Exception as error:
            logger.warning("The settings of %s cannot be read yet: %r", path, error)
            await asyncio.sleep(READ_AGAIN_S)
    raise asyncio.CancelledError


async def _read_user_file(server: SlipstreamServer, path: Path) -> None:
    values, problems = await _until_read(server, settings_reading.read_user_file, path)
    problems = (*problems, *server.session.configuration.set_layer("config.toml", values))
    server.messages.show(problems, types.MessageType.Warning)


async def read_missing_rules(server: SlipstreamServer, saved: Path | None) -> None:
    """Read again the user's rules that could not be read so far, and their file when it is `saved`."""
    configuration = server.session.configuration
    reads_file = configuration.lacks_rules("config.toml") or saved == settings_reading.user_file()
    asks_editor = configuration.lacks_rules("the editor's settings") and can_pull(server)
    if reads_file:
        await _in_time(server, {_user_file(server)})
    if asks_editor:
        await pull(server)
    if reads_file or asks_editor:
        server.apply_settings()


async def _read(server: SlipstreamServer, folder: Path) -> None:
    session = server.session
    own, (path, around) = await _until_read(server, _read_folder, folder)
    if server.has_ended or folder not in session.folders:
        return
    leads_elsewhere = session.folders.read(folder, path)
    session.folders.around[folder] = tuple(around)
    for place, (values, unreadable) in {**around, folder: own}.items():
        problems = (*unreadable, *session.configuration.set_repository(place, values))
        server.messages.show_of_file(place / REPOSITORY_FILE, problems)
    if leads_elsewhere:
        server.open_files.relocate()


def _read_folder(folder: Path) -> tuple[FoundSettings, tuple[Path, dict[Path, FoundSettings]]]:
    """Return the values of a folder's own settings file and its problems, and what is found around it."""
    return settings_reading.read_repository_file(folder), find_folder(folder)


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
