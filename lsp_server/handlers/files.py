"""Files that changed on disk, by the client's watch or by our own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from lsprotocol import types

from lsp_server.handlers.configuration import read_folders
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.workspace.locations import path_of
from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_file import REPOSITORY_FILE
from ngram_cache.repository import RepositoryOptions


async def did_change_watched_files(
    server: SlipstreamServer, params: types.DidChangeWatchedFilesParams
) -> None:
    """Follow what the client saw."""
    paths = (path_of(event.uri) for event in params.changes)
    await files_changed(server, [path for path in paths if path is not None])


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

    def seen(paths: set[Path]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may have ended
            loop.call_soon_threadsafe(read, paths)

    server.indexes.watch_files(seen)
