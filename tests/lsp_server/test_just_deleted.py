"""Text that the user has just deleted is not suggested again, unless they ask for it."""

from __future__ import annotations

import pytest

from tests.windows import Window, insertion, one_window, place, replacement

URI = "file:///a.py"
BY_TYPING, BY_KEY = 2, 1


async def suggested(window: Window, column: int, kind: int) -> list[str]:
    answer = await window.request("textDocument/inlineCompletion", place(URI, 0, column, triggerKind=kind))
    return [item["insertText"] for item in answer["items"]]


@pytest.mark.parametrize("text", ["tax!", "tax", "tax!)"])
async def test_deleted_text_is_not_suggested_until_the_user_types_or_asks(text: str) -> None:
    """The engine suggests the line with an exclamation mark."""
    async with one_window() as window:
        window.open(URI, f"tax{text}")
        window.change(URI, replacement(0, 3, 3 + len(text), ""))
        assert await suggested(window, 3, BY_TYPING) == []
        why = await window.request("slipstream/why", place(URI, 0, 3))
        assert why["rule"] == "just-deleted"
        assert await suggested(window, 3, BY_KEY) == ["tax!"]
        window.change(URI, insertion(0, 3, "s"))
        assert await suggested(window, 4, BY_TYPING) == ["taxs!"]
