"""A language client: starts a server as a child process and speaks the protocol with it over its streams.

Owns the child process, request ids and document versions. Like an editor, it is the other end of the wire, so
it does not use the server's code or pygls.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from completion_engine.errors import DataError, MachineError
from lsp_server.protocol.framing import (
    METHOD_NOT_FOUND,
    OWN_CLIENT,
    Message,
    ResponseError,
    encode,
    read_message,
)
from lsp_server.workspace.documents import PositionEncoding

AUTOMATIC, INVOKED = 2, 1  # trigger kinds of requests: after a key, or by one that asks
_NUM_STDERR_LINES = 200  # the last lines of the server's standard error, to explain why it ended
_IS_DYNAMIC = {"dynamicRegistration": True}
_CAPABILITIES: Message = {
    "textDocument": {
        "synchronization": {**_IS_DYNAMIC, "didSave": True},
        "completion": {"completionItem": {"snippetSupport": False}},
        "inlineCompletion": _IS_DYNAMIC,
    },
    "window": {"workDoneProgress": True},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": _IS_DYNAMIC,
        "didChangeWatchedFiles": _IS_DYNAMIC,
    },
}
_ANSWERED_WITH_NOTHING = {
    "client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create",
    "window/showMessageRequest",
}  # fmt: skip


class ServerGoneError(MachineError):
    """The server process ended, or does not speak the protocol."""


class PendingRequest(NamedTuple):
    """A request without an answer yet: its id, to cancel it, and its answer, to await."""

    id: int
    answer: asyncio.Future[Any]

    def __await__(self) -> Any:
        return self.answer.__await__()


class LanguageClient:
    """One conversation with one server process.

    `start`, `initialize`, then requests and notifications, then `shutdown`. As an async context manager it
    ends the process in any case.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("the process must be started with pipes")
        self.process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._next_id = 0
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._handlers: dict[str, list[Callable[[Any], None]]] = {}
        self._versions: dict[str, int] = {}
        self._settings: Mapping[str, Any] = {}
        self._gone: str = ""
        self.stderr_lines: deque[str] = deque(maxlen=_NUM_STDERR_LINES)
        self._tasks = [asyncio.create_task(self._read_loop()), asyncio.create_task(self._read_stderr())]

    @classmethod
    async def start(
        cls, argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> LanguageClient:
        """Start the server `argv` in `cwd`; `env` is added to the environment. Raises ServerGoneError."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, cwd=cwd, env={**os.environ, **(env or {})}, stdin=pipe, stdout=pipe, stderr=pipe
            )
        except OSError as error:
            raise ServerGoneError(f"The server cannot be started: {error}.") from error
        return cls(process)

    async def __aenter__(self) -> LanguageClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()

    async def initialize(
        self,
        root: Path | None,
        *,
        position_encoding: PositionEncoding = "utf-16",
        settings: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        name: str = OWN_CLIENT,
    ) -> Message:
        """Initialize the server with the `slipstream` settings; returns its InitializeResult.

        `capabilities` replaces top-level groups of the default capabilities.
        """
        self._settings = settings or {}
        encodings = list(dict.fromkeys((position_encoding, "utf-16")))
        params = {
            "processId": os.getpid(),
            "clientInfo": {"name": name},
            "rootUri": root.as_uri() if root else None,
            "workspaceFolders": [{"uri": root.as_uri(), "name": root.name}] if root else None,
            "capabilities": {
                "general": {"positionEncodings": encodings},
                **_CAPABILITIES,
                **(capabilities or {}),
            },
            "initializationOptions": {"slipstream": dict(self._settings)},
        }
        result = await self.request("initialize", params)
        self.notify("initialized", {})
        return dict(result)

    @property
    def has_ended(self) -> bool:
        """Whether the conversation is over."""
        return bool(self._gone) or self.process.returncode is not None

    def has_open(self, uri: str) -> bool:
        """Return whether a document is open."""
        return uri in self._versions

    def open(self, uri: str, text: str, *, language: str) -> None:
        """Open a document as version 1."""
        self._versions[uri] = 1
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, changes: Sequence[Message]) -> int:
        """Send content changes (`{range, text}` or `{text}`); returns the document's new version."""
        self._versions[uri] += 1
        identifier = {"uri": uri, "version": self._versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": list(changes)})
        return self._versions[uri]

    def close(self, uri: str) -> None:
        """Close a document."""
        del self._versions[uri]
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def send(self, method: str, params: Any = None) -> PendingRequest:
        """Send a request without waiting for its answer.

        Awaiting it raises ResponseError for an error of the server, ServerGoneError when the server ends.
        """
        self._check_alive()
        self._next_id += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[self._next_id] = future
        self._write({"id": self._next_id, "method": method, "params": params})
        return PendingRequest(self._next_id, future)

    async def request(self, method: str, params: Any = None) -> Any:
        """Send a request and wait for its result. Raises as `send` does."""
        return await self.send(method, params)

    def ask(self, uri: str, position: Mapping[str, int], kind: int = AUTOMATIC) -> PendingRequest:
        """Request a suggestion, by default as after a key. Raises as `send` does."""
        place = {"textDocument": {"uri": uri}, "position": dict(position)}
        return self.send("textDocument/inlineCompletion", {**place, "context": {"triggerKind": kind}})

    def cancel(self, request_id: int) -> None:
        """Cancel a request; the server still answers it, usually with an error."""
        self.notify("$/cancelRequest", {"id": request_id})

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self._check_alive()
        self._write({"method": method, "params": params})

    def on_notification(self, method: str, handler: Callable[[Any], None]) -> Callable[[], None]:
        """Call `handler(params)` for each notification `method`, until the returned function is called."""
        handlers = self._handlers.setdefault(method, [])
        handlers.append(handler)
        return lambda: handlers.remove(handler)

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Change the `slipstream` settings and notify the server, as an editor does."""
        self._settings = settings
        self.notify("workspace/didChangeConfiguration", {"settings": {"slipstream": dict(settings)}})

    async def shutdown(self, *, timeout_s: float = 10.0) -> int:
        """End the conversation and the process, by force after `timeout_s`; returns its exit code.

        Safe to call twice, and when the server has ended.
        """
        with contextlib.suppress(ServerGoneError, ResponseError, TimeoutError, ConnectionError):
            async with asyncio.timeout(timeout_s):
                await self.request("shutdown")
                self.notify("exit")
                await self.process.wait()
        if self._gone:
            # Its pipes are closed, so it is ending by itself: a kill now would lose its exit code.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), min(timeout_s, 1.0))
        with contextlib.suppress(ProcessLookupError):
            if self.process.returncode is None:
                self.process.kill()
        code = await self.process.wait()
        self._stdin.close()
        with contextlib.suppress(ConnectionError):
            await self._stdin.wait_closed()
        await asyncio.gather(*self._tasks)
        return code

    def _write(self, message: Message) -> None:
        self._stdin.write(encode({"jsonrpc": "2.0", **message}))

    def _check_alive(self) -> None:
        if self.has_ended:
            raise self._gone_error()

    def _gone_error(self) -> ServerGoneError:
        last_words = "\n".join(list(self.stderr_lines)[-8:])
        return ServerGoneError(self._gone or "The server has ended.", advice=last_words)

    async def _read_loop(self) -> None:
        try:
            while message := await read_message(self._stdout):
                self._receive(message)
        except (DataError, OSError) as error:
            self._gone = f"The server does not speak the protocol: {error}"
        finally:
            self._gone = self._gone or "The server has ended."
            for future in self._pending.values():
                _resolve(future, error=self._gone_error())
            self._pending.clear()

    async def _read_stderr(self) -> None:
        rest = b""
        while chunk := await self._stderr.read(65536):  # a line may be longer than the reader's limit
            *lines, rest = (rest + chunk).split(b"\n")
            self.stderr_lines.extend(line.decode("utf-8", "replace") for line in lines)
        if rest:
            self.stderr_lines.append(rest.decode("utf-8", "replace"))

    def _receive(self, message: Message) -> None:
        if "method" not in message:
            if future := self._pending.pop(message.get("id", -1), None):
                error = message.get("error")
                failed = error and ResponseError(error["code"], error["message"], error.get("data"))
                _resolve(future, message.get("result"), failed)
        elif "id" in message:
            self._write({"id": message["id"], **self._answer(message["method"], message.get("params"))})
        else:
            for handler in tuple(self._handlers.get(message["method"], ())):
                handler(message.get("params"))

    def _answer(self, method: str, params: Any) -> Message:
        """The answer of an editor to a request of the server."""
        if method == "workspace/configuration":
            own = {"slipstream": dict(self._settings)}
            sections = [item.get("section") for item in params["items"]]
            return {"result": [own.get(section) if section else own for section in sections]}
        if method in _ANSWERED_WITH_NOTHING:
            return {"result": None}
        return {"error": {"code": METHOD_NOT_FOUND, "message": f"unknown method {method}"}}


def _resolve(future: asyncio.Future[Any], result: Any = None, error: Exception | None = None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
        future.exception()  # it may be awaited by no task
