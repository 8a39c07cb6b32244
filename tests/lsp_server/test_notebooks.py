"""Notebooks: a cell is completed as a part of them, and a cell alone as a text that lacks the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from completion_engine.request import Completion, CompletionRequest
from lsp_server.engine.engine_types import Load, OnTokens
from lsp_server.workspace.settings import Settings
from tests.hosts import PATIENCE_S
from tests.waiting import until
from tests.windows import ScriptedEngine, Window, insertion, load_scripted, windows_on


class Noting(ScriptedEngine):
    """Notes what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[CompletionRequest] = []

    def complete(self, request: CompletionRequest) -> Completion:
        self.asked.append(request)
        return super().complete(request)

    def load_for(self, settings: Settings, on_tokens: OnTokens) -> Load:
        load = load_scripted(settings, on_tokens)

        def noting(*arguments: Any) -> Noting:
            load(*arguments)
            return self

        return noting


@pytest.mark.parametrize(
    ("uri", "has_index"),
    [
        ("file://{root}/loans.py", True),
        ("untitled:{root}/new.py", True),
        ("vscode-notebook-cell:{root}/loans.ipynb#W0sZmlsZQ%3D%3D", False),
        ("untitled:Untitled-1", False),
    ],
)
async def test_who_knows_a_folder_s_names(tmp_path: Path, uri: str, *, has_index: bool) -> None:
    engine = Noting()
    (tmp_path / "loans.py").write_text("def lend(book):\n    return book\n")
    uri = uri.format(root=tmp_path)
    async with windows_on(engine.load_for, linger_s=0.0) as windows:
        window = await windows.begun(tmp_path)
        while (await window.request("slipstream/stats"))["index"][0]["state"] != "ready":
            pass
        window.open(uri, "x = ")
        assert await window.suggest(uri, 0, 4) == ["x = !"]
        await window.end()
    assert [request.index is not None for request in engine.asked] == [has_index]


def cell_uri(name: str, path: str = "/nowhere/loans.ipynb") -> str:
    return f"vscode-notebook-cell:{path}#{name}sZmlsZQ%3D%3D"


def item(
    name: str, text: str, language: str = "python", path: str = "/nowhere/loans.ipynb"
) -> dict[str, Any]:
    return {"uri": cell_uri(name, path), "languageId": language, "version": 1, "text": text}


def cells(*items: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"kind": 1 if one["languageId"] == "markdown" else 2, "document": one["uri"]} for one in items]


class Editor:
    """A window with one notebook, as the client of VS Code speaks of it."""

    def __init__(self, window: Window, engine: Noting, uri: str = "file:///nowhere/loans.ipynb") -> None:
        self.window, self.engine, self.uri = window, engine, uri

    def open(self, *items: dict[str, Any]) -> None:
        notebook = {"uri": self.uri, "notebookType": "jupyter-notebook", "version": 1, "cells": cells(*items)}
        self.window.notify(
            "notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": list(items)}
        )

    def change(self, change: dict[str, Any]) -> None:
        identifier = {"uri": self.uri, "version": 2}
        self.window.notify("notebookDocument/didChange", {"notebookDocument": identifier, "change": change})

    def splice(
        self, start: int, num_deleted: int, items: list[dict[str, Any]], *, is_move: bool = False
    ) -> None:
        array = {"start": start, "deleteCount": num_deleted, "cells": cells(*items)}
        opened = {} if is_move else {"didOpen": items}
        self.change({"cells": {"structure": {"array": array, **opened}}})

    def type(self, name: str, change: dict[str, Any]) -> None:
        document = {"uri": cell_uri(name), "version": 2}
        self.change({"cells": {"textContent": [{"document": document, "changes": [change]}]}})

    async def asked(self, name: str, line: int, column: int) -> CompletionRequest:
        """The engine's request for a position in a cell."""
        assert await self.window.suggest(cell_uri(name), line, column)
        return self.engine.asked[-1]


@pytest.fixture
async def editor() -> AsyncIterator[Editor]:
    engine = Noting()
    async with windows_on(engine.load_for, linger_s=0.0) as windows:
        window = await windows.begun()
        yield Editor(window, engine)
        await window.end()


async def test_the_server_asks_for_all_notebooks() -> None:
    async with windows_on() as windows:
        window = await windows.open()
        capabilities = {"notebookDocument": {"synchronization": {}}}
        params = {"processId": None, "rootUri": None, "capabilities": capabilities}
        answer = await window.request("initialize", params)
        assert answer["capabilities"]["notebookDocumentSync"]["notebookSelector"] == [{"notebook": "*"}]


async def test_cells_above_and_below_are_the_text_around_a_cell(editor: Editor) -> None:
    editor.open(
        item("a", "import os\n"),
        item("b", "# A heading", "markdown"),
        item("c", "x = 1"),
        item("d", "SELECT 1", "sql"),
        item("e", "%%bash\nls"),
        item("f", "%%time\ny = 2"),
        item("g", "z = \nlast"),
        item("h", "print(z)\n"),
        item("i", "   \n"),
        item("j", "end()"),
    )
    asked = await editor.asked("g", 0, 4)
    assert asked.prefix == "import os\n\nx = 1\n\n%%time\ny = 2\n\nz = "
    assert asked.suffix == "\nlast\n\nprint(z)\n\nend()"
    assert (await editor.asked("b", 0, 11)).prefix == "# A heading"


async def test_cells_come_go_move_and_change(editor: Editor) -> None:
    one, two, three = item("a", "a = 1"), item("b", "b = 2"), item("c", "c = ")
    editor.open(one, two, three)
    editor.type("a", insertion(0, 5, "1"))
    assert (await editor.asked("c", 0, 4)).prefix == "a = 11\n\nb = 2\n\nc = "
    editor.splice(0, 2, [two, one], is_move=True)
    assert (await editor.asked("c", 0, 4)).prefix == "b = 2\n\na = 11\n\nc = "
    editor.splice(1, 0, [item("d", "d = 4")])
    assert (await editor.asked("c", 0, 4)).prefix == "b = 2\n\nd = 4\n\na = 11\n\nc = "
    array = {"start": 0, "deleteCount": 1, "cells": []}
    editor.change({"cells": {"structure": {"array": array, "didClose": [{"uri": cell_uri("b")}]}}})
    assert (await editor.asked("c", 0, 4)).prefix == "d = 4\n\na = 11\n\nc = "
    assert (await editor.window.why(cell_uri("b"), 0, 0))["rule"] == "unknown-document"
    editor.change({"metadata": {"kernel": "python"}, "cells": {"data": cells(one)}})
    assert (await editor.asked("c", 0, 4)).prefix == "d = 4\n\na = 11\n\nc = "
    closed = {"notebookDocument": {"uri": editor.uri}, "cellTextDocuments": []}
    editor.window.notify("notebookDocument/didClose", closed)
    assert (await editor.window.why(cell_uri("c"), 0, 0))["rule"] == "unknown-document"


async def test_a_cell_whose_language_changes_is_closed_and_opened_at_once(editor: Editor) -> None:
    editor.open(item("a", "SELECT 1"), item("b", "b = "))
    sql = item("a", "SELECT 1", "sql")
    array = {"start": 0, "deleteCount": 1, "cells": cells(sql)}
    structure = {"array": array, "didOpen": [sql], "didClose": [{"uri": cell_uri("a")}]}
    assert (await editor.asked("b", 0, 4)).prefix == "SELECT 1\n\nb = "
    editor.change({"cells": {"structure": structure}})
    assert (await editor.asked("b", 0, 4)).prefix == "b = "
    assert (await editor.asked("a", 0, 8)).language == "sql"


async def test_a_suggestion_still_fits_a_cell_whose_neighbours_are_shown(editor: Editor) -> None:
    editor.open(item("a", "value = 1"), item("b", "x = "))
    assert await editor.window.suggest(cell_uri("b"), 0, 4) == ["x = !"]


async def test_wrong_indices_duplicates_and_unknown_cells_change_nothing_else(editor: Editor) -> None:
    one, two = item("a", "a = 1"), item("b", "b = ")
    editor.open(one, one, two)
    for start, num_deleted in ((9, 0), (1_000_000_000, 1_000_000_000), (2, 1_000_000_000)):
        editor.splice(start, num_deleted, [one, two], is_move=True)
        assert (await editor.asked("b", 0, 4)).prefix == "a = 1\n\nb = "
    editor.splice(0, 0, [item("nowhere", "")], is_move=True)
    editor.type("nowhere", insertion(0, 0, "text"))
    assert (await editor.asked("b", 0, 4)).prefix == "a = 1\n\nb = "
    other = Editor(editor.window, editor.engine, "file:///nowhere/never_opened.ipynb")
    other.splice(0, 0, [item("z", "z = 1")])
    assert (await editor.asked("b", 0, 4)).prefix == "a = 1\n\nb = "


async def test_of_ten_thousand_cells_the_nearest_are_shown(editor: Editor) -> None:
    items = [item(f"c{number}", f"value_{number} = {number}\n" * 3) for number in range(10_100)]
    editor.open(*items[:-1])
    asked = await editor.asked("c5000", 0, 5)
    assert len(asked.prefix) < 40_000 and "value_4999" in asked.prefix and "value_4000 " not in asked.prefix
    assert len(asked.suffix) <= 16_000 and "value_5001" in asked.suffix


async def test_another_window_has_its_turn_while_ten_thousand_cells_are_opened() -> None:
    engine, largest = Noting(), 0
    async with windows_on(engine.load_for, linger_s=0.0) as windows:
        first, second = await windows.begun(), await windows.begun()
        second.open("file:///nowhere/a.py", "x = ")
        assert await second.suggest("file:///nowhere/a.py", 0, 4) == ["x = !"]
        Editor(first, engine).open(*(item(f"c{number}", "x = 1\n") for number in range(10_000)))
        documents = windows.servers[0].session.documents
        async with asyncio.timeout(PATIENCE_S):
            while len(documents) < 10_000:
                num_open = len(documents)
                await asyncio.sleep(0)
                largest = max(largest, len(documents) - num_open)
        assert largest < 100
        assert await second.suggest("file:///nowhere/a.py", 0, 4) == ["x = !"]
        await first.end()
        await second.end()


async def test_a_cell_of_five_megabytes_is_left_out_and_a_long_one_shows_its_end(editor: Editor) -> None:
    long = "".join(f"line_{number} = {number}\n" for number in range(5_000))
    editor.open(item("a", "x = 1\n" * 900_000), item("b", long), item("c", "y = "))
    asked = await editor.asked("c", 0, 4)
    assert asked.prefix.endswith("line_4999 = 4999\n\ny = ")
    assert asked.prefix.startswith("line_") and len(asked.prefix) < 40_000
    editor.type("c", insertion(0, 4, "1"))
    longer = await editor.asked("c", 0, 5)
    assert longer.prefix == asked.prefix + "1", "the beginning stays while the user types"


async def test_a_notebook_is_drafted_from_while_it_is_open(tmp_path: Path) -> None:
    """As live text in its folder, by the rules of its file; and forgotten when it is closed."""
    engine = Noting()
    (tmp_path / ".gitignore").write_text("ignored.ipynb\n")
    async with windows_on(engine.load_for, linger_s=0.0) as windows:
        window = await windows.begun(tmp_path)
        server = windows.servers[0]
        for name, is_shown in (("loans.ipynb", True), ("ignored.ipynb", False)):
            path = str(tmp_path / name)
            editor = Editor(window, engine, f"file://{path}")
            words = item("a", "quetzal = umbra", path=path), item("b", "# zebra", "markdown", path=path)
            editor.open(*words)
            marker = (tmp_path / f"{name}.py").as_uri()
            window.open(marker, "marker = 1\n")
            uri = cell_uri("a", path)
            assert await window.suggest(uri, 0, 15)

            def is_shared(uri: str) -> bool:
                return server.indexes.is_shared(server.session.location_of(uri))

            async with asyncio.timeout(PATIENCE_S):  # either may be shown first: each waits until it is still
                while not (is_shared(marker) and is_shared(uri) is is_shown):  # noqa: ASYNC110 - thread
                    await asyncio.sleep(0.02)
            assert is_shared(uri) is is_shown

            def num_found(text: str) -> int:
                index = server.indexes.index_of(tmp_path)
                assert index is not None
                return sum(index.find([ord(letter) % 1000 for letter in text], max_occurrences=9).values())

            assert num_found("quetzal = umbra") == is_shown
            assert num_found("# zebra") == 0
            closed = {"notebookDocument": {"uri": editor.uri}, "cellTextDocuments": list(words)}
            window.notify("notebookDocument/didClose", closed)
            await until(lambda: not num_found("quetzal = umbra"))
            assert (await window.why(uri, 0, 0))["rule"] == "unknown-document"
        await window.end()


async def test_cells_of_one_notebook_draft_from_each_other(editor: Editor) -> None:
    editor.open(item("a", "a = "), item("b", "b = "))
    scopes = [(await editor.asked(name, 0, 4)).recent_scope for name in "ab"]
    alone = item("z", "z = ")
    editor.window.notify("textDocument/didOpen", {"textDocument": alone})
    scopes.append((await editor.asked("z", 0, 4)).recent_scope)
    assert scopes[0] == scopes[1] != scopes[2]
    assert editor.engine.asked[-1].prefix == "z = "
