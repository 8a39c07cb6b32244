"""Open documents and notebooks: the session follows every edit, the index follows when it has a moment.

The cells of a notebook are documents. They are taken in small groups: a message may name thousands, and other
windows go on meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

from lsprotocol import types

from completion_engine.cutting.language_names import canonical_language
from completion_engine.cutting.tree import load_grammar
from completion_engine.grammars import LANGUAGES
from lsp_server.handlers.folders import files_changed, read_missing_rules
from lsp_server.handlers.prefetching import prefetch_after_edit
from lsp_server.protocol.lsp_conversion import line_column_of, member
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.sharing.supervision import SupervisedThread, on_own_thread
from lsp_server.workspace.documents import Document, Edit, LineChange, PositionEncoding
from lsp_server.workspace.locations import path_of

# More text than this is gone through on another thread.
MAX_QUICK_CHARS = 128 * 1024

# A message whose edits go through more than this is not applied: its document's text is lost.
MAX_TOUCHED_CHARS = 1 << 30

_TEXT_METHODS = {
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
}
_NOT_FOLLOWED = (
    "a change to {file} could not be read, so it gets no suggestions. Close the file and open it again."
)


def did_open(server: SlipstreamServer, params: types.DidOpenTextDocumentParams) -> None:
    """A document's text is the client's from now on."""
    item = params.text_document
    if server.session.follows(item.uri):
        server.open_files.forget(server.session.location_of(item.uri))
        server.session.drop(item.uri)
    language = canonical_language(item.language_id, item.uri)
    if language in LANGUAGES:
        _load_grammar_early(language)
    server.session.edits.forget(item.uri)
    _take(server, len(item.text), lambda: Document(item.uri, language, item.version, item.text))


@cache
def _load_grammar_early(language: str) -> None:
    """Load a grammar, once, before the first keystroke needs it."""
    thread = SupervisedThread("grammar", partial(load_grammar, language), lambda *_: None, max_crashes=1)
    with contextlib.suppress(RuntimeError):  # no thread can be started: it is loaded when it is needed
        thread.start()


def did_change(server: SlipstreamServer, params: types.DidChangeTextDocumentParams) -> None:
    """Apply edits in their order. A document that was never opened is ignored."""
    begin = time.perf_counter()
    session = server.session
    uri, version, changes = params.text_document.uri, params.text_document.version, params.content_changes
    document = session.open_document(uri)
    server.scheduler.supersede_edit()
    if document is None:
        return
    num_chars = _num_touched_chars(document, changes)
    if num_chars > MAX_TOUCHED_CHARS:
        document.release()
    if num_chars > MAX_QUICK_CHARS:
        twin = document.copy()
        _take(server, num_chars, lambda: _changed(twin, version, changes, session.encoding)[0])
        session.edits.clear(uri)
        session.deletion.clear()
    else:
        document, line_changes = _changed(document, version, changes, session.encoding)
        _put(server, document)
        for line_change in line_changes:
            session.edits.changed(uri, line_change, time.monotonic())
            session.deletion.changed(uri, line_change, time.monotonic())
    prefetch_after_edit(server, uri, _typed(changes))
    session.measurements.add_change((time.perf_counter() - begin) * 1000)


async def did_save(server: SlipstreamServer, params: types.DidSaveTextDocumentParams) -> None:
    """The file on disk is new."""
    uri = params.text_document.uri
    paths = {path_of(uri), server.session.location_of(uri).file} - {None}
    await files_changed(server, [path for path in paths if path is not None])
    await read_missing_rules(server, path_of(uri))


def did_close(server: SlipstreamServer, params: types.DidCloseTextDocumentParams) -> None:
    """The file on disk is the truth again."""
    uri = params.text_document.uri
    if not server.session.follows(uri):
        return
    location = server.session.location_of(uri)
    server.session.drop(uri)
    server.open_files.forget(location)
    server.session.edits.forget(uri)
    server.session.proposals.forget(uri)
    server.show_status()
    server.scheduler.forget(server.session.document_key(uri))
    server.contexts.forget(server.session.document_key(uri))
    if location.indexed_path is not None and not server.session.notebooks.notebook_of(uri):
        server.indexes.document_closed(location.indexed_path)
        if (twin := server.session.twin_of(location)) is not None:
            server.open_files.show_to_index(twin)


def not_followed(server: SlipstreamServer, message: Mapping[str, Any]) -> None:
    """A notification could not be read or applied: its documents are unknown until they come whole again."""
    method, params = message["method"], message.get("params")
    if method not in _TEXT_METHODS:
        return
    session, item = server.session, member(params, "textDocument")
    uri, notebook = (str(member(it, "uri")) for it in (item, member(params, "notebookDocument")))
    for name in (uri, *session.notebooks.cells_of(notebook)):
        document = session.open_document(name)
        if document is None and method == types.TEXT_DOCUMENT_DID_OPEN:
            document = Document(uri, canonical_language(str(member(item, "languageId")), uri), 0, "")
        if document is None:
            continue
        document.release()
        session.edits.clear(document.uri)
        _put(server, document)
        file = session.location_of(document.uri).stands_for or PurePosixPath(document.uri)
        server.messages.show([_NOT_FOLLOWED.format(file=file.name[-100:])], types.MessageType.Warning)


def _take(server: SlipstreamServer, num_chars: int, make: Callable[[], Document]) -> None:
    """Follow what `make` gives; where that has much to read, other windows go on meanwhile."""
    if num_chars <= MAX_QUICK_CHARS:
        _put(server, make())
        return

    async def put_when_made() -> None:
        _put(server, await on_own_thread(make))

    server.finish_before_next(put_when_made())


def _put(server: SlipstreamServer, document: Document) -> None:
    is_new, was_served = not server.session.follows(document.uri), document.uri in server.session.documents
    server.session.put(document)
    if is_new:
        server.open_files.identify(document.uri)
        server.follow_edits(document.uri)
    server.open_files.show_to_index(server.session.location_of(document.uri))
    if not was_served or document.is_too_large:
        server.show_status()


def _num_touched_chars(document: Document, changes: Sequence[types.TextDocumentContentChangeEvent]) -> int:
    """About how much text is gone through when changes are applied."""
    return sum(
        document.num_touched_chars(_edit_of(change))
        if isinstance(change, types.TextDocumentContentChangePartial)
        else len(change.text)
        for change in changes
    )


def _changed(
    document: Document,
    version: int,
    changes: Sequence[types.TextDocumentContentChangeEvent],
    encoding: PositionEncoding,
) -> tuple[Document, list[LineChange]]:
    """The document with these edits, and the lines that changed.

    Once its text is lost, only its whole text makes it whole again.
    """
    line_changes: list[LineChange] = []
    for change in changes:
        if not isinstance(change, types.TextDocumentContentChangePartial):
            old = document.contents()
            document.replace(change.text)
            line_changes.append(LineChange(0, old, document.contents()))
        elif not document.is_lost:
            line_changes.append(document.apply(_edit_of(change), encoding))
    document.version = version
    return document, line_changes


def _typed(changes: Sequence[types.TextDocumentContentChangeEvent]) -> Edit | None:
    """The edit that a key makes, if this is one; several at once come from several cursors, or from tools."""
    if len(changes) != 1 or isinstance(changes[0], types.TextDocumentContentChangeWholeDocument):
        return None
    return _edit_of(changes[0])


def _edit_of(change: types.TextDocumentContentChangePartial) -> Edit:
    return Edit(line_column_of(change.range.start), line_column_of(change.range.end), change.text)


NUM_AT_ONCE = 16

_Item = TypeVar("_Item")


def did_open_notebook(server: SlipstreamServer, params: types.DidOpenNotebookDocumentParams) -> None:
    """A notebook's cells are the client's from now on."""
    server.finish_before_next(_open_cells(server, params))


def did_change_notebook(server: SlipstreamServer, params: types.DidChangeNotebookDocumentParams) -> None:
    """Cells come, go, move or change. The output of cells does not matter."""
    if params.change.cells is not None:
        server.finish_before_next(_change_cells(server, params.notebook_document.uri, params.change.cells))


def did_close_notebook(server: SlipstreamServer, params: types.DidCloseNotebookDocumentParams) -> None:
    """The file on disk is the truth again."""
    server.finish_before_next(_close_cells(server, params))


async def _open_cells(server: SlipstreamServer, params: types.DidOpenNotebookDocumentParams) -> None:
    notebook = params.notebook_document
    server.session.notebooks.close(notebook.uri)
    await _each(params.cell_text_documents, lambda item: _open_cell(server, item))
    server.session.notebooks.open(notebook.uri, [cell.document for cell in notebook.cells])
    _show(server, notebook.uri)


async def _change_cells(server: SlipstreamServer, uri: str, cells: types.NotebookDocumentCellChanges) -> None:
    if (structure := cells.structure) is not None:
        array = structure.array
        new = [cell.document for cell in array.cells or ()]
        # A cell whose language changed is closed and opened by one message.
        await _each(
            [closed.uri for closed in structure.did_close or ()], lambda cell: _close_cell(server, cell)
        )
        await _each(structure.did_open or (), lambda item: _open_cell(server, item))
        server.session.notebooks.splice(uri, array.start, array.delete_count, new)
        _show(server, uri)
    await _each(
        cells.text_content or (),
        lambda content: did_change(
            server, types.DidChangeTextDocumentParams(content.document, content.changes)
        ),
    )


async def _close_cells(server: SlipstreamServer, params: types.DidCloseNotebookDocumentParams) -> None:
    cells = server.session.notebooks.close(params.notebook_document.uri)
    closed = dict.fromkeys([*cells, *(item.uri for item in params.cell_text_documents)])
    await _each(closed, lambda uri: _close_cell(server, uri))


async def _each(items: Iterable[_Item], do: Callable[[_Item], None]) -> None:
    for number, item in enumerate(items, 1):
        do(item)
        if number % NUM_AT_ONCE == 0:
            await asyncio.sleep(0)


def _open_cell(server: SlipstreamServer, item: types.TextDocumentItem) -> None:
    did_open(server, types.DidOpenTextDocumentParams(item))


def _close_cell(server: SlipstreamServer, uri: str) -> None:
    did_close(server, types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))


def _show(server: SlipstreamServer, notebook: str) -> None:
    """Show the index a notebook whose cells are others than before."""
    for cell in server.session.notebooks.cells_of(notebook)[:1]:
        server.open_files.show_to_index(server.session.location_of(cell))
