"""A keystroke cancels work down to the decode step; the newest request wins; the loop never waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from lsp_server.protocol.framing import REQUEST_CANCELLED, ResponseError
from tests.hosts import PATIENCE_S

if TYPE_CHECKING:
    from tests.e2e.conftest import Editor, StartEditor

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = {"multiline": "always", "maxTokens": 256, "drafters": []}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def writer(
    start_editor: StartEditor, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Editor]:
    """An editor whose completions are long, so that there is time to cancel them."""
    async with start_editor(tmp_path_factory.mktemp("long"), LONG) as editor:
        await editor.until_state("ready")
        yield editor


def text_number(number: int) -> str:
    return f"def add{number}(a, b):\n    return a + b\n\n\ndef twice{number}(a):\n    \n"


async def test_a_request_cancelled_in_mid_decode_is_answered_so_and_frees_the_engine(writer: Editor) -> None:
    num_cancelled = 0
    for number in range(500):
        uri = writer.open(f"cancel{number}.py", text_number(number))
        request = writer.ask(uri, 5, 4)
        await asyncio.sleep(0.002 * (number % 10))
        writer.client.cancel(request.id)
        try:
            await request  # the tiny target may have been done by then
        except ResponseError as error:
            assert error.code == REQUEST_CANCELLED
            num_cancelled += 1
            # One that was cancelled before the engine took it up frees nothing, and is not timed.
            if (await writer.stats())["cancel_to_idle_ms"]["count"]:
                break
    assert num_cancelled
    await writer.until(lambda stats: stats["cancel_to_idle_ms"]["count"] > 0)
    assert (await writer.stats())["counters"]["num_cancelled"] == num_cancelled
    uri = writer.open("after.py", text_number(999))
    assert await writer.suggest(uri, 5, 4)


async def test_of_a_burst_of_requests_the_last_one_is_answered(writer: Editor) -> None:
    for number in range(50):  # the tiny target may be done with each before the next one comes
        uri = writer.open(f"burst{number}.py", text_number(1000 + number))
        requests = [writer.ask(uri, 5, 4) for _ in range(20)]
        answers = await asyncio.gather(*(request.answer for request in requests), return_exceptions=True)
        assert isinstance(answers[-1], dict)
        codes = {answer.code for answer in answers[:-1] if isinstance(answer, ResponseError)}
        assert codes <= {REQUEST_CANCELLED}
        if codes:
            return
    pytest.fail("no request was ever overtaken")


async def test_a_request_overtaken_by_one_for_another_document_is_answered(writer: Editor) -> None:
    num_overtaken = 0
    for number in range(50):  # the tiny target may be done with the first before the second comes
        first = writer.ask(writer.open(f"first{number}.py", text_number(2000 + 2 * number)), 5, 4)
        second = writer.ask(writer.open(f"second{number}.py", text_number(2001 + 2 * number)), 5, 4)
        answers = await asyncio.gather(first.answer, second.answer, return_exceptions=True)
        assert isinstance(answers[1], dict)
        assert isinstance(answers[1]["items"], list)  # the tiny target's text may be empty
        if isinstance(answers[0], ResponseError):
            assert answers[0].code == REQUEST_CANCELLED
            num_overtaken += 1
        if num_overtaken == 3:
            return
    pytest.fail("no request was ever overtaken")


async def test_the_server_answers_while_the_engine_works(writer: Editor) -> None:
    """The loop that waited for the engine would answer what is asked later after the suggestion."""
    for number in range(50):  # the tiny target may be done at once
        request = writer.ask(writer.open(f"busy{number}.py", text_number(3000 + number)), 5, 4)
        await writer.stats()
        is_under_way = not request.answer.done()
        await request
        if is_under_way:
            return
    pytest.fail("the server never answered before the engine was done")


async def test_keys_in_a_long_file_are_taken_while_the_engine_works(writer: Editor) -> None:
    """Each key cancels the request before it, as typing does; the last request is under way at the end."""
    num_lines, num_keys = 20_000, 20
    uri = writer.open("long.py", "    value = compute(previous, 12)  # é\n" * num_lines)
    line, column = num_lines // 2, 0
    for _ in range(50):  # the tiny target may be done with each before the next key
        requests = []
        for _ in range(num_keys):
            writer.type(uri, line, column, "x")
            column += 1
            if requests:
                writer.client.cancel(requests[-1].id)
            requests.append(writer.ask(uri, line, column))
        await writer.stats()  # is answered after the keys
        is_under_way = not requests[-1].answer.done()
        answers = await asyncio.gather(*(request.answer for request in requests), return_exceptions=True)
        assert {type(answer) for answer in answers} <= {dict, ResponseError}
        assert isinstance(answers[-1], dict)
        place = {"line": line, "character": column}
        assert all(item["range"]["start"] == place for item in answers[-1]["items"])
        if is_under_way:
            return
    pytest.fail("the keys were never taken before the engine was done")


async def test_the_server_ends_at_once_in_the_middle_of_a_completion(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    async with start_editor(tmp_path, LONG, own=True) as editor:
        await editor.until_state("ready")
        editor.ask(editor.open("end.py", text_number(1)), 5, 4)
        assert await editor.client.shutdown(timeout_s=PATIENCE_S) == 0


async def test_the_server_ends_at_once_while_it_loads(start_editor: StartEditor, tmp_path: Path) -> None:
    async with start_editor(tmp_path, own=True) as editor:
        assert await editor.client.shutdown(timeout_s=PATIENCE_S) == 0
