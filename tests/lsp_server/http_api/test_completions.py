"""The messages that the language server receives: a scripted server that writes down each message."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lsp_server.http_api import completions
from lsp_server.http_api.completions import Completions
from lsp_server.http_api.dialects import CursorText
from tests.waiting import first_true

SERVER = """
import json, sys
from pathlib import Path

heard = Path(sys.argv[1]).open("a", encoding="utf-8")
waiting = []
while line := sys.stdin.buffer.readline():
    num_bytes = int(line.split(b":")[1])
    sys.stdin.buffer.readline()
    message = json.loads(sys.stdin.buffer.read(num_bytes))
    heard.write(json.dumps(message) + "\\n")
    heard.flush()
    result = {"text": "answer", "reason": "", "stats": {}}
    if message["method"] == "slipstream/complete" and message["params"].get("maxTokens") == 7:
        waiting.append(message["id"])  # forever
        continue
    if message["method"] == "exit" or message["params"].get("maxTokens") == 9:
        break
    if "id" in message:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
        sys.stdout.buffer.flush()
"""


@dataclass
class Recorded:
    completions: Completions
    file: Path

    def params(self, *methods: str) -> list[Any]:
        """The parameters of the messages of these methods."""
        messages = [json.loads(line) for line in self.file.read_text().splitlines()]
        return [message["params"] for message in messages if message["method"] in methods]


@pytest.fixture
async def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Recorded]:
    (tmp_path / "server.py").write_text(SERVER)
    command = (sys.executable, str(tmp_path / "server.py"), str(tmp_path / "heard"))
    monkeypatch.setattr(completions, "SERVER_COMMAND", command)
    async with aclosing(Completions([])) as started:
        await started.stats()
        yield Recorded(started, tmp_path / "heard")


def applied(text: str, change: dict[str, Any]) -> str:
    """The text after a change whose columns count characters."""
    lines = text.split("\n")
    at, end = (
        sum(len(line) + 1 for line in lines[: place["line"]]) + place["character"]
        for place in (change["range"]["start"], change["range"]["end"])
    )
    return text[:at] + change["text"] + text[end:]


TEXTS = (
    "value = 1\nother = 2\nthird = 3\n",
    "value = 1\nother = 23\nthird = 3\n",
    "value = 1\nother = 2\nthird = 3\n",
    "value = 1\nthird = 3\n",
    "# 😀 ä\nvalue = 1\nthird = 3\n",
    "# 😀😀 ä\nvalue = 1\nthird = 3\n",
    "# 😀😀 ä\nvalue = 1\nthird = 3\n",
    "# 😀😀 ä\nvalue = 1\nthird = 3\nvalue = 1\nthird = 3\n",
)


async def test_the_server_has_the_text_of_the_client_after_each_request(recorded: Recorded) -> None:
    for text in TEXTS:
        found = await recorded.completions.complete(CursorText(text[:9], text[9:]), {"deadlineMs": 5})
        assert found["text"] == "answer"
    (opened,) = recorded.params("textDocument/didOpen")
    known = [opened["textDocument"]["text"]]
    for params in recorded.params("textDocument/didChange"):
        (change,) = params["contentChanges"]
        known.append(applied(known[-1], change))
    assert known == list(TEXTS)
    asked = recorded.params("slipstream/complete")
    assert {params["deadlineMs"] for params in asked} == {5}
    assert asked[0]["position"] == {"line": 0, "character": 9}
    assert asked[-1]["position"] == {"line": 1, "character": 2}


async def test_the_server_is_told_that_no_text_may_leave(recorded: Recorded) -> None:
    (params,) = recorded.params("initialize")
    assert params["initializationOptions"] == {"slipstream": {"remote": {"url": ""}}}


async def test_a_cancelled_request_is_cancelled_at_the_server(recorded: Recorded) -> None:
    asking = asyncio.create_task(recorded.completions.complete(CursorText("a", ""), {"maxTokens": 7}))
    await asyncio.to_thread(first_true, lambda: recorded.params("slipstream/complete"), 60)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(first_true, lambda: recorded.params("$/cancelRequest"), 60)


async def test_equal_requests_share_one_that_is_cancelled_with_the_last(recorded: Recorded) -> None:
    cursor = CursorText("a", "")
    tasks = [asyncio.create_task(recorded.completions.complete(cursor, {"maxTokens": 7})) for _ in range(3)]
    await asyncio.to_thread(first_true, lambda: recorded.params("slipstream/complete"), 60)
    for number, task in enumerate(tasks):
        await recorded.completions.stats()  # the server answers it after all earlier messages
        assert (len(recorded.params("slipstream/complete")), number) == (1, number)
        assert not recorded.params("$/cancelRequest")
        task.cancel()
        await asyncio.wait([task])
    assert await asyncio.to_thread(first_true, lambda: recorded.params("$/cancelRequest"), 60)
    assert (await recorded.completions.complete(cursor, {}))["text"] == "answer"


async def test_a_request_waits_for_one_in_another_document(recorded: Recorded) -> None:
    def ask(name: str, **limits: int) -> asyncio.Task[Any]:
        cursor = CursorText("value = ", "\n", name=name)
        return asyncio.create_task(recorded.completions.complete(cursor, limits))

    def asked() -> list[str]:
        return [Path(params["textDocument"]["uri"]).name for params in recorded.params("slipstream/complete")]

    first = ask("one.py", maxTokens=7)
    await asyncio.to_thread(first_true, asked, 60)
    newer, other = ask("one.py", maxTokens=7, deadlineMs=9), ask("other.py")
    await asyncio.to_thread(first_true, lambda: len(asked()) == 2, 60)
    await recorded.completions.stats()  # the server answers it after all earlier messages
    assert asked() == ["one.py", "one.py"]
    for task in (first, newer):
        task.cancel()
    assert (await other)["text"] == "answer"
    assert asked() == ["one.py", "one.py", "other.py"]


async def test_a_server_that_ends_is_started_again_with_the_text(recorded: Recorded) -> None:
    cursor = CursorText("value = ", "\n")
    with pytest.raises(completions.ServerGoneError):
        await recorded.completions.complete(cursor, {"maxTokens": 9})
    assert (await recorded.completions.complete(cursor, {}))["text"] == "answer"
    opened = recorded.params("textDocument/didOpen")
    assert [params["textDocument"]["text"] for params in opened] == ["value = \n"] * 2


async def test_documents_that_are_not_used_are_closed(recorded: Recorded) -> None:
    for number in range(40):
        text = "".join(f"line {number} of the text {line}\n" for line in range(9))
        await recorded.completions.complete(CursorText(text, ""), {})
    opened, closed = (recorded.params(f"textDocument/did{kind}") for kind in ("Open", "Close"))
    assert (len(opened), len(closed)) == (40, 24)
