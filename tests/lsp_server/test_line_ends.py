"""Line ends on their way through a server: whatever a client sends, it gets back those of the document."""

from __future__ import annotations

import pytest

from tests.windows import Window, insertion, one_window, place

URI = "file:///somewhere/a.js"
SELECTED = "for (x of y) {\n\t\n}"


async def inserted(window: Window, text: str, line: int = 1) -> str:
    """The text to insert after the `fo` of a line, while an item of the editor's list is selected."""
    span = {"start": place(URI, line, 2)["position"], "end": place(URI, line, 4)["position"]}
    selected = {"range": span, "text": text}
    context = place(URI, line, 4, triggerKind=2, selectedCompletionInfo=selected)
    result = await window.request("textDocument/inlineCompletion", context)
    return "".join(item["insertText"] for item in result["items"])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("of_item", ["\n", "\r\n", "\r"])
async def test_a_selected_item_has_the_document_s(newline: str, of_item: str) -> None:
    async with one_window() as window:
        window.open(URI, "f() {\n  fo\n}\n".replace("\n", newline))
        wanted = f"{SELECTED.removeprefix('fo')}}}!".replace("\n", newline)
        assert await inserted(window, SELECTED.replace("\n", of_item)) == wanted


async def test_a_document_that_is_filled_once_it_is_open_has_those_of_its_text() -> None:
    async with one_window() as window:
        window.open(URI, "")
        window.change(URI, insertion(0, 0, "f() {\r\n  fo"))
        assert await inserted(window, "for\nx") == "r\r\nxx!"


async def test_half_a_character_of_a_selected_item_is_none() -> None:
    async with one_window() as window:
        window.open(URI, "f() {\n  fo")
        assert await inserted(window, "fo\ud800") == "\ufffd  fo\ufffd!"
