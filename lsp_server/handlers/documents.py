"""Open documents: the session follows every edit, the index follows when it has a moment."""

from __future__ import annotations

import time

from lsprotocol import types

from lsp_server.documents import Document, Edit
from lsp_server.handlers.places import place_of
from lsp_server.server import SlipstreamServer
from lsp_server.session import path_of


def did_open(server: SlipstreamServer, params: types.DidOpenTextDocumentParams) -> None:
    """A document's text is the client's from now on."""
    item = params.text_document
    document = Document(item.uri, item.language_id, item.version, item.text)
    server.session.documents[item.uri] = document
    _show_to_index(server, document)
    server.show_status()


def did_change(server: SlipstreamServer, params: types.DidChangeTextDocumentParams) -> None:
    """Apply edits in their order. A document that was never opened is ignored."""
    begin = time.perf_counter()
    session = server.session
    document = session.documents.get(params.text_document.uri)
    if document is None:
        return
    for change in params.content_changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            edit = Edit(place_of(change.range.start), place_of(change.range.end), change.text)
            document.apply(edit, session.encoding)
        else:
            document.replace(change.text)
    document.version = params.text_document.version
    _show_to_index(server, document)
    session.measurements.add_change((time.perf_counter() - begin) * 1000)


def did_save(server: SlipstreamServer, params: types.DidSaveTextDocumentParams) -> None:
    """The file on disk is new."""
    if (path := path_of(params.text_document.uri)) is not None:
        server.indexing.files_changed([path])


def did_close(server: SlipstreamServer, params: types.DidCloseTextDocumentParams) -> None:
    """The file on disk is the truth again."""
    uri = params.text_document.uri
    server.session.documents.pop(uri, None)
    server.show_status()
    server.scheduler.forget(server.session.document_key(uri))
    folder, path = server.session.folder_of(uri), path_of(uri)
    if folder is not None and path is not None:
        server.indexing.document_closed(folder, path)


def _show_to_index(server: SlipstreamServer, document: Document) -> None:
    folder, path = server.session.folder_of(document.uri), path_of(document.uri)
    if folder is not None and path is not None:
        server.indexing.document_changed(folder, path, document.lines)
