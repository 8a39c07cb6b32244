"""Positions and times of a prefetch: after keys, for clients that wait before they request."""

from __future__ import annotations

import asyncio

import pytest

from lsp_server.workspace.documents import Edit, LineColumn, PositionEncoding
from lsp_server.workspace.prefetch import (
    MAX_KEYS_WITHOUT_REQUEST,
    MAX_TYPED_CHARS,
    PrefetchTimer,
    cursor_after,
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("x", (3, 5), id="a letter"),
        pytest.param("", (3, 4), id="a letter less"),
        pytest.param("name", (3, 8), id="an item of a list"),
        pytest.param("\n", (4, 0), id="a line"),
        pytest.param("\r\n    ", (4, 4), id="a line and what it is indented by"),
        pytest.param("()", (3, 5), id="a bracket that the editor closes"),
        pytest.param("a()", (3, 7), id="text that ends in one"),
        pytest.param("x" * (MAX_TYPED_CHARS + 1), None, id="what was pasted"),
    ],
)
def test_the_cursor_stands_behind_what_was_typed(text: str, wanted: LineColumn | None) -> None:
    assert cursor_after(Edit((3, 4), (3, 4), text), "utf-16") == wanted


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 8), ("utf-16", 6), ("utf-32", 5)])
def test_columns_are_the_clients(encoding: PositionEncoding, column: int) -> None:
    assert cursor_after(Edit((0, 4), (0, 4), "\U0001f600"), encoding) == (0, column)


class Window:
    """A window's keys and requests, and how often a prefetch began."""

    def __init__(self) -> None:
        self.prefetch_timer = PrefetchTimer()
        self.num_prefetched = 0
        self.has_prefetched = asyncio.Event()

    def press(self) -> None:
        self.prefetch_timer.document_changed(self._prefetch)

    def _prefetch(self) -> None:
        self.num_prefetched += 1
        self.has_prefetched.set()

    async def is_prefetched(self) -> bool:
        """Whether the last key led to anything; a later timer of the loop fires after an earlier one."""
        later = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, later.set)
        self.has_prefetched.clear()
        before = self.num_prefetched
        await later.wait()
        return self.num_prefetched > before


@pytest.fixture
async def window() -> Window:
    found = Window()
    found.prefetch_timer.requested(by_itself=True)
    return found


async def test_a_request_is_prefetched_after_a_key(window: Window) -> None:
    window.press()
    async with asyncio.timeout(60):
        await window.has_prefetched.wait()
    assert window.num_prefetched == 1


async def test_of_keys_in_a_row_the_last_one_counts(window: Window) -> None:
    for _ in range(5):
        window.press()
    assert await window.is_prefetched()
    assert window.num_prefetched == 1


@pytest.mark.parametrize("by_itself", [True, False])
async def test_a_request_that_has_come_is_prefetched_no_more(window: Window, *, by_itself: bool) -> None:
    window.press()
    window.prefetch_timer.requested(by_itself=by_itself)
    assert not await window.is_prefetched()


async def test_neither_is_one_behind_a_change_that_no_key_made(window: Window) -> None:
    window.press()
    window.prefetch_timer.document_changed(None)
    assert not await window.is_prefetched()


async def test_a_client_that_never_asked_by_itself_is_not_expected_to() -> None:
    window = Window()
    window.prefetch_timer.requested(by_itself=False)
    window.press()
    assert not await window.is_prefetched()


async def test_nothing_is_prefetched_while_an_item_of_a_list_is_selected(window: Window) -> None:
    window.prefetch_timer.requested(by_itself=True, has_selection=True)
    window.press()
    assert not await window.is_prefetched()
    window.prefetch_timer.requested(by_itself=True)
    window.press()
    assert await window.is_prefetched()


async def test_one_that_stopped_asking_is_believed_after_some_keys(window: Window) -> None:
    for _ in range(MAX_KEYS_WITHOUT_REQUEST):
        window.press()
    assert await window.is_prefetched()
    window.press()
    assert not await window.is_prefetched()


async def test_nothing_is_prefetched_once_the_window_has_gone(window: Window) -> None:
    window.press()
    window.prefetch_timer.stop()
    assert not await window.is_prefetched()
