"""A thread that the system does not start once costs no window more than a moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lsp_server.handlers import folders
from tests.windows import Window, insertion, windows_on

CELL = "vscode-notebook-cell:/n.ipynb#W0"
LARGE = "value = 1\n" * 20_000

NoThread = Callable[[str], list[str]]


@pytest.fixture
def no_thread(monkeypatch: pytest.MonkeyPatch) -> NoThread:
    """Keep the next thread whose name begins so from starting; the returned list holds the name after it."""
    start = threading.Thread.start

    def fail_once(prefix: str) -> list[str]:
        failed: list[str] = []

        def start_or_fail(thread: threading.Thread) -> None:
            if not failed and thread.name.startswith(prefix):
                failed.append(thread.name)
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", start_or_fail)
        return failed

    return fail_once


async def suggested(window: Window, uri: str, place: tuple[int, int] = (0, 1)) -> list[str]:
    found: list[str] = []
    async with asyncio.timeout(60):
        while not found:
            found = await window.suggest(uri, *place)
    return found


def warnings(window: Window) -> list[str]:
    shown = [message for message in window.heard if message["method"] == "window/showMessage"]
    return [message["params"]["message"] for message in shown]


@pytest.mark.parametrize(
    "name",
    ["own find_file", "own _read_folder", "own read_user_file", "own _allows"],
)
async def test_suggestions_come_whichever_thread_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_thread: NoThread, name: str
) -> None:
    monkeypatch.setattr(folders, "READ_AGAIN_S", 0.05)
    uri = (tmp_path / "a.py").as_uri()
    failed = no_thread(name)
    async with windows_on() as windows:
        window = await windows.open()
        await window.begin(tmp_path)
        window.open(uri, "x")
        assert await suggested(window, uri) == ["x!"]
        window.change(uri, insertion(0, 1, "y"))
        assert await suggested(window, uri, (0, 2)) == ["xy!"]
        await window.end()
    assert failed


async def test_a_folder_is_watched_once_a_thread_starts_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_thread: NoThread
) -> None:
    monkeypatch.setattr("tests.windows.CAPABILITIES", {"textDocument": {"inlineCompletion": {}}})
    uri = (tmp_path / "a.py").as_uri()
    failed = no_thread("watch ")
    async with windows_on() as windows:
        window = await windows.open()
        await window.begin(tmp_path)
        async with asyncio.timeout(60):
            while not failed:  # noqa: ASYNC110 - filled on another thread
                await asyncio.sleep(0.005)
        window.open(uri, "x = 1\n")
        (tmp_path / "new.py").write_text("y = 1\n")
        indexes = windows.servers[0].indexes
        async with asyncio.timeout(60):
            while not ((index := indexes.index_of(tmp_path)) and index.holds("new.py")):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
        await window.end()


async def test_a_large_text_whose_thread_does_not_start_is_unknown_until_it_is_sent_whole(
    no_thread: NoThread,
) -> None:
    uri = "file:///somewhere/a.py"
    async with windows_on() as windows:
        window = await windows.open()
        await window.begin()
        for change in (lambda: window.open(uri, LARGE), lambda: window.change(uri, {"text": LARGE})):
            failed = no_thread("own <lambda>")
            change()
            assert (await window.why(uri, 0, 0))["rule"] == "document-too-large"
            assert failed
            window.change(uri, {"text": "x"})
            assert await window.suggest(uri, 0, 1) == ["x!"]
        assert len(warnings(window)) == 1
        assert "a.py" in warnings(window)[0]
        await window.end()


async def test_a_notebook_whose_thread_does_not_start_does_not_end_the_conversation(
    no_thread: NoThread,
) -> None:
    document = {"uri": "file:///n.ipynb", "notebookType": "jupyter", "version": 1}
    cells = [{"kind": 2, "document": CELL}]
    texts = [{"uri": CELL, "languageId": "python", "version": 1, "text": LARGE}]
    opened: dict[str, Any] = {"notebookDocument": {**document, "cells": cells}, "cellTextDocuments": texts}
    async with windows_on() as windows:
        window = await windows.open()
        await window.begin()
        failed = no_thread("own <lambda>")
        window.notify("notebookDocument/didOpen", opened)
        window.open("file:///b.py", "x")
        assert await window.suggest("file:///b.py", 0, 1) == ["x!"]
        assert failed
        window.notify(
            "notebookDocument/didOpen", {**opened, "cellTextDocuments": [{**texts[0], "text": "y"}]}
        )
        assert await window.suggest(CELL, 0, 1) == ["y!"]
        await window.end()
