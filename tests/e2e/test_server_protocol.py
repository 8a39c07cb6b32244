"""Every request is answered once, whatever is wrong with it, and the server lives on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lsp_server.protocol.framing import ResponseError

if TYPE_CHECKING:
    from tests.e2e.conftest import Editor, StartEditor

pytestmark = pytest.mark.asyncio(loop_scope="module")

INLINE = "textDocument/inlineCompletion"
CONTEXT = {"triggerKind": 2}
REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("no/suchMethod", {}, -32601),
        (INLINE, None, -32602),
        (INLINE, {"textDocument": {}}, -32602),
        (INLINE, {"textDocument": {"uri": 7}, "position": {"line": "x", "character": 0}}, -32602),
        ("slipstream/why", {"textDocument": {"uri": "file:///a"}}, -32602),
        ("slipstream/why", ["x"], -32602),
        ("workspace/executeCommand", {"command": "rm"}, -32602),
        ("initialize", {"capabilities": {}, "processId": None, "rootUri": None}, -32002),
    ],
)
async def test_a_request_that_makes_no_sense_gets_an_error(
    editor: Editor, method: str, params: Any, code: int
) -> None:
    with pytest.raises(ResponseError) as caught:
        await editor.client.request(method, params)
    assert caught.value.code == code
    assert (await editor.stats())["state"] == "ready"


@pytest.mark.parametrize(
    ("line", "column"), [(0, 10_000), (10_000, 0), (2**31 - 1, 2**31 - 1), (1, 1)], ids=str
)
async def test_a_position_beyond_the_end_is_the_end(editor: Editor, line: int, column: int) -> None:
    uri = editor.open(f"beyond{line}-{column}.py", "x = 1\ny = 2")
    for item in await editor.suggest(uri, line, column):
        assert item["range"]["start"]["line"] <= 1
        assert item["range"]["start"]["character"] <= 5


@pytest.mark.parametrize("uri", ["file:///never/opened.py", "untitled:x", "", "http://[", "file://%zz"])
async def test_an_unknown_document_gets_an_empty_answer(editor: Editor, uri: str) -> None:
    assert await editor.suggest(uri, 0, 0) == []
    assert (await editor.why(uri, 0, 0))["rule"] == "unknown-document"
    place = {"line": 0, "character": 0}
    change = {"range": {"start": place, "end": place}, "text": "x"}
    identifier = {"uri": uri, "version": 2}
    editor.client.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [change]})
    editor.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert (await editor.stats())["state"] == "ready"


@pytest.mark.parametrize(
    "method",
    [
        "no/suchNotification",
        "$/setTrace",
        "$/cancelRequest",
        "textDocument/didShowCompletion",
        "textDocument/didPartiallyAcceptCompletion",
        "textDocument/didFocus",
        "textDocument/didChange",
        "workspace/didChangeConfiguration",
    ],
)
@pytest.mark.parametrize("params", [None, [], {"id": [1]}, {"acceptedLength": "x"}], ids=str)
async def test_a_notification_of_any_shape_is_survived(editor: Editor, method: str, params: Any) -> None:
    editor.client.notify(method, params)
    assert (await editor.stats())["state"] == "ready"


async def test_untitled_documents_are_completed_too(editor: Editor) -> None:
    uri = "untitled:Untitled-1"
    editor.client.open(uri, "def add(a, b):\n    return a + b\n\n\n", language="python")
    assert (await editor.why(uri, 4, 0))["triggered"]


def talk(*messages: bytes, env: dict[str, str] | None = None) -> tuple[list[Any], int]:
    """The answers of a fresh server to raw bytes, and its exit code at the end of its input."""
    framed = b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in messages)
    done = subprocess.run(
        [sys.executable, "-m", "lsp_server", "--stdio"],
        input=framed,
        capture_output=True,
        cwd=REPOSITORY,
        timeout=300,
        check=False,
        env=env,
    )
    answers = []
    rest = done.stdout
    while rest:
        header, _, rest = rest.partition(b"\r\n\r\n")
        length = int(header.split(b":")[1].split(b"\r\n")[0])
        answers.append(json.loads(rest[:length]))
        rest = rest[length:]
    return answers, done.returncode


def message(method: str, request_id: Any = None, **params: Any) -> bytes:
    value = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps({**value, "id": request_id} if request_id is not None else value).encode()


INITIALIZE = message("initialize", 1, capabilities={}, processId=None, rootUri=None)


async def test_garbage_is_answered_and_survived() -> None:
    bodies = [b"{", b"[1]", b"7", b'{"jsonrpc":"1.0"}', b"[" * 100_000, b"\xff\xfe"]
    answers, _ = await asyncio.to_thread(talk, *bodies, INITIALIZE)
    codes = [answer["error"]["code"] for answer in answers[:-1]]
    assert codes == [-32700, -32600, -32600, -32600, -32700, -32700]
    assert all(answer["id"] is None for answer in answers[:-1])
    assert answers[-1]["result"]["serverInfo"]["name"] == "slipstream"


async def test_nothing_is_served_before_the_handshake_nor_after_the_shutdown() -> None:
    stats = message("slipstream/stats", 2)
    answers, code = await asyncio.to_thread(
        talk, stats, INITIALIZE, message("shutdown", 3), stats, message("exit")
    )
    assert [answer.get("error", {}).get("code") for answer in answers] == [-32002, None, None, -32600]
    assert code == 0


async def test_a_client_that_vanishes_ends_the_server_with_a_code_that_says_so() -> None:
    _, code = await asyncio.to_thread(talk, INITIALIZE)
    assert code == 1
    _, code = await asyncio.to_thread(talk, INITIALIZE, message("exit"))
    assert code == 1


async def test_a_stream_that_is_no_protocol_ends_the_server() -> None:
    argv = [sys.executable, "-m", "lsp_server"]
    done = await asyncio.to_thread(
        subprocess.run,
        argv,
        input=b"GET / HTTP/1.1\r\n\r\n",
        capture_output=True,
        cwd=REPOSITORY,
        timeout=300,
    )
    assert done.returncode == 1
    assert b"does not speak the protocol" in done.stderr
    assert done.stdout == b""


@pytest.mark.parametrize("arguments", [["serve"], ["--host"], ["--shared", "--verbose"]])
async def test_an_argument_that_it_does_not_know_ends_the_server_with_its_name(
    arguments: list[str],
) -> None:
    argv = [sys.executable, "-m", "lsp_server", *arguments]
    done = await asyncio.to_thread(
        subprocess.run, argv, input=b"", capture_output=True, cwd=REPOSITORY, timeout=300
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(f"slipstream: {arguments[-1]!r} is not an argument".encode())


NOISE = """
import os, sys, threading, time

def make_noise():
    while sys.stdout is not sys.stderr:
        time.sleep(0.01)
    print("py")
    os.system("echo sh")
    os.write(1, b"raw\\n")

threading.Thread(target=make_noise, daemon=True).start()
"""


async def test_stray_output_never_reaches_the_protocol(start_editor: StartEditor, tmp_path: Path) -> None:
    """Output of Python, of the system below and of child processes, while the server serves."""
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    async with start_editor(tmp_path, env={"PYTHONPATH": str(tmp_path)}) as editor:
        await editor.until(lambda _stats: {"py", "sh", "raw"} <= set(editor.client.stderr_lines))


@pytest.mark.parametrize(
    "method", ["initialized", "textDocument/didOpen", "workspace/didChangeConfiguration"]
)
async def test_a_notification_that_comes_with_an_id_is_answered(editor: Editor, method: str) -> None:
    """A client that sends an id waits for an answer."""
    with pytest.raises(ResponseError) as refused:
        await editor.client.request(method, {})
    assert "notification" in str(refused.value)
