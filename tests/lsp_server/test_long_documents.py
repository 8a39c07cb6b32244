"""A keystroke costs the server, from received to sent bytes, no more in a longer document."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from completion_engine.request import Completion, CompletionRequest, CompletionStats
from lsp_server.engine.engine_types import EngineUser
from lsp_server.engine.pool import EnginePool
from lsp_server.engine.scheduler import Scheduler
from lsp_server.handlers import register
from lsp_server.protocol.parsing import parse
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.workspace.folder_indexes import FolderIndexes
from lsp_server.workspace.open_files import OpenFiles
from lsp_server.workspace.prefetch import ContextJobs
from tests.waiting import until
from tests.windows import QuietEngine

NUM_ROUNDS, NUM_KEYSTROKES = 10, 50
NUMBERS = itertools.count(2)


class InstantEngine(QuietEngine):
    """Answers at once, so that all the time is the server's."""

    def complete(self, request: CompletionRequest) -> Completion:
        return Completion(f"value{len(request.prefix)}", 0, CompletionStats(device="cpu"))


class Sent:
    """Takes what the server writes, on the event loop."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.has_come = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.bodies.append(data)
        self.has_come.set()

    def close(self) -> None:
        self.bodies.clear()


@pytest.fixture
async def server() -> AsyncIterator[tuple[SlipstreamServer, Sent]]:
    engines = EnginePool(lambda _settings, _on_tokens: lambda _report, _stop: InstantEngine())
    server = SlipstreamServer("0", engines)
    register(server)
    sent = Sent()
    server.protocol.set_writer(sent)
    server.scheduler = Scheduler(server.session.measurements, engines, EngineUser())
    server.indexes = FolderIndexes(lambda _report: None, lambda: False)
    server.open_files = OpenFiles(
        server.session, server.indexes, server.messages.show_of_file, lambda _uri: None, lambda: None
    )
    server.contexts = ContextJobs(lambda _chosen: None)
    server.protocol.receive(message("initialize", 1, capabilities={}, processId=None, rootUri=None))
    server.apply_settings()
    await until(lambda: server.scheduler.status.state == "ready")
    yield server, sent
    server.scheduler.close()
    assert await server.contexts.stop()
    assert await asyncio.to_thread(engines.stop, 60.0)


def message(method: str, request_id: int | None = None, **params: Any) -> Any:
    value = {"jsonrpc": "2.0", "method": method, "params": params}
    (parsed,) = parse(json.dumps(value if request_id is None else {**value, "id": request_id}).encode())
    return parsed


class Typist:
    """Types into the middle of a document, and waits for the suggestion after each key."""

    def __init__(self, server: SlipstreamServer, sent: Sent, num_lines: int) -> None:
        self.server, self.sent, self.line = server, sent, num_lines // 2
        self.uri = f"file:///somewhere/{num_lines}.py"
        self.column = 0
        text = "    value = compute(previous, 12)  # é\n" * num_lines
        item = {"uri": self.uri, "languageId": "python", "version": 1, "text": text}
        server.protocol.receive(message("textDocument/didOpen", textDocument=item))

    async def keystroke(self) -> None:
        before = {"line": self.line, "character": self.column}
        self.column += 1
        version, after = self.column + 1, {"line": self.line, "character": self.column}
        document = {"uri": self.uri, "version": version}
        change = {"range": {"start": before, "end": before}, "text": "x"}
        self.sent.bodies.clear()
        self.sent.has_come.clear()
        receive = self.server.protocol.receive
        receive(message("textDocument/didChange", textDocument=document, contentChanges=[change]))
        asked = {"textDocument": {"uri": self.uri}, "position": after, "context": {"triggerKind": 2}}
        receive(message("textDocument/inlineCompletion", next(NUMBERS), **asked))
        await self.sent.has_come.wait()
        assert b'"insertText"' in self.sent.bodies[0]

    async def cost_s(self) -> float:
        """Return the processor time of this thread, which runs the server's loop, for some keystrokes."""
        begin_s = time.thread_time()
        for _ in range(NUM_KEYSTROKES):
            await self.keystroke()
        return time.thread_time() - begin_s


async def test_a_keystroke_costs_the_loop_no_more_in_a_long_file_than_in_a_shorter_one(
    server: tuple[SlipstreamServer, Sent],
) -> None:
    """One change and one request for a suggestion, answered; ten times as many lines."""
    host, sent = server
    short, long = (Typist(host, sent, num_lines) for num_lines in (4_000, 40_000))
    await host.finish_work()
    costs = []
    for _ in range(NUM_ROUNDS):
        costs.append((await short.cost_s(), await long.cost_s()))
        if min(of_long for _, of_long in costs) < 3 * min(of_short for of_short, _ in costs):
            return
    pytest.fail(f"seconds for {NUM_KEYSTROKES} keys in the shorter and the longer file: {costs}")
