"""The positions where a server has written in advance: those that its editor will request."""

from __future__ import annotations

from typing import Any

import pytest

from completion_engine.cutting import tree
from completion_engine.request import CompletionRequest
from lsp_server.engine.scheduler import Scheduler
from lsp_server.handlers import document_sync
from tests.waiting import until
from tests.windows import insertion, one_window, place

URI = "file:///a.py"
SELECTED = {
    "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}},
    "text": "print",
}


@pytest.mark.parametrize(
    ("context", "prefetched"),
    [
        pytest.param({"triggerKind": 2}, ["pr"], id="behind a key"),
        pytest.param({"triggerKind": 1}, [], id="who asked by hand does so again"),
        pytest.param(
            {"triggerKind": 2, "selectedCompletionInfo": SELECTED}, [], id="with an item of a list selected"
        ),
    ],
)
async def test_the_next_request_is_prefetched_as_the_last_one_was(
    monkeypatch: pytest.MonkeyPatch, context: dict[str, Any], prefetched: list[str]
) -> None:
    expected: list[str] = []

    def prefetch(_: Scheduler, request: CompletionRequest, *, writes: bool = False) -> None:
        assert writes
        expected.append(request.prefix)

    monkeypatch.setattr(Scheduler, "prefetch", prefetch)
    monkeypatch.setattr("lsp_server.workspace.prefetch.PAUSE_S", 0.0)
    async with one_window() as window:
        window.open(URI, "p")
        await window.request("textDocument/inlineCompletion", place(URI, 0, 1, **context))
        window.change(URI, insertion(0, 1, "r"))
        for _ in range(2):
            await window.request("slipstream/stats")  # answered after the change
        assert expected == prefetched


async def test_the_grammar_of_an_opened_document_is_loaded_once_before_any_request() -> None:
    """And none for a language that is only checked for errors, or that is unknown."""
    document_sync._load_grammar_early.cache_clear()
    tree._parser.cache_clear()
    async with one_window() as window:
        for name, language in (("a.lua", "lua"), ("b.lua", "lua"), ("c.zig", "zig"), ("d", "no such one")):
            item = {"uri": f"file:///{name}", "languageId": language, "version": 1, "text": ""}
            window.notify("textDocument/didOpen", {"textDocument": item})
        await window.request("slipstream/stats")  # answered after these
        await until(lambda: tree._parser.cache_info().currsize)
    assert (tree._parser.cache_info().misses, tree._parser("lua") is not None) == (1, True)
    assert document_sync._load_grammar_early.cache_info().misses == 1
