"""The beginning and the end of a conversation."""

from __future__ import annotations

import logging
from functools import partial

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.handlers import folders
from lsp_server.handlers.inline_completion import completion
from lsp_server.protocol.framing import OWN_CLIENT
from lsp_server.protocol.lsp_conversion import member
from lsp_server.protocol.parsing import names_plugin
from lsp_server.protocol.server import SlipstreamServer

logger = logging.getLogger(__name__)

REGISTER_TIMEOUT_S = 10.0


def initialize(server: SlipstreamServer, params: types.InitializeParams) -> None:
    """Take note of the client: its units, its folders, its options."""
    session = server.session
    if params.process_id is not None:
        server.watch_client(params.process_id)
    if params.client_info is not None and params.client_info.name != OWN_CLIENT:
        server.keep_usage()
    session.encoding = types.PositionEncodingKind(server.workspace.position_encoding).value
    folders.change_folders(server, folders.initial_folders(params))
    session.is_older_client = names_plugin(params.initialization_options)
    options = member(params.initialization_options, folders.SECTION)
    problems = session.configuration.set_layer("initializationOptions", options)
    server.messages.show(problems, types.MessageType.Warning)
    experimental = member(params.capabilities.experimental, "slipstream")
    server.growth.is_wanted = member(experimental, "suggestionGrew") is True
    text_document = params.capabilities.text_document
    if not (text_document and text_document.inline_completion):
        options = types.CompletionOptions(trigger_characters=[".", "(", "\n"])
        server.protocol.connect(types.TEXT_DOCUMENT_COMPLETION, partial(completion, server), options)


async def initialized(server: SlipstreamServer, _params: types.InitializedParams) -> None:
    """Gather the settings from everywhere, then start loading and indexing."""
    try:
        await folders.read_files(server)
        if folders.can_pull(server):
            await folders.pull(server)
    finally:
        server.apply_settings()
    if server.has_ended:
        return
    await _register_capabilities(server)


async def _register_capabilities(server: SlipstreamServer) -> None:
    """Ask for news of settings and files; without a watch by the client, watch ourselves."""
    workspace = server.client_capabilities.workspace or types.WorkspaceClientCapabilities()
    wanted = []
    if workspace.did_change_configuration and workspace.did_change_configuration.dynamic_registration:
        options = types.DidChangeConfigurationRegistrationOptions(section=folders.SECTION)
        wanted.append(_registration(types.WORKSPACE_DID_CHANGE_CONFIGURATION, options))
    watch = workspace.did_change_watched_files
    if watch and watch.dynamic_registration:
        everything = types.FileSystemWatcher(glob_pattern="**/*")
        watching = types.DidChangeWatchedFilesRegistrationOptions(watchers=[everything])
        wanted.append(_registration(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, watching))
    else:
        folders.watch_files(server)
    if not wanted:
        return
    try:
        params = types.RegistrationParams(registrations=wanted)
        await server.protocol.ask(types.CLIENT_REGISTER_CAPABILITY, params, REGISTER_TIMEOUT_S)
    except JsonRpcException as error:
        if not server.has_ended:
            logger.warning("The client registers nothing: %r", error)
            folders.watch_files(server)


def _registration(method: str, options: object) -> types.Registration:
    return types.Registration(id=f"slipstream:{method}", method=method, register_options=options)
