"""Editor windows on the real server in this process, over a socket each, with a small scripted engine.

Owns the sockets and the editor's side of the protocol.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.request import (
    Cancellation,
    CancelledError,
    Completion,
    CompletionRequest,
    CompletionStats,
    Progress,
)
from lsp_server.app import MachineModels
from lsp_server.engine.auto_target import Chooser
from lsp_server.engine.engine_types import Completer, Load, OnTokens
from lsp_server.engine.pool import EnginePool
from lsp_server.handlers import register
from lsp_server.protocol.framing import encode, read_message
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.sharing import relay
from lsp_server.workspace.settings import Settings
from ngram_cache.overlays import TokenSource
from tests.hosts import PATIENCE_S


class Panic(BaseException):
    """A panic of a library below Python, which is not an Exception."""


class QuietEngine:
    """Does nothing but answer, which others add."""

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        del request

    def idle(self, cancellation: Cancellation) -> bool:
        return False

    def forget(self, document: str) -> None:
        del document

    def describe(self) -> dict[str, Any]:
        return {"device": "scripted"}

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        del request
        return EditAnswer(rule="edit-needs-local-model")

    def take_grown(self) -> CompletionRequest | None:
        return None


@dataclass
class ScriptedEngine(QuietEngine):
    """Answers as requested: the end of the text before the cursor selects the answer."""

    step_s: float = 0.0

    def complete(self, request: CompletionRequest) -> Completion:
        line = request.prefix.rpartition("\n")[2]
        match line:
            case "panic":
                raise Panic(line)
            case "fail":
                raise ZeroDivisionError(line)
            case "forget memory":
                raise MemoryError
            case "hang":
                re.match(r"(a+)+$", "a" * 64 + "b")
        steps = 200 if line == "slow" else 1
        for _ in range(steps):
            time.sleep(self.step_s or (0.005 if line == "slow" else 0.0))
            if request.cancellation.is_cancelled:
                raise CancelledError
        return Completion(f"{line}!", 0, CompletionStats())


def load_scripted(settings: Settings, on_tokens: OnTokens) -> Load:
    """Loads in no time, with one token per character."""

    def load(_report: Progress, _should_stop: Callable[[], bool]) -> Completer:
        on_tokens(TokenSource("characters", lambda texts: [[ord(c) % 1000 for c in text] for text in texts]))
        return ScriptedEngine()

    return load


def load_beside_servers(settings: Settings, on_tokens: OnTokens) -> Load:
    """The target on a team's servers where the settings name some, else the scripted engine."""
    return (MachineModels().load_for if settings.remote.url else load_scripted)(settings, on_tokens)


class Threads:
    """Those with such names that have begun since; earlier tests may have left some that wait for ever."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._before = set(threading.enumerate())

    def __len__(self) -> int:
        return sum(one.name.startswith(self._names) for one in set(threading.enumerate()) - self._before)


class Raw:
    """The sink that a server writes to without a host: bytes as they are."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)

    def flush(self) -> None:
        pass


@dataclass(eq=False)
class Window:
    """The editor's side of one conversation; `answers` by id, `heard` in order."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    answers: dict[Any, Any] = field(default_factory=dict)
    heard: list[dict[str, Any]] = field(default_factory=list)
    answers_requests: bool = True
    numbers: Any = field(default_factory=lambda: itertools.count(1))
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    reading: asyncio.Task[None] | None = None
    unpacking: asyncio.Task[None] | None = None

    def start_reading(self) -> None:
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while (message := await read_message(self.reader)) is not None:
                if "method" not in message:
                    self.answers[message["id"]] = message
                else:
                    self.heard.append(message)
                    if "id" in message and self.answers_requests:
                        self._say({"id": message["id"], "result": None})
                self.changed.set()
        except OSError:
            pass
        self.answers["end"] = True
        self.changed.set()

    def _say(self, message: dict[str, Any]) -> None:
        self.writer.write(encode({"jsonrpc": "2.0", **message}))

    def notify(self, method: str, params: Any) -> None:
        self._say({"method": method, "params": params})

    def answer_request(self, number: Any, result: Any) -> None:
        """Answer a request of the server."""
        self._say({"id": number, "result": result})

    def send(self, method: str, params: Any) -> int:
        number = next(self.numbers)
        self._say({"id": number, "method": method, "params": params})
        return int(number)

    async def until(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            while not (found := condition()):
                self.changed.clear()
                await self.changed.wait()
        return found

    async def answer(self, number: int) -> Any:
        """What came for a request: its result, or its error."""
        message = await self.until(lambda: self.answers.get(number) or self.answers.get("end"))
        if message is True:
            raise ConnectionResetError("the server has gone")
        return message.get("result", message.get("error"))

    async def request(self, method: str, params: Any = None) -> Any:
        return await self.answer(self.send(method, params))

    async def initialize(self, root: Path | None = None, **settings: Any) -> Any:
        folders = [{"uri": root.as_uri(), "name": root.name}] if root else None
        options = {
            "slipstream": {
                "deadlineMs": 0,
                "eagerness": 1,
                "index": {"enabled": root is not None},
                **settings,
            }
        }
        params = {"processId": None, "rootUri": None, "workspaceFolders": folders}
        return await self.request(
            "initialize", {**params, "capabilities": CAPABILITIES, "initializationOptions": options}
        )

    async def begin(self, root: Path | None = None, **settings: Any) -> None:
        """Shake hands, and wait for the engine."""
        await self.initialize(root, **settings)
        self.notify("initialized", {})
        while (await self.request("slipstream/stats"))["state"] != "ready":  # noqa: ASYNC110 - it is asked
            await asyncio.sleep(0.005)

    def open(self, uri: str, text: str) -> None:
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, *changes: dict[str, Any], version: int = 2) -> None:
        identifier = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": list(changes)})

    def ask(self, uri: str, line: int, column: int) -> int:
        return self.send("textDocument/inlineCompletion", place(uri, line, column, triggerKind=2))

    async def suggest(self, uri: str, line: int, column: int) -> list[str]:
        result = await self.answer(self.ask(uri, line, column))
        return [item["insertText"] for item in result["items"]]

    async def why(self, uri: str, line: int, column: int) -> Any:
        return await self.request("slipstream/why", place(uri, line, column))

    async def suggest_when_loaded(self, uri: str, line: int, column: int) -> list[str]:
        """Return the suggestions, once the engine is loaded."""
        for _ in range(2000):
            if found := await self.suggest(uri, line, column):
                return found
            if (await self.why(uri, line, column))["rule"] != "engine-loading":
                break
        return []

    @property
    def shown(self) -> list[str]:
        """The messages to the user so far."""
        return [it["params"]["message"] for it in self.heard if it["method"] == "window/showMessage"]

    async def end(self) -> None:
        """Go in order."""
        await self.request("shutdown")
        self.notify("exit", None)

    async def close(self) -> None:
        self.writer.close()
        if self.unpacking is not None:
            await self.unpacking
        if self.reading is not None:
            await self.reading

    def vanish(self) -> None:
        """Go as a killed editor does."""
        self.writer.transport.abort()


STARTED: list[subprocess.Popen[bytes]] = []
_start_host = relay._start_host


def _start_and_keep(*arguments: Any) -> subprocess.Popen[bytes]:
    """A relay forgets the host that it started, and ends; a process that goes on has to collect it."""
    STARTED.append(_start_host(*arguments))
    return STARTED[-1]


relay._start_host = _start_and_keep


async def window_at_host(environment: Mapping[str, str], *, reads: bool = True) -> Window:
    """A window at the host of this environment, which is started where there is none."""
    connection = await asyncio.to_thread(relay.connect, environment)
    blocks, writer = await asyncio.open_connection(sock=connection)
    messages = asyncio.StreamReader(limit=1 << 26)
    window = Window(messages, writer)

    async def unpack() -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while num_bytes := int.from_bytes(await blocks.readexactly(4), "big"):
                messages.feed_data(await blocks.readexactly(num_bytes))
        messages.feed_eof()

    if reads:
        window.unpacking = asyncio.create_task(unpack())
        window.start_reading()
    return window


def place(uri: str, line: int, column: int, **context: Any) -> dict[str, Any]:
    position = {"line": line, "character": column}
    return {"textDocument": {"uri": uri}, "position": position, **({"context": context} if context else {})}


def insertion(line: int, column: int, text: str) -> dict[str, Any]:
    return replacement(line, column, column, text)


def replacement(line: int, start: int, end: int, text: str) -> dict[str, Any]:
    ends = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"range": ends, "text": text}


CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {"inlineCompletion": {}},
    "workspace": {"configuration": False, "didChangeWatchedFiles": {"dynamicRegistration": True}},
    "window": {"workDoneProgress": True},
}


@dataclass
class Windows:
    """Servers on one pool; `servers` is emptied by tests that watch them go."""

    pool: EnginePool
    servers: list[SlipstreamServer] = field(default_factory=list)
    serving: list[asyncio.Task[int]] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)

    async def open(self, *, reads: bool = True) -> Window:
        """One more window and its server; one that does not read leaves everything unread."""
        theirs, ours = socket.socketpair()
        server = SlipstreamServer("0", self.pool, len(self.servers) + 1)
        register(server)
        self.servers.append(server)
        self.serving.append(asyncio.create_task(self._serve(server, theirs)))
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 26)
        window = Window(reader, writer)
        self.windows.append(window)
        if reads:
            window.start_reading()
        return window

    async def begun(self, root: Path | None = None, **settings: Any) -> Window:
        """One more window, whose engine is loaded."""
        window = await self.open()
        await window.begin(root, **settings)
        return window

    async def _serve(self, server: SlipstreamServer, connection: socket.socket) -> int:
        with connection, connection.makefile("rb") as stdin:
            try:
                return await server.serve(stdin, Raw(connection))
            finally:
                connection.shutdown(socket.SHUT_RDWR)


@asynccontextmanager
async def windows_on(
    load_for: Any = load_scripted, linger_s: float = 60.0, chooser: Chooser | None = None
) -> AsyncIterator[Windows]:
    """Windows that end with the test."""
    windows = Windows(EnginePool(load_for, linger_s, chooser))
    try:
        yield windows
    finally:
        for task in windows.serving:
            task.cancel()
        await asyncio.gather(*windows.serving, return_exceptions=True)
        await asyncio.to_thread(windows.pool.stop, 5.0)
        for window in windows.windows:
            await window.close()


@asynccontextmanager
async def one_window(
    root: Path | None = None, *, load_for: Any = load_scripted, **settings: Any
) -> AsyncIterator[Window]:
    """A window that has shaken hands, whose engine is loaded, and which goes in order."""
    async with windows_on(load_for) as windows:
        window = await windows.begun(root, **settings)
        yield window
        await window.end()
