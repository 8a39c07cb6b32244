"""Settings from the editor, pushed or pulled, and from each folder's own file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.protocol.lsp_conversion import member
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.sharing.supervision import AnyResult, on_own_thread
from lsp_server.workspace import settings_reading
from lsp_server.workspace.locations import READING_S
from lsp_server.workspace.open_files import Reading, find_folder
from lsp_server.workspace.settings_reading import UNREADABLE, FoundSettings

logger = logging.getLogger(__name__)

SECTION = "slipstream"
PULL_TIMEOUT_S = 3.0
# Files that could not be read, for example because the system had no thread, are tried again after this.
READ_AGAIN_S = 1.0


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
        server.messages.show_of_file(place / settings_reading.REPOSITORY_FILE, problems)
    if leads_elsewhere:
        server.open_files.relocate()


def _read_folder(folder: Path) -> tuple[FoundSettings, tuple[Path, dict[Path, FoundSettings]]]:
    """Return the values of a folder's own settings file and its problems, and what is found around it."""
    return settings_reading.read_repository_file(folder), find_folder(folder)
