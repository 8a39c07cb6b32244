"""Open documents: the session follows every edit, the index follows when it has a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from lsprotocol import types

from completion_engine.languages.identifiers import canonical_language
from lsp_server.handlers.files import files_changed
from lsp_server.handlers.identifying import forget, identify, show_to_index
from lsp_server.handlers.inline_completion import prefetch_after_edit
from lsp_server.protocol.lsp_conversion import line_column_of
from lsp_server.protocol.parsing import CUT
from lsp_server.server import SlipstreamServer
from lsp_server.supervision import on_own_thread
from lsp_server.workspace.documents import MAX_DOCUMENT_CHARS, Document, Edit, PositionEncoding
from lsp_server.workspace.locations import path_of

# More text than this is split into lines on another thread.
MAX_QUICK_CHARS = 128 * 1024


def did_open(server: SlipstreamServer, params: types.DidOpenTextDocumentParams) -> None:
    """A document's text is the client's from now on."""
    item = params.text_document
    server.session.drop(item.uri)
    server.identities.forget(item.uri)
    language = canonical_language(item.language_id, item.uri)
    server.scheduler.open(language)
    _take(server, len(item.text), lambda: _opened(item.uri, language, item.version, item.text))


def did_change(server: SlipstreamServer, params: types.DidChangeTextDocumentParams) -> None:
    """Apply edits in their order. A document that was never opened is ignored."""
    begin = time.perf_counter()
    session = server.session
    uri, version, changes = params.text_document.uri, params.text_document.version, params.content_changes
    document = session.documents.get(uri)
    num_chars = sum(len(change.text) for change in changes)
    if document is None:
        language, last = session.too_large.get(uri), changes[-1] if changes else None
        if language is not None and isinstance(last, types.TextDocumentContentChangeWholeDocument):
            _take(server, num_chars, lambda: _opened(uri, language, version, last.text))
        return
    if num_chars > MAX_QUICK_CHARS:
        twin = document.copy()
        _take(server, num_chars, lambda: _changed(twin, version, changes, session.encoding))
    else:
        _put(server, _changed(document, version, changes, session.encoding))
    prefetch_after_edit(server, uri, _typed(changes))
    session.measurements.add_change((time.perf_counter() - begin) * 1000)


async def did_save(server: SlipstreamServer, params: types.DidSaveTextDocumentParams) -> None:
    """The file on disk is new."""
    uri = params.text_document.uri
    paths = {path_of(uri), server.session.location_of(uri).file} - {None}
    await files_changed(server, [path for path in paths if path is not None])


def did_close(server: SlipstreamServer, params: types.DidCloseTextDocumentParams) -> None:
    """The file on disk is the truth again."""
    uri = params.text_document.uri
    if not server.session.follows(uri):
        return
    location = server.session.location_of(uri)
    server.session.drop(uri)
    forget(server, location)
    server.show_status()
    server.scheduler.forget(server.session.document_key(uri))
    server.contexts.forget(server.session.document_key(uri))
    if location.file is not None:
        server.indexes.document_closed(location.file)
        if (twin := server.session.twin_of(location)) is not None:
            show_to_index(server, twin)


def _take(server: SlipstreamServer, num_chars: int, make: Callable[[], Document]) -> None:
    """Follow what `make` gives; where that has much to read, other windows go on meanwhile."""
    if num_chars <= MAX_QUICK_CHARS:
        _put(server, make())
        return

    async def put_when_made() -> None:
        _put(server, await on_own_thread(make))

    server.finish_before_next(put_when_made())


def _put(server: SlipstreamServer, document: Document) -> None:
    is_new = document.uri not in server.session.documents
    server.session.put(document)
    if is_new:
        identify(server, document.uri)
    show_to_index(server, server.session.location_of(document.uri))
    if is_new or document.is_too_large:
        server.show_status()


def _opened(uri: str, language: str, version: int, text: str) -> Document:
    return Document(uri, language, version, text if text != CUT else " " * (MAX_DOCUMENT_CHARS + 1))


def _changed(
    document: Document,
    version: int,
    changes: Sequence[types.TextDocumentContentChangeEvent],
    encoding: PositionEncoding,
) -> Document:
    """The document with these edits; once it is too large, no edit makes it whole again."""
    for change in changes:
        text = change.text if change.text != CUT else " " * (MAX_DOCUMENT_CHARS + 1)
        if not isinstance(change, types.TextDocumentContentChangePartial):
            document.replace(text)
        elif not document.is_too_large:
            place = line_column_of(change.range.start), line_column_of(change.range.end)
            document.apply(Edit(*place, text), encoding)
    document.version = version
    return document


def _typed(changes: Sequence[types.TextDocumentContentChangeEvent]) -> Edit | None:
    """The edit that a key makes, if this is one; several at once come from several cursors, or from tools."""
    if len(changes) != 1 or isinstance(changes[0], types.TextDocumentContentChangeWholeDocument):
        return None
    place = changes[0].range
    return Edit(line_column_of(place.start), line_column_of(place.end), changes[0].text)
