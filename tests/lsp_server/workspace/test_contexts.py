"""Contexts are chosen beside the loop, document by document, and hold only what may still be read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from completion_engine.request import CompletionRequest, RepositoryContext
from completion_engine.text_window import TextWindow
from lsp_server.workspace import prefetch
from lsp_server.workspace.prefetch import ContextJobs, ContextQuery
from ngram_cache import NgramIndex
from ngram_cache.overlays import TokenSource
from tests.waiting import until

SHELF = "def put_on_shelf(book: str, place: int) -> bool:\n    return place > 0\n"
PREFIX = "from shelf import put_on_shelf\n\n\ndef tidy(book):\n    return put_on_shelf("


def encode_many(texts: list[str]) -> list[list[int]]:
    if any("panic" in text for text in texts):
        raise ZeroDivisionError(texts)
    return [list(text.encode()) for text in texts]


TOKENS = TokenSource("bytes", encode_many, bytes)


class Place:
    """Jobs over a small index, and the queries that were answered."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.answered: asyncio.Queue[ContextQuery] = asyncio.Queue()
        self.jobs = ContextJobs(
            lambda query: loop.call_soon_threadsafe(self.answered.put_nowait, query)  # type: ignore[arg-type, func-returns-value]
        )
        self.index = NgramIndex([("shelf.py", np.frombuffer(SHELF.encode(), np.uint8))])

    def request(self, document: str = "a", prefix: str = PREFIX) -> CompletionRequest:
        return CompletionRequest(
            prefix, "\n", "python", document, index=self.index, indexed_as=f"{document}.py"
        )

    def want(self, request: CompletionRequest) -> None:
        self.jobs.want(
            ContextQuery(request, Path("/library"), TOKENS, 256, TextWindow(2400, 800), lambda: True)
        )

    async def next(self) -> str:
        async with asyncio.timeout(60):
            return (await self.answered.get()).request.document


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    place = Place()
    yield place
    assert await place.jobs.stop(60.0)
    await until(lambda: not choosing())


def choosing() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "own _choose"]


def shown(place: Place, request: CompletionRequest) -> list[str]:
    context = place.jobs.of(request)
    return [snippet.path for snippet in context.snippets] if context else []


async def test_a_document_has_no_context_until_one_is_chosen_and_no_thread_until_one_is_wanted(
    place: Place,
) -> None:
    assert not choosing()
    request = place.request()
    assert shown(place, request) == []
    place.want(request)
    assert shown(place, request) == []
    assert await place.next() == "a"
    assert "shelf.py" in shown(place, request)
    assert shown(place, place.request("b")) == []


async def test_a_context_is_gone_as_soon_as_a_file_of_it_may_not_be_read(place: Place) -> None:
    place.want(place.request())
    await place.next()
    place.index.remove("shelf.py")
    assert place.jobs.of(place.request()) is None
    assert place.jobs.of(replace(place.request(), index=None)) is None


@pytest.mark.parametrize("forget", ["forget", "clear"])
async def test_what_is_closed_or_outdated_is_forgotten(place: Place, forget: str) -> None:
    place.want(place.request())
    await place.next()
    if forget == "forget":
        place.jobs.forget("a")
    else:
        place.jobs.clear()
    assert place.jobs.of(place.request()) is None


@pytest.mark.parametrize("forget", ["forget", "clear"])
@pytest.mark.parametrize("moment", ["before the choice", "during the choice"])
async def test_what_is_closed_or_outdated_gets_no_context_any_more(
    place: Place, monkeypatch: pytest.MonkeyPatch, moment: str, forget: str
) -> None:
    has_begun, may_go_on, choose = threading.Event(), threading.Event(), prefetch.choose

    def choose_slowly(*arguments: Any) -> RepositoryContext:
        has_begun.set()
        assert may_go_on.wait(60)
        return choose(*arguments)

    monkeypatch.setattr(prefetch, "choose", choose_slowly)
    place.want(place.request())
    if moment == "during the choice":
        await asyncio.to_thread(has_begun.wait, 60)
    if forget == "forget":
        place.jobs.forget("a")
    else:
        place.jobs.clear()
    may_go_on.set()
    place.want(place.request("b"))
    assert await place.next() == "b"
    assert (shown(place, place.request()), place.jobs.of(place.request())) == ([], None)


async def test_a_choice_that_fails_costs_that_document_its_context_alone(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.want(place.request("a", "panic(panic_again(put_on_shelf("))
    await until(lambda: "No context" in caplog.text)
    place.want(place.request("b"))
    assert await place.next() == "b"
    assert place.jobs.of(place.request("a")) is None


async def test_of_a_known_document_another_choice_waits_for_a_rest(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.want(place.request())
    await place.next()
    monkeypatch.setattr(prefetch, "REST_S", 600.0)
    place.want(place.request(prefix="x = 1\n"))
    place.want(place.request("b"))
    assert await place.next() == "b"
    assert "shelf.py" in shown(place, place.request())


async def test_only_so_many_documents_have_a_context(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "MAX_DOCUMENTS", 2)
    for document in "abc":
        place.want(place.request(document))
        await place.next()
    assert [bool(shown(place, place.request(document))) for document in "abc"] == [False, True, True]


async def test_nothing_is_chosen_once_it_has_stopped(place: Place) -> None:
    assert await place.jobs.stop(60.0)
    place.want(place.request())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (choosing(), place.jobs.of(place.request())) == ([], None)
