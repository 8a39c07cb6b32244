"""Messages whose handling in pygls costs without bound are bounded here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from lsp_server.protocol.parsing import converter
from tests.windows import one_window, windows_on

CELL = "vscode-notebook-cell:/n.ipynb#W0"


def test_the_first_wrong_value_ends_a_message() -> None:
    params = {"event": {"added": [{}] * 1000, "removed": []}}
    with pytest.raises(KeyError):
        converter().structure(params, types.DidChangeWorkspaceFoldersParams)


async def test_a_request_with_a_wrong_value_is_answered_so() -> None:
    async with one_window() as window:
        answer = await window.request("textDocument/inlineCompletion", {"textDocument": 7})
        assert answer["code"] == -32602


def notebook() -> Any:
    cell = {"kind": 2, "document": CELL}
    document = {"uri": "file:///n.ipynb", "notebookType": "jupyter", "version": 1, "cells": [cell]}
    text = {"uri": CELL, "languageId": "python", "version": 1, "text": "x = 1\n"}
    return {"notebookDocument": document, "cellTextDocuments": [text]}


async def test_neither_notebooks_nor_folders_are_kept_twice(tmp_path: Path) -> None:
    async with windows_on() as windows:
        window = await windows.begun()
        window.notify("notebookDocument/didOpen", notebook())
        added = [{"uri": tmp_path.as_uri(), "name": "added"}]
        window.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": []}})
        await window.request("slipstream/stats")
        (server,) = windows.servers
        assert server.session.folders.paths == (tmp_path,)
        kept = server.workspace
        assert not kept.text_documents
        assert not kept.notebook_documents
        assert not kept.folders
        await window.end()
