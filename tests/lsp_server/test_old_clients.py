"""Clients that follow drafts of the protocol, or leave out what it demands, are answered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.windows import one_window, place

URI = "file:///nowhere/a.py"


@pytest.mark.parametrize(
    "context",
    [None, {}, {"triggerKind": 0}, {"triggerKind": 3}, {"triggerKind": None}, {"triggerKind": [1]}],
    ids=str,
)
async def test_a_request_without_a_valid_trigger_is_answered(context: dict[str, Any] | None) -> None:
    async with one_window() as window:
        window.open(URI, "x = ")
        params = {**place(URI, 0, 4), **({} if context is None else {"context": context})}
        answer = await window.request("textDocument/inlineCompletion", params)
        assert [item["insertText"] for item in answer["items"]] == ["x = !"]


async def test_an_unknown_trigger_counts_as_an_explicit_request() -> None:
    async with one_window(trigger="manual") as window:
        window.open(URI, "x = ")
        for kind, texts in ((0, ["x = !"]), (2, [])):
            params = place(URI, 0, 4, triggerKind=kind)
            answer = await window.request("textDocument/inlineCompletion", params)
            assert [item["insertText"] for item in answer["items"]] == texts


@pytest.mark.parametrize(
    ("sent", "disabled"),
    [
        ("make", "makefile"),
        ("makefile-gmake", "make"),
        ("cs", "csharp"),
        ("typescript.tsx", "typescriptreact"),
        ("rst", "restructuredtext"),
        ("eruby", "erb"),
        ("c++", "cpp"),
        ("gitcommit", "git-commit"),
        ("yaml.docker-compose", "dockercompose"),
        ("python-mode", "Python"),
    ],
)
async def test_a_language_is_switched_off_under_any_of_its_names(sent: str, disabled: str) -> None:
    async with one_window(languages={disabled: False}) as window:
        item = {"uri": "file:///nowhere/file", "languageId": sent, "version": 1, "text": "x = "}
        window.notify("textDocument/didOpen", {"textDocument": item})
        assert await window.suggest(item["uri"], 0, 4) == []
        why = await window.why(item["uri"], 0, 4)
        assert why["rule"] == "language-disabled"
