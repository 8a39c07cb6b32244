"""A language client: starts a server as a child process and speaks the protocol with it over its streams.

Owns the child process, request ids and document versions. Must not know what the server computes, nor
pygls: it is the other end of the wire, as an editor is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from completion_engine.errors import DataError, MachineError
from lsp_server.protocol.framing import METHOD_NOT_FOUND, Message, ResponseError, encode, read_message
from lsp_server.workspace.positions import PositionEncoding

NotificationHandler = Callable[[Any], None]

_NUM_STDERR_LINES = 200  # the last lines of the server's standard error, to explain why it ended
_NUM_ADVICE_LINES = 8


class ServerGoneError(MachineError):
    """The server process ended, or does not speak the protocol."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
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
        self._process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._next_id = 0
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._handlers: dict[str, list[NotificationHandler]] = {}
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

    @property
    def process_id(self) -> int:
        """The server's process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The server's exit code, None while it runs."""
        return self._process.returncode

    async def initialize(
        self,
        root: Path | None,
        *,
        position_encoding: PositionEncoding = "utf-16",
        settings: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> Message:
        """Initialize the server with the `slipstream` settings; returns its InitializeResult.

        `capabilities` replaces top-level groups of the default capabilities.
        """
        self._settings = settings or {}
        result = await self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "clientInfo": {"name": "slipstream-client"},
                "rootUri": root.as_uri() if root else None,
                "workspaceFolders": [{"uri": root.as_uri(), "name": root.name}] if root else None,
                "capabilities": {**_default_capabilities(position_encoding), **(capabilities or {})},
                "initializationOptions": {"slipstream": dict(self._settings)},
            },
        )
        self.notify("initialized", {})
        return dict(result)

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

    def cancel(self, request_id: int) -> None:
        """Cancel a request; the server still answers it, usually with an error."""
        self.notify("$/cancelRequest", {"id": request_id})

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self._check_alive()
        self._write({"method": method, "params": params})

    def on_notification(self, method: str, handler: NotificationHandler) -> None:
        """Call `handler(params)` for each notification `method` from now on."""
        self._handlers.setdefault(method, []).append(handler)

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Change the `slipstream` settings and notify the server, as an editor does."""
        self._settings = settings
        self.notify("workspace/didChangeConfiguration", {"settings": {"slipstream": dict(settings)}})

    async def shutdown(self, *, timeout_s: float = 10.0) -> int:
        """End the conversation and the process, by force after `timeout_s`. Returns its exit code.

        Safe to call twice, and when the server has ended.
        """
        with contextlib.suppress(ServerGoneError, ResponseError, TimeoutError, ConnectionError):
            async with asyncio.timeout(timeout_s):
                await self.request("shutdown")
                self.notify("exit")
                await self._process.wait()
        if self._gone:
            # Its pipes are closed, so it is ending by itself: a kill now would lose its exit code.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), min(timeout_s, 1.0))
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        code = await self._process.wait()
        self._stdin.close()
        with contextlib.suppress(ConnectionError):
            await self._stdin.wait_closed()
        await asyncio.gather(*self._tasks)
        return code

    def _write(self, message: Message) -> None:
        self._stdin.write(encode({"jsonrpc": "2.0", **message}))

    def _check_alive(self) -> None:
        if self._gone or self._process.returncode is not None:
            raise self._gone_error()

    def _gone_error(self) -> ServerGoneError:
        last_words = "\n".join(list(self.stderr_lines)[-_NUM_ADVICE_LINES:])
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
                if not future.done():
                    future.set_exception(self._gone_error())
                    future.exception()  # its answer may be awaited by no task
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
            self._resolve(message)
        elif "id" in message:
            self._write({"id": message["id"], **self._answer(message["method"], message.get("params"))})
        else:
            for handler in self._handlers.get(message["method"], ()):
                handler(message.get("params"))

    def _resolve(self, message: Message) -> None:
        future = self._pending.pop(message.get("id", -1), None)
        if future is None or future.done():
            return
        if error := message.get("error"):
            future.set_exception(ResponseError(error["code"], error["message"], error.get("data")))
            future.exception()  # a cancelled request may be awaited by no task
        else:
            future.set_result(message.get("result"))

    def _answer(self, method: str, params: Any) -> Message:
        """The answer of an editor to a request of the server."""
        match method:
            case "workspace/configuration":
                return {"result": [self._section(item.get("section")) for item in params["items"]]}
            case (
                "client/registerCapability"
                | "client/unregisterCapability"
                | "window/workDoneProgress/create"
                | "window/showMessageRequest"
            ):
                return {"result": None}
        return {"error": {"code": METHOD_NOT_FOUND, "message": f"unknown method {method}"}}

    def _section(self, section: str | None) -> Any:
        if section == "slipstream":
            return dict(self._settings)
        return None if section else {"slipstream": dict(self._settings)}


def _default_capabilities(position_encoding: PositionEncoding) -> Message:
    """The capabilities of an editor with inline completion that prefers `position_encoding`."""
    is_dynamic = {"dynamicRegistration": True}
    return {
        "general": {"positionEncodings": list(dict.fromkeys((position_encoding, "utf-16")))},
        "textDocument": {
            "synchronization": {**is_dynamic, "didSave": True},
            "completion": {"completionItem": {"snippetSupport": False}},
            "inlineCompletion": is_dynamic,
        },
        "window": {"workDoneProgress": True},
        "workspace": {
            "configuration": True,
            "workspaceFolders": True,
            "didChangeConfiguration": is_dynamic,
            "didChangeWatchedFiles": is_dynamic,
        },
    }
