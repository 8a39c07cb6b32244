"""The JSON-RPC side of pygls, adapted: every request is answered exactly once.

Owns message validation, custom methods, running requests and the end of the conversation. Does not depend on
the methods' meaning.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from concurrent.futures import Future
from inspect import iscoroutinefunction
from typing import Any
from uuid import uuid4

from cattrs import Converter
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import JsonRPCNotification, JsonRPCRequestMessage, LanguageServerProtocol, lsp_method

from lsp_server.protocol.framing import encode
from lsp_server.protocol.parsing import Unparsed, adapted

logger = logging.getLogger(__name__)

# pygls keeps its own copy of each text, at the price of the whole text per keystroke, and its own list of
# folders, without a bound; ours replace them. Notebooks come as their cells. It also keeps a future of each
# command, and of each change of the trace, which the client may send without end.
_OWN_METHODS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
    types.WORKSPACE_EXECUTE_COMMAND,
    types.WINDOW_WORK_DONE_PROGRESS_CANCEL,
    types.SET_TRACE,
)

_LONG = types.WORKSPACE_DID_CHANGE_WATCHED_FILES  # 20,000 events as typed values take 0.1 s
_UNANSWERED_COMMAND = "slipstream/executeCommand"  # one without an id, as some clients send it

# At this number of running messages, the server stops reading the client until some are done.
MAX_UNDER_WAY = 256
MAX_ASKED = 1024
UNDER_WAY_STEP_S = 1.0


class SlipstreamProtocol(LanguageServerProtocol):
    """One conversation with one client.

    `is_shut_down` after the client's `shutdown`, `has_exited` after its `exit`. `on_unhandled` receives each
    notification that is not understood or whose handler fails.
    """

    has_exited = False
    has_ended = False
    is_initialized = False
    is_shut_down = False

    def __init__(self, server: Any, converter: Converter) -> None:
        super().__init__(server, converter)
        self.on_unhandled: Callable[[dict[str, Any]], None] = lambda _message: None
        self._has_failed = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._asked: dict[int | str, Future[Any]] = {}
        for method in _OWN_METHODS:
            del self.fm.builtin_features[method]

    def receive(self, message: Any) -> None:
        """Handle one parsed message. If it cannot be handled and has an id, the answer is an error."""
        if isinstance(message, Unparsed):
            self._refuse(None, JsonRpcParseError(f"The message is not JSON: {message.reason}"))
        elif not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            self._refuse(None, JsonRpcInvalidRequest("The message is not a JSON-RPC 2.0 object."))
        elif not isinstance(message.get("id", 0), int | str):
            self._refuse(None, JsonRpcInvalidRequest("A message's id is a number or a string."))
        elif "method" not in message:
            self._receive_response(message)
        else:
            self._receive_call(message)

    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]  # see below
        """As pygls has it, without its cache: that one would keep every protocol ever asked alive."""
        return types.METHOD_TO_TYPES.get(method, (None,))[0]

    def get_result_type(self, method: str) -> type[Any] | None:  # type: ignore[override]  # as above
        """See `get_message_type`."""
        return types.METHOD_TO_TYPES.get(method, (None, None))[1]

    async def has_room(self) -> None:
        """Wait until few enough messages run to take another one.

        Messages that wait for the client's own answer count little, because that answer has to be read.
        """
        while len(self._tasks) >= MAX_UNDER_WAY + min(len(self._asked), MAX_ASKED):
            await asyncio.wait(self._tasks, timeout=UNDER_WAY_STEP_S, return_when=asyncio.FIRST_COMPLETED)

    async def end(self, timeout_s: float) -> None:
        """Give up what is under way, in both directions: no handler takes a further step after this."""
        self.has_ended = True
        for task in self._tasks:
            task.cancel()
        for future in tuple(self._asked.values()):
            future.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)

    def release(self) -> None:
        """Forget the handlers: nothing of the server is reachable from here, nor from a handler, any more."""
        for known in (self.fm.features, self.fm.builtin_features, self.fm.commands, self.fm.feature_options):
            known.clear()

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return the message as a typed value; custom and long ones keep their parameters as they came.

        Raises JsonRpcException if it is not a message.
        """
        method, params = data.get("method"), data.get("params")
        if method is None or (method in types.METHOD_TO_TYPES and method != _LONG):
            try:
                if method == types.WORKSPACE_EXECUTE_COMMAND and "id" not in data:
                    request = super().structure_message({**data, "id": 0})
                    return JsonRPCNotification(_UNANSWERED_COMMAND, self.VERSION, request.params)
                return super().structure_message(adapted(data))
            except JsonRpcInternalError as error:  # a value of the wrong type, by `converter`
                raise JsonRpcInvalidParams from error
        if "id" in data:
            return JsonRPCRequestMessage(data["id"], method, self.VERSION, params)
        return JsonRPCNotification(method, self.VERSION, params)

    def connect(self, method: str, handler: Callable[[Any], Any], options: Any = None) -> None:
        """Have `handler(params)` answer a method; one that waits is cancelled with its request."""

        def begin(params: Any) -> None:
            task = asyncio.get_running_loop().create_task(handler(params))
            self._tasks.add(task)
            task.add_done_callback(lambda task: self._finish(method, task))

        async def answer(params: Any) -> Any:
            task = asyncio.current_task()
            if self.has_ended or task is None:
                raise asyncio.CancelledError
            self._tasks.add(task)
            try:
                return await handler(params)
            finally:
                self._tasks.discard(task)

        def handle(params: Any) -> Any:
            try:
                return handler(params)
            except Exception:  # pygls reports it, and returns as if all were well
                self._has_failed = True
                raise

        if method == types.WORKSPACE_EXECUTE_COMMAND:
            self.fm.feature(_UNANSWERED_COMMAND)(begin)
        waiting = begin if _is_notification(method) else answer
        self.fm.feature(method, options)(waiting if iscoroutinefunction(handler) else handle)

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: int | str | None = None,
    ) -> Future[Any]:
        """Ask the client, as pygls does it."""
        number = uuid4().hex if msg_id is None else msg_id
        future: Future[Any] = super().send_request(method, params, callback, number)
        self._asked[number] = future
        future.add_done_callback(lambda _: self._asked.pop(number, None))
        return future

    async def ask(self, method: str, params: Any, timeout_s: float) -> Any:
        """Return the client's answer. Raises JsonRpcException for an error and for none in time."""
        number = uuid4().hex
        answer = asyncio.wrap_future(self.send_request(method, params, msg_id=number))
        try:
            await asyncio.wait([answer], timeout=timeout_s)
        except asyncio.CancelledError:
            answer.cancel()
            raise
        if not answer.done():
            self._fail(number, JsonRpcInternalError(f"There is no answer after {timeout_s:g} s."))
        return await answer

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """Add the commands to pygls' answer for the client; it knows only those that it runs itself."""
        result: types.InitializeResult = yield from super().lsp_initialize(params)
        options = self.fm.feature_options.get(types.WORKSPACE_EXECUTE_COMMAND)
        result.capabilities.execute_command_provider = options
        return result

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_args: Any) -> Generator[Any, Any, None]:
        """The client has gone; the main loop ends after this message."""
        self.has_exited = True
        yield from ()

    def _finish(self, method: str, task: asyncio.Task[Any]) -> None:
        """A notification is handled."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("%s: %s", method, error, exc_info=error)

    def _receive_call(self, message: dict[str, Any]) -> None:
        """Handle a request or a notification."""
        is_request, method = "id" in message, message["method"]
        try:
            if not isinstance(method, str):
                raise JsonRpcInvalidRequest("A method's name is a string.")
            if is_request:
                self._check_order(method)
            structured = self.structure_message(message)
        except JsonRpcException as error:
            logger.warning("A message is not understood: %.200s: %s", method, error)
            if is_request:
                self._refuse(message["id"], error)
            else:
                self.on_unhandled(message)
            return
        self._has_failed = False
        try:
            self.handle_message(structured)
        except Exception:
            # Requests are answered by pygls whatever happens; notifications of an odd shape end up here.
            logger.exception("A message could not be handled: %.200s", method)
            self._has_failed = True
        if self._has_failed and not is_request:
            self.on_unhandled(message)
        self.is_initialized |= method == types.INITIALIZE
        if method == types.SHUTDOWN and not self.is_shut_down:
            self.is_shut_down = True
            for task in self._tasks:
                task.cancel()

    def _receive_response(self, message: dict[str, Any]) -> None:
        """Resolve a request of the server. An invalid answer resolves it as an error."""
        if message.get("id") not in self._asked:
            return
        try:
            self.handle_message(self.structure_message(message))
        except JsonRpcException as error:
            self._fail(message["id"], error)

    def _check_order(self, method: str) -> None:
        if _is_notification(method):  # it would be handled and never answered
            raise JsonRpcInvalidRequest(f"{method} is a notification: it has no id.")
        if self.is_shut_down:
            raise JsonRpcInvalidRequest("The server is shutting down.")
        if self.is_initialized == (method == types.INITIALIZE):
            problem = "is initialized already" if self.is_initialized else "has not been initialized yet"
            raise JsonRpcServerNotInitialized(f"The server {problem}.")

    def _fail(self, request_id: int | str, error: JsonRpcException) -> None:
        """End a request to the client by an error, as if the client had sent it."""
        self.handle_message(self.structure_message(self._error(request_id, error)))

    def _refuse(self, request_id: int | str | None, error: JsonRpcException) -> None:
        if self.writer is not None:
            self.writer.write(encode(self._error(request_id, error)))

    def _error(self, request_id: int | str | None, error: JsonRpcException) -> dict[str, Any]:
        """Build the response; the standard wants an `id` of null, which the typed message leaves out."""
        return {"jsonrpc": "2.0", "id": request_id, "error": {"code": error.code, "message": error.message}}


def _is_notification(method: str) -> bool:
    """Whether the standard names a method that has no answer."""
    _, response, *_ = types.METHOD_TO_TYPES.get(method, (None, object))
    return response is None
