"""Notebooks: the session follows the order of their cells, and each cell as a document of its own.

Cells are taken in small groups: a message may name thousands, and other windows go on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from lsprotocol import types

from lsp_server.handlers import document_sync
from lsp_server.protocol.server import SlipstreamServer

NUM_AT_ONCE = 16

_Item = TypeVar("_Item")


def did_open(server: SlipstreamServer, params: types.DidOpenNotebookDocumentParams) -> None:
    """A notebook's cells are the client's from now on."""
    server.finish_before_next(_open(server, params))


def did_change(server: SlipstreamServer, params: types.DidChangeNotebookDocumentParams) -> None:
    """Cells come, go, move or change. The output of cells does not matter."""
    if params.change.cells is not None:
        server.finish_before_next(_change(server, params.notebook_document.uri, params.change.cells))


def did_close(server: SlipstreamServer, params: types.DidCloseNotebookDocumentParams) -> None:
    """The file on disk is the truth again."""
    server.finish_before_next(_close(server, params))


async def _open(server: SlipstreamServer, params: types.DidOpenNotebookDocumentParams) -> None:
    notebook = params.notebook_document
    server.session.notebooks.close(notebook.uri)
    await _each(params.cell_text_documents, lambda item: _open_cell(server, item))
    server.session.notebooks.open(notebook.uri, [cell.document for cell in notebook.cells])
    _show(server, notebook.uri)


async def _change(server: SlipstreamServer, uri: str, cells: types.NotebookDocumentCellChanges) -> None:
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
        lambda content: document_sync.did_change(
            server, types.DidChangeTextDocumentParams(content.document, content.changes)
        ),
    )


async def _close(server: SlipstreamServer, params: types.DidCloseNotebookDocumentParams) -> None:
    cells = server.session.notebooks.close(params.notebook_document.uri)
    closed = dict.fromkeys([*cells, *(item.uri for item in params.cell_text_documents)])
    await _each(closed, lambda uri: _close_cell(server, uri))


async def _each(items: Iterable[_Item], do: Callable[[_Item], None]) -> None:
    for number, item in enumerate(items, 1):
        do(item)
        if number % NUM_AT_ONCE == 0:
            await asyncio.sleep(0)


def _open_cell(server: SlipstreamServer, item: types.TextDocumentItem) -> None:
    document_sync.did_open(server, types.DidOpenTextDocumentParams(item))


def _close_cell(server: SlipstreamServer, uri: str) -> None:
    document_sync.did_close(server, types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))


def _show(server: SlipstreamServer, notebook: str) -> None:
    """Show the index a notebook whose cells are others than before."""
    for cell in server.session.notebooks.cells_of(notebook)[:1]:
        server.open_files.show_to_index(server.session.location_of(cell))
