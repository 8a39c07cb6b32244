"""A thread that the system does not start, or a wait that fails, costs no window more than a moment.

One story of a window runs again for each thread that it starts and each wait: that one fails, and all works
afterwards. They are counted, not named, so that a new one is among them.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from lsp_server.handlers import folders
from lsp_server.protocol import server
from tests.waiting import until
from tests.windows import Threads, Window, Windows, insertion, one_window, place, windows_on

CELL = "vscode-notebook-cell:/n.ipynb#W0"
LARGE = "file:///somewhere/large.py"
LONG = "value = 1\n" * 20_000
SETTINGS = {"deadlineMs": 0, "eagerness": 1}
PRODUCT = ("lsp_server.", "ngram_cache.", "completion_engine.")
# Without these a conversation has no beginning: the editor starts the server again.
ENDS_THE_WINDOW = ("reader", "writer")


@dataclass
class Failing:
    """Counts what could fail, and lets number `at` fail; `failed` names it."""

    at: int
    num_seen: int = 0
    failed: str = ""
    is_over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fails(self, name: str) -> bool:
        with self.lock:
            if self.is_over or self.failed:
                return False
            self.num_seen += 1
            self.failed = name if self.num_seen == self.at else ""
            return bool(self.failed)


def product_caller() -> str:
    """The function of the product that called, with its module; empty if another one did."""
    frame: FrameType | None = sys._getframe(2)
    if frame is not None and frame.f_globals["__name__"] == "threading":  # Event.wait
        frame = frame.f_back
    name = f"{frame.f_globals['__name__']}.{frame.f_code.co_name}" if frame is not None else ""
    return name if name.startswith(PRODUCT) else ""


def threads_that_do_not_start(patch: pytest.MonkeyPatch, failing: Failing) -> None:
    start = threading.Thread.start

    def start_or_fail(thread: threading.Thread) -> None:
        if product_caller() and failing.fails(thread.name):
            raise RuntimeError("can't start new thread")
        start(thread)

    patch.setattr(threading.Thread, "start", start_or_fail)


def waits_that_fail(patch: pytest.MonkeyPatch, failing: Failing) -> None:
    """A thread's wait for news needs a lock, and the system may lack the memory for one."""
    wait = threading.Condition.wait

    def wait_or_fail(condition: threading.Condition, timeout: float | None = None) -> bool:
        if (caller := product_caller()) and failing.fails(caller):
            raise MemoryError
        return wait(condition, timeout)

    patch.setattr(threading.Condition, "wait", wait_or_fail)


def waits_that_take_too_long(patch: pytest.MonkeyPatch, failing: Failing) -> None:
    """The time of a wait on the event loop is over at once."""
    limit, wait = asyncio.timeout, asyncio.wait

    def timeout(delay: float | None) -> asyncio.Timeout:
        is_over = delay is not None and (caller := product_caller()) and failing.fails(caller)
        return limit(0.0 if is_over else delay)

    async def wait_or_not(tasks: Any, **options: Any) -> Any:
        if options.get("timeout") is not None and (caller := product_caller()) and failing.fails(caller):
            options["timeout"] = 0.0
        return await wait(tasks, **options)

    patch.setattr(asyncio, "timeout", timeout)
    patch.setattr(asyncio, "wait", wait_or_not)


def messages(root: Path) -> Iterator[tuple[str, Any]]:
    """The messages of an editor, at least one of each kind."""
    uri, inner = (root / "a.py").as_uri(), {"uri": (root / "inner").as_uri(), "name": "inner"}
    yield "initialized", {}
    yield from opened(uri, "x")
    yield "textDocument/inlineCompletion", place(uri, 0, 1, triggerKind=2)
    changes = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [insertion(0, 1, "y")]}
    yield "textDocument/didChange", changes
    yield "textDocument/copilotInlineEdit", place(uri, 0, 0, triggerKind=1)
    yield from opened(LARGE, LONG)
    yield from opened(CELL, LONG)
    yield "textDocument/didSave", {"textDocument": {"uri": uri}}
    names = ("a.py", ".slipstream.toml")
    events = [{"uri": (root / name).as_uri(), "type": 2} for name in names]
    yield "workspace/didChangeWatchedFiles", {"changes": events}
    yield "workspace/didChangeWorkspaceFolders", {"event": {"added": [inner], "removed": []}}
    yield "workspace/didChangeConfiguration", {"settings": {"slipstream": SETTINGS}}
    yield "slipstream/why", place(uri, 0, 1)
    yield "slipstream/stats", None
    yield "workspace/executeCommand", {"command": "slipstream.purgeIndex", "arguments": []}


def opened(uri: str, text: str) -> Iterator[tuple[str, Any]]:
    """A document that is opened, and for a cell its notebook."""
    item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    if uri != CELL:
        yield "textDocument/didOpen", {"textDocument": item}
        return
    notebook = {"uri": "file:///n.ipynb", "notebookType": "jupyter", "version": 1}
    cells = [{"kind": 2, "document": CELL}]
    yield (
        "notebookDocument/didOpen",
        {"notebookDocument": {**notebook, "cells": cells}, "cellTextDocuments": [item]},
    )


async def tell(window: Window, method: str, params: Any) -> Any:
    """Send a message, and return the answer where it is a request."""
    if method.rpartition("/")[2].startswith(("did", "initialized")):
        window.notify(method, params)
        return None
    return await window.request(method, params)


async def all_works(windows: Windows, window: Window, root: Path) -> None:
    """Each document is completed once its text was sent again, and the index follows the folder."""
    for uri in ((root / "a.py").as_uri(), LARGE, CELL):
        for message in opened(uri, "z"):
            await tell(window, *message)
        answer: Any = None
        async with asyncio.timeout(60):
            while not (answer and answer.get("items")):
                answer = await tell(window, "textDocument/inlineCompletion", place(uri, 0, 1, triggerKind=2))
        assert answer["items"][0]["insertText"] == "z!", uri
    assert "edits" in await tell(window, "textDocument/copilotInlineEdit", place(uri, 0, 0, triggerKind=1))
    (root / "new.py").write_text("y = 1\n")
    indexes = windows.servers[-1].indexes
    await until(lambda: (index := indexes.index_of(root)) and index.holds("new.py"), 60.0)


async def begin(window: Window, root: Path) -> None:
    capabilities = {"textDocument": {"inlineCompletion": {}}}
    params = {
        "processId": None,
        "rootUri": root.as_uri(),
        "clientInfo": {"name": "story"},
        "capabilities": capabilities,
        "initializationOptions": {"slipstream": SETTINGS},
    }
    await window.request("initialize", params)


async def visit(windows: Windows, root: Path, failing: Failing) -> None:
    """The story, a look at what works after it, and an end in order."""
    window = await windows.open()
    try:
        await begin(window, root)
        for message in messages(root):
            await tell(window, *message)
    except ConnectionResetError:
        assert failing.failed in ENDS_THE_WINDOW
        window = await windows.open()
        await begin(window, root)
        await tell(window, "initialized", {})
    await all_works(windows, window, root)
    await window.end()
    await windows.serving[-1]


@pytest.mark.parametrize("inject", [threads_that_do_not_start, waits_that_fail, waits_that_take_too_long])
async def test_whatever_fails_once_costs_a_moment(
    inject: Callable[[pytest.MonkeyPatch, Failing], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folders, "READ_AGAIN_S", 0.01)
    monkeypatch.setattr(server, "BEGIN_AGAIN_S", 0.01)
    before = Threads("reader", "writer", "index", "watch")
    for number in itertools.count(1):
        failing = Failing(number)
        root = tmp_path / str(number)
        (root / "inner").mkdir(parents=True)
        (root / "a.py").write_text("x\n")
        with pytest.MonkeyPatch.context() as patch:
            async with windows_on() as windows:
                inject(patch, failing)
                await visit(windows, root, failing)
                failing.is_over = True
        if not failing.failed:
            break
    assert number > 10
    await until(lambda: not len(before))


@pytest.fixture
def no_thread(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Failing]:
    """Keep all threads of a name from starting until the returned object `is_over`."""
    start = threading.Thread.start

    def fail(name: str) -> Failing:
        failing = Failing(0)

        def start_or_fail(thread: threading.Thread) -> None:
            if thread.name == name and not failing.is_over:
                failing.failed = name
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", start_or_fail)
        return failing

    return fail


async def test_a_large_text_that_gets_no_thread_is_unknown_until_it_is_sent_whole(
    no_thread: Callable[[str], Failing],
) -> None:
    async with one_window() as window:
        for change in (lambda: window.open(LARGE, LONG), lambda: window.change(LARGE, {"text": LONG})):
            failing = no_thread("own <lambda>")
            change()
            assert (await window.why(LARGE, 0, 0))["rule"] == "document-too-large"
            assert failing.failed
            failing.is_over = True
            window.change(LARGE, {"text": "x"})
            assert await window.suggest(LARGE, 0, 1) == ["x!"]
        (warning,) = window.shown
        assert "large.py" in warning


async def test_a_notebook_that_gets_no_thread_does_not_end_the_conversation(
    no_thread: Callable[[str], Failing],
) -> None:
    async with one_window() as window:
        failing = no_thread("own <lambda>")
        await tell(window, *next(opened(CELL, LONG)))
        window.open("file:///b.py", "x")
        assert await window.suggest("file:///b.py", 0, 1) == ["x!"]
        assert failing.failed
        failing.is_over = True
        await tell(window, *next(opened(CELL, "y")))
        assert await window.suggest(CELL, 0, 1) == ["y!"]
