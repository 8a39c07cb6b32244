"""The client against small scripted servers that are real processes."""

import asyncio
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from completion_engine.errors import DataError
from lsp_server.commands.language_client import LanguageClient, ServerGoneError
from lsp_server.protocol.framing import ResponseError, encode, read_message

SERVER = textwrap.dedent(
    """
    import json, sys, time
    def read():
        length = 0
        while (line := sys.stdin.buffer.readline().strip()):
            length = int(line.split(b":")[1])
        return json.loads(sys.stdin.buffer.read(length)) if length else None
    def write(**message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
        sys.stdout.buffer.flush()
    waiting = {}
    while (m := read()) is not None:
        method, params, id = m.get("method"), m.get("params"), m.get("id")
        if method == "echo": write(id=id, result=params)
        elif method == "fail": write(id=id, error={"code": -32602, "message": "no", "data": 7})
        elif method == "wait": waiting[id] = True
        elif method == "$/cancelRequest" and waiting.pop(params["id"], None):
            write(id=params["id"], error={"code": -32800, "message": "cancelled"})
        elif method == "ask": ask = id; write(id="s1", method=params["method"], params=params["params"])
        elif id == "s1": write(id=ask, result={k: m[k] for k in ("result", "error") if k in m})
        elif method == "tell": write(method="note", params=params); write(id=id, result=None)
        elif method == "die": print("last words", file=sys.stderr); sys.exit(3)
        elif method == "babble": sys.stdout.write("Traceback: oops\\n"); sys.stdout.flush()
        elif method == "sulk": time.sleep(60)
        elif method == "shutdown": write(id=id, result=None)
        elif method == "exit": sys.exit(0)
        elif id is not None: write(id=id, result={"seen": method, "params": params})
        else: waiting[method] = params
    """
)


@pytest.fixture
async def client() -> AsyncIterator[LanguageClient]:
    async with await LanguageClient.start([sys.executable, "-c", SERVER]) as started:
        yield started


async def test_answers_find_their_requests_in_any_order(client: LanguageClient) -> None:
    waiting = client.send("wait")
    assert await client.request("echo", {"text": "größer 😀"}) == {"text": "größer 😀"}
    client.cancel(waiting.id)
    with pytest.raises(ResponseError) as caught:
        await waiting
    assert caught.value.is_cancelled


async def test_an_error_answer_is_raised_with_its_code(client: LanguageClient) -> None:
    with pytest.raises(ResponseError, match="no") as caught:
        await client.request("fail")
    assert (caught.value.code, caught.value.data, caught.value.is_cancelled) == (-32602, 7, False)


async def test_notifications_reach_their_handlers_in_order(client: LanguageClient) -> None:
    seen: list[int] = []
    client.on_notification("note", seen.append)
    for number in range(3):
        await client.request("tell", number)
    assert seen == [0, 1, 2]


async def test_initialize_names_the_folder_the_encoding_and_the_settings(
    client: LanguageClient, tmp_path: Path
) -> None:
    result = await client.initialize(tmp_path, position_encoding="utf-8", settings={"maxTokens": 8})
    params = result["params"]
    assert params["workspaceFolders"] == [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]
    assert params["capabilities"]["general"]["positionEncodings"] == ["utf-8", "utf-16"]
    assert params["initializationOptions"] == {"slipstream": {"maxTokens": 8}}


@pytest.mark.parametrize(
    ("method", "params", "answer"),
    [
        ("workspace/configuration", {"items": [{"section": "slipstream"}]}, {"result": [{"maxTokens": 8}]}),
        ("workspace/configuration", {"items": [{"section": "other"}]}, {"result": [None]}),
        ("client/registerCapability", {"registrations": [{"id": "a"}]}, {"result": None}),
        ("window/workDoneProgress/create", {"token": 1}, {"result": None}),
        ("no/such", {}, {"error": {"code": -32601, "message": "unknown method no/such"}}),
    ],
)
async def test_the_server_may_ask_what_it_asks_editors(
    client: LanguageClient, method: str, params: object, answer: object
) -> None:
    await client.initialize(None, settings={"maxTokens": 8})
    assert await client.request("ask", {"method": method, "params": params}) == answer


async def test_a_dying_server_fails_all_that_wait_with_its_last_words(client: LanguageClient) -> None:
    waiting = client.send("wait")
    client.send("die")
    with pytest.raises(ServerGoneError) as caught:
        await asyncio.wait_for(waiting.answer, 60)
    assert "ended" in caught.value.message
    assert await client.shutdown() == 3
    assert list(client.stderr_lines) == ["last words"]
    with pytest.raises(ServerGoneError, match="last words"):
        await client.request("echo")


async def test_text_that_is_no_protocol_is_named(client: LanguageClient) -> None:
    with pytest.raises(ServerGoneError, match="does not speak the protocol"):
        await asyncio.wait_for(client.request("babble"), 60)


async def test_a_server_that_does_not_end_is_killed(client: LanguageClient) -> None:
    client.send("sulk")
    assert await client.shutdown(timeout_s=0.3) < 0


async def test_shutdown_is_clean_and_may_be_repeated(client: LanguageClient) -> None:
    assert await client.shutdown() == 0
    assert await client.shutdown() == 0


async def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServerGoneError, match="cannot be started"):
        await LanguageClient.start([str(Path(tmp_path) / "absent")])


async def test_document_versions_count_up_and_closing_forgets_them(client: LanguageClient) -> None:
    client.open("file:///a.py", "x", language="python")
    assert [client.change("file:///a.py", [{"text": "y"}]) for _ in range(2)] == [2, 3]
    client.close("file:///a.py")
    client.open("file:///a.py", "x", language="python")
    assert client.change("file:///a.py", [{"text": "z"}]) == 2


def reader_of(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return reader


async def test_what_is_encoded_is_read_again_message_by_message() -> None:
    messages = [{"id": 1, "params": "é😀\r\n"}, {"method": "x", "params": ["\ud800"]}]
    reader = reader_of(b"".join(map(encode, messages)))
    assert [await read_message(reader) for _ in range(3)] == [
        messages[0],
        {"method": "x", "params": ["\ud800"]},
        None,
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: 99999999999\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Type: x\r\n\r\n{}",
        b"hello\r\n",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 2\r\n\r\n{,",
        b"x" * 200_000,
        b"Content-Type: x\r\n" * 10_000,
    ],
)
async def test_a_broken_frame_is_refused(data: bytes) -> None:
    with pytest.raises(DataError):
        await read_message(reader_of(data))


@pytest.mark.parametrize("data", [b"", b"Content-Le", b"Content-Length: 9\r\n\r\n{}"])
async def test_a_stream_that_ends_ends_the_conversation(data: bytes) -> None:
    assert await read_message(reader_of(data)) is None
