"""Hostile conversations: messages of odd shapes in odd orders.

The oracle: each request has one answer, and the conversation ends. A real server with its session, scheduler
and handlers; an engine that answers at once. Owns what is said.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import threading
from collections import Counter
from typing import Any

from completion_engine.request import Completion, CompletionRequest, CompletionStats
from lsp_server.engine.pool import EnginePool
from lsp_server.handlers import register
from lsp_server.handlers.routes import ROUTES
from lsp_server.handlers.user_actions import COMMANDS
from lsp_server.protocol.client_streams import read_frame
from lsp_server.protocol.server import SlipstreamServer
from tests.windows import QuietEngine

_METHODS = (
    *(route.method for route in ROUTES),
    "workspace/executeCommand",
    "$/cancelRequest",
    "textDocument/hover",
)
_URIS = (
    "file:///a.py",
    "file:///b%20c.go",
    "untitled:1",
    "vscode-notebook-cell:/c.ipynb#W0sZmlsZQ%3D%3D",
    "vscode-notebook-cell:c#s\ud800",
    "file://host/x",
    "",
    "http://[",
    "file:///" + "d/" * 400,
)
_TEXTS = ("", "def f():\n    ret\n", "\r\n\r", "é\U0001f600x\n", "\ud800", "(" * 5000, "a\n" * 2000)
_SETTINGS: tuple[Any, ...] = (
    {}, None, 7, {"slipstream": None}, {"slipstream": {"deadlineMs": -1, "x": [[[]]]}}, {"slipstream": "no"},
    {"slipstream": {"languages": {"python": "maybe"}}}, {"slipstream": {"drafters": ["ngram", "ngram", "x"]}},
)  # fmt: skip
_TIMEOUT_S = 60.0


class _InstantEngine(QuietEngine):
    """Answers at once."""

    def complete(self, request: CompletionRequest) -> Completion:
        return Completion(f"v{len(request.prefix)}", 0, CompletionStats(device="cpu"))


class _Sent:
    """Takes what the server writes."""

    def __init__(self) -> None:
        self.stream = io.BytesIO()

    def write(self, data: bytes) -> None:
        self.stream.write(data)

    def flush(self) -> None:
        pass

    def answers(self) -> Counter[str]:
        """Number of answers to each id."""
        self.stream.seek(0)
        found: Counter[str] = Counter()
        while (body := read_frame(self.stream)) is not None:
            message = json.loads(body)
            if "method" not in message:
                found[repr(message.get("id"))] += 1
        return found


def check(rng: random.Random) -> None:
    """One conversation from `initialize` to `exit`, with whatever comes to mind between."""
    asked: Counter[str] = Counter()
    bodies = [_message("initialize", 0, {"processId": None, "rootUri": None, "capabilities": {}})]
    asked["0"] += 1
    for number in range(1, rng.randrange(2, 30)):
        method, params = rng.choice(_METHODS), _params(rng)
        request_id = number if rng.random() < 0.6 and method not in {"exit", "shutdown"} else None
        body = _message(method, request_id, params)
        if rng.random() < 0.1:
            at = rng.randrange(len(body))
            body = body[:at] + rng.randbytes(1) + body[at + 1 :]
            body = body if _is_spoilt(body) else _message(method, request_id, params)
        if request_id is not None and not _is_spoilt(body):
            asked[repr(request_id)] += 1
        bodies.append(body)
    last = 1000
    asked[repr(last)] += 1
    bodies += [_message("shutdown", last, None), _message("exit", None, None)]
    answers = asyncio.run(_converse(bodies))
    wrong = {name: (count, answers[name]) for name, count in asked.items() if answers[name] != count}
    assert not wrong, f"asked and answered: {wrong}"


async def _converse(bodies: list[bytes]) -> Counter[str]:
    engines = EnginePool(lambda _settings, _on_tokens: lambda _report, _stop: _InstantEngine())
    server = SlipstreamServer("0", engines)
    register(server)
    sent, (reading, writing) = _Sent(), os.pipe()

    def feed() -> None:
        with os.fdopen(writing, "wb") as stream:
            for body in bodies:
                stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    feeding = threading.Thread(target=feed, daemon=True)
    feeding.start()
    with os.fdopen(reading, "rb") as stream:
        async with asyncio.timeout(_TIMEOUT_S):
            await server.serve(stream, sent)
        feeding.join()
    await asyncio.to_thread(engines.stop, _TIMEOUT_S)
    return sent.answers()


def _message(method: str, request_id: int | None, params: Any) -> bytes:
    value: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        value["params"] = params
    if request_id is not None:
        value["id"] = request_id
    return json.dumps(value).encode()


def _is_spoilt(body: bytes) -> bool:
    """Whether a message is not JSON any more; otherwise it may ask for something else."""
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return True
    return False


def _params(rng: random.Random) -> Any:
    """Parameters that fit some method, or none at all; parts of them are of other types or missing."""
    place = {"line": _number(rng), "character": _number(rng)}
    document = {
        "uri": rng.choice(_URIS), "languageId": rng.choice(("python", "", "x" * 300)),
        "version": _number(rng), "text": rng.choice(_TEXTS),
    }  # fmt: skip
    changes = [
        {"range": {"start": place, "end": {"line": _number(rng), "character": 0}}, "text": rng.choice(_TEXTS)}
    ]
    params: Any = {
        "textDocument": document, "position": place, "context": {"triggerKind": rng.choice((1, 2, 9, None))},
        "contentChanges": rng.choice((changes, [{"text": "x"}], [], None, [7])),
        "settings": rng.choice(_SETTINGS), "acceptedLength": _number(rng),
        "command": rng.choice((*COMMANDS, "none")), "arguments": rng.choice(([], [None], ["1"], [{}], None)),
        "id": rng.randrange(30), "item": rng.choice(({}, {"command": None}, None)),
        "event": {"added": [{"uri": rng.choice(_URIS), "name": "a"}], "removed": []}, "changes": [],
    }  # fmt: skip
    for name in rng.sample(sorted(params), rng.randrange(4)):
        params[name] = rng.choice((None, 7, "x", [], {}))
    return rng.choice((params, params, params, params, None, [], "x"))


def _number(rng: random.Random) -> Any:
    return rng.choice((0, 0, 1, 2, 7, -1, 2**31, 2**63, 1.5, "1", None))
