"""Positions beyond the protocol's numbers are the end of a text; an unreadable change is reported."""

from __future__ import annotations

from typing import Any

import pytest

from tests.windows import Window, insertion, one_window, windows_on

URI = "file:///somewhere/a.py"


def whole(line: Any, character: Any = 0, **more: Any) -> dict[str, Any]:
    end = {"line": line, "character": character}
    return {"range": {"start": {"line": 0, "character": 0}, "end": end}, "text": "new", **more}


async def opened(window: Window) -> None:
    await window.begin()
    window.open(URI, "old = 1\n" * 3)
    assert await window.suggest(URI, 0, 3) == ["old!"]


@pytest.mark.parametrize(
    "line", [2**31 - 1, 2**31, 2**32 - 1, 2**53 - 1, 2**62, 2**63 - 1, 1e300, float("inf")]
)
async def test_a_change_up_to_a_line_that_no_text_has_replaces_all(line: float) -> None:
    async with windows_on() as windows:
        window = await windows.open()
        await opened(window)
        window.change(URI, whole(line, line, rangeLength=2**32 - 1))
        assert await window.suggest(URI, 0, 3) == ["new!"]
        assert await window.suggest(URI, 2**31, 2**62) == ["new!"]
        await window.end()


@pytest.mark.parametrize(
    "change", [whole("x"), whole(None), {"text": None, "range": 7}, {"range": whole(0)["range"]}, 7]
)
async def test_a_change_that_cannot_be_read_makes_the_text_unknown_until_it_is_sent_whole(
    change: Any,
) -> None:
    async with windows_on() as windows:
        window = await windows.open()
        await opened(window)
        window.change(URI, change)
        window.change(URI, insertion(0, 0, "x"), version=3)
        assert await window.suggest(URI, 0, 4) == []
        assert "could not be read" in (await window.why(URI, 0, 4))["reason"]
        (shown,) = window.shown
        assert "a.py" in shown
        window.change(URI, {"text": "whole"}, version=4)
        assert await window.suggest(URI, 0, 5) == ["whole!"]
        await window.end()


async def test_an_open_that_cannot_be_read_is_an_unknown_text() -> None:
    async with one_window() as window:
        window.notify("textDocument/didOpen", {"textDocument": {"uri": URI, "version": 1, "text": 7}})
        window.notify("textDocument/didOpen", {"textDocument": {"uri": [], "text": 7}})
        window.notify("notebookDocument/didChange", {"notebookDocument": {"uri": {}}})
        assert await window.suggest(URI, 0, 1) == []
        window.change(URI, {"text": "whole"}, version=2)
        assert await window.suggest(URI, 0, 5) == ["whole!"]
