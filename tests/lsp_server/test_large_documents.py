"""Documents that are too large get empty answers with the reason, and delay no other window."""

from __future__ import annotations

import pytest

from lsp_server.workspace import documents
from lsp_server.workspace.documents import MAX_DOCUMENT_CHARS, Document, Edit
from lsp_server.workspace.lines import MAX_LINE_CHARS
from tests.windows import Window, insertion, one_window, windows_on

URI = "file:///somewhere/a.py"
LONG_LINE = "x" * (MAX_LINE_CHARS + 1)
LARGE = "x = 1\n" * (MAX_DOCUMENT_CHARS // 6 + 1)


async def is_refused(window: Window) -> bool:
    explained = await window.why(URI, 0, 1)
    assert await window.suggest(URI, 0, 1) == []
    return bool(explained["rule"] == "document-too-large" and explained["reason"])


async def is_followed(window: Window, text: str) -> bool:
    return await window.suggest(URI, 0, len(text)) == [f"{text}!"]


@pytest.mark.parametrize("text", [LARGE, LONG_LINE, "a\n" + LONG_LINE + "\nb"])
async def test_a_document_that_is_too_large_is_not_followed_until_it_is_small(text: str) -> None:
    async with one_window() as window:
        window.open(URI, text)
        window.change(URI, insertion(0, 0, "y"))
        assert await is_refused(window)
        window.change(URI, {"text": "small"})
        assert await is_followed(window, "small")
        window.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        assert (await window.why(URI, 0, 0))["rule"] == "unknown-document"


@pytest.mark.parametrize("change", [insertion(0, 0, LONG_LINE), insertion(0, 0, LARGE), {"text": LARGE}])
async def test_a_document_that_becomes_too_large_is_no_longer_followed(change: dict[str, object]) -> None:
    async with one_window() as window:
        window.open(URI, "small")
        assert await is_followed(window, "small")
        window.change(URI, change)
        assert await is_refused(window)
        window.change(URI, {"text": "small"})
        assert await is_followed(window, "small")


def deletion(start: tuple[int, int], end: tuple[int, int]) -> dict[str, object]:
    first, last = ({"line": line, "character": column} for line, column in (start, end))
    return {"range": {"start": first, "end": last}, "text": ""}


@pytest.mark.parametrize(
    ("paste", "end"),
    [
        ("x" * 200_000, (0, 200_002)),
        ("é" * 200_000, (0, 200_002)),
        ("x" * 5_000_000, (0, 5_000_002)),
        ("x = 1\n" * 900_000, (900_000, 0)),
        ("x" * 200_000 + "\n" + "y" * 200_000, (1, 200_000)),
    ],
    ids=["200 kB", "200 kB, not ASCII", "5 MB", "5 MB in lines", "two lines"],
)
async def test_what_is_pasted_and_undone_leaves_the_document_as_it_was(
    paste: str, end: tuple[int, int]
) -> None:
    """By edits of a range, as editors send them, without closing the document."""
    async with windows_on() as windows:
        window = await windows.begun()
        window.open(URI, "ab = \nrest")
        assert await is_followed(window, "ab = ")
        window.change(URI, insertion(0, 2, paste))
        assert await is_refused(window)
        window.change(URI, insertion(0, 0, "typed"), deletion((0, 0), (0, 5)))
        assert await is_refused(window)
        window.change(URI, deletion((0, 2), end))
        assert await is_followed(window, "ab = ")
        (server,) = windows.servers
        document = server.session.documents[URI]
        document.check_integrity()
        assert "".join(document.lines) == "ab = \nrest"
        await window.end()


async def test_edits_that_go_through_too_much_text_are_not_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lsp_server.handlers.document_sync.MAX_TOUCHED_CHARS", 1_000_000)
    async with one_window() as window:
        window.open(URI, "x" * 150_000)
        window.change(URI, *(insertion(0, 0, "y") for _ in range(100)))
        assert await is_refused(window)
        window.change(URI, {"text": "x = "})
        assert await is_followed(window, "x = ")


async def test_a_document_whose_text_was_dropped_is_too_large_until_it_comes_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(documents, "MAX_KEPT_CHARS", 1000)
    monkeypatch.setattr(documents, "MAX_DOCUMENT_CHARS", 500)
    async with one_window() as window:
        window.open(URI, "x = 1\n" * 1000)
        assert await is_refused(window)
        window.change(URI, {"text": "small"}, insertion(0, 5, "y" * 2000))
        assert await is_refused(window)
        window.change(URI, {"text": "small"})
        assert await is_followed(window, "small")


async def test_large_texts_and_long_lists_of_edits_arrive_in_order() -> None:
    text = "value = 1\n" * 30_000
    async with windows_on() as windows:
        window = await windows.begun()
        window.open(URI, text)
        window.change(URI, insertion(0, 0, "first"))
        window.change(URI, insertion(0, 5, "\n" + text + "last"))
        window.change(URI, *(insertion(0, 5 + number, str(number % 10)) for number in range(1000)))
        digits = "".join(str(number % 10) for number in range(1000))
        assert await is_followed(window, f"first{digits}")
        (server,) = windows.servers
        document = server.session.documents[URI]
        document.check_integrity()
        assert "".join(document.lines) == f"first{digits}\n{text}last{text}"
        await window.end()


def test_lines_are_split_in_pieces_as_they_are_in_one() -> None:
    text = ("a\rb\r\n" + "c" * 50 + "\n\r\n\r") * 5000
    whole = Document(URI, "python", 1, text)
    whole.check_integrity()
    part = Document(URI, "python", 1, "")
    part.apply(Edit((0, 0), (0, 0), text), "utf-16")
    assert part.lines == whole.lines
    assert "".join(whole.lines) == text
