"""The JSON-RPC side of pygls, adapted: every request is answered once, whatever is wrong with it.

Owns message parsing, custom methods and the end of the conversation. Must not know what any method does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from dataclasses import dataclass
from functools import cache
from typing import Any

from cattrs import Converter
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    _params_field_structure_hook,
    _result_field_structure_hook,
    lsp_method,
)

from lsp_server.protocol.parsing import Unparsed

logger = logging.getLogger(__name__)

# pygls keeps its own copy of each text, at the price of the whole text per keystroke, and its own list of
# folders, without a bound; ours replace them. Notebooks come as their cells.
_OWN_METHODS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
)

_INLINE = types.TEXT_DOCUMENT_INLINE_COMPLETION
_TRIGGERS = tuple(kind.value for kind in types.InlineCompletionTriggerKind)

# A client that has so many messages under way at the same time is read on when some of them are done.
MAX_UNDER_WAY = 256
MAX_ASKED = 1024
UNDER_WAY_STEP_S = 1.0
# Handlers that were done are looked through when there are more than this.
MAX_KEPT = 64


@cache
def converter() -> Converter:
    """As pygls makes it, but the first wrong value ends it: a report of all of them takes seconds.

    One for all servers: it writes code of its own for each type of message, in tens of milliseconds.
    """
    made: Converter = get_converter(Converter(detailed_validation=False))
    made.register_structure_hook(JsonRPCRequestMessage, _params_field_structure_hook)
    made.register_structure_hook(JsonRPCResponseMessage, _result_field_structure_hook)
    made.register_structure_hook(JsonRPCNotification, _params_field_structure_hook)
    return made


@dataclass(slots=True)
class CustomNotification:
    """A notification outside of the standard; `params` are plain JSON values."""

    method: str
    params: Any = None
    jsonrpc: str = "2.0"


@dataclass(slots=True)
class CustomRequest:
    """A request outside of the standard; `params` are plain JSON values."""

    id: int | str
    method: str
    params: Any = None
    jsonrpc: str = "2.0"


class SlipstreamProtocol(LanguageServerProtocol):
    """One conversation with one client.

    `is_shut_down` after the client's `shutdown`, `has_exited` after its `exit`.
    """

    has_exited = False
    is_initialized = False

    @property
    def is_shut_down(self) -> bool:
        """Whether the client asked for the end: nothing but `exit` may follow."""
        return bool(self._shutdown)

    def receive(self, message: Any) -> None:
        """Handle one parsed message. What cannot be handled is answered with an error where it has an id."""
        if isinstance(message, Unparsed):
            self._refuse(None, JsonRpcParseError(f"The message is not JSON: {message.reason}"))
        elif not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            self._refuse(None, JsonRpcInvalidRequest("The message is no JSON-RPC 2.0 object."))
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
        """Wait until few enough messages are under way to take another one.

        What waits for the client's own answer counts little: that answer has to be read.
        """
        while True:
            handlers = self._handlers_under_way()
            num_asked = len(self._request_futures.keys() & self._result_types.keys())
            if len(handlers) < MAX_UNDER_WAY + min(num_asked, MAX_ASKED):
                return
            await asyncio.wait(handlers, timeout=UNDER_WAY_STEP_S, return_when=asyncio.FIRST_COMPLETED)

    async def end(self, timeout_s: float) -> None:
        """Give up what is under way, in both directions: no handler takes a further step after this."""
        handlers = self._handlers_under_way()
        for future in tuple(self._request_futures.values()):
            future.cancel()
        if handlers:
            await asyncio.wait(handlers, timeout=timeout_s)

    def let_go(self) -> None:
        """Forget the handlers: nothing of the server is reachable from here, nor from a handler, any more."""
        for known in (self.fm.features, self.fm.builtin_features, self.fm.commands, self.fm.feature_options):
            known.clear()
        self._request_futures.clear()
        self._result_types.clear()

    def structure_message(self, data: dict[str, Any]) -> Any:
        """The message as a typed value; custom ones keep their parameters as they came.

        Raises JsonRpcException when it is no message.
        """
        method, params = data.get("method"), data.get("params")
        if method is None or method in types.METHOD_TO_TYPES:
            try:
                return super().structure_message(_with_context(data) if method == _INLINE else data)
            except JsonRpcInternalError as error:  # what is no value of its type, as `converter` tells it
                raise JsonRpcInvalidParams from error
        return (
            CustomRequest(data["id"], method, params) if "id" in data else CustomNotification(method, params)
        )

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_args: Any) -> Generator[Any, Any, None]:
        """The client has gone; the main loop ends after this message."""
        self.has_exited = True
        yield from ()

    def _register_builtin_features(self) -> None:
        super()._register_builtin_features()  # type: ignore[no-untyped-call]  # pygls has no types here
        for method in _OWN_METHODS:
            del self.fm.builtin_features[method]

    def _handlers_under_way(self) -> list[asyncio.Future[Any]]:
        """What waits for other threads or for the client; pygls itself forgets none that is done."""
        if len(self._request_futures) > MAX_KEPT:
            self._request_futures = {id_: it for id_, it in self._request_futures.items() if not it.done()}
        futures: list[Any] = list(self._request_futures.values())
        return [it for it in futures if isinstance(it, asyncio.Future) and not it.done()]

    def _receive_call(self, message: dict[str, Any]) -> None:
        """Handle a request or a notification."""
        is_request, method = "id" in message, message["method"]
        try:
            if not isinstance(method, str):
                raise JsonRpcInvalidRequest("A method's name is a string.")
            self._check_order(method, is_request=is_request)
            structured = self.structure_message(message)
        except JsonRpcException as error:
            logger.warning("A message is not understood: %.200s: %s", method, error)
            if is_request:
                self._refuse(message["id"], error)
            return
        try:
            self.handle_message(structured)
        except Exception:
            # Requests are answered by pygls whatever happens; notifications of an odd shape end up here.
            logger.exception("A message could not be handled: %.200s", method)
        self.is_initialized |= method == types.INITIALIZE

    def _receive_response(self, message: dict[str, Any]) -> None:
        """Settle a request of ours; an answer that makes no sense settles it as an error."""
        if message.get("id") not in self._request_futures:
            return
        try:
            structured = self.structure_message(message)
        except JsonRpcException as error:
            self._handle_response(message["id"], error=error.to_response_error())
        else:
            self.handle_message(structured)

    def _check_order(self, method: str, *, is_request: bool) -> None:
        if not is_request:
            return
        if _is_notification(method):  # it would be handled and never answered
            raise JsonRpcInvalidRequest(f"{method} is a notification: it has no id.")
        if self.is_shut_down:
            raise JsonRpcInvalidRequest("The server is shutting down.")
        if self.is_initialized == (method == types.INITIALIZE):
            problem = "is initialized already" if self.is_initialized else "has not been initialized yet"
            raise JsonRpcServerNotInitialized(f"The server {problem}.")

    def _refuse(self, request_id: int | str | None, error: JsonRpcException) -> None:
        # The standard wants an `id` of null, which the typed message would leave out.
        response = {"code": error.code, "message": error.message}
        self._send_data({"jsonrpc": self.VERSION, "id": request_id, "error": response})


def _with_context(message: dict[str, Any]) -> dict[str, Any]:
    """An inline completion request with a valid trigger: drafts of the protocol had other numbers, or none.

    A missing context counts as typing, and an unknown trigger as an explicit request.
    """
    params = message.get("params")
    if not isinstance(params, dict):
        return message
    context = params.get("context")
    if context is None:
        context = {"triggerKind": types.InlineCompletionTriggerKind.Automatic.value}
    elif isinstance(context, dict) and context.get("triggerKind") not in _TRIGGERS:
        context = {**context, "triggerKind": types.InlineCompletionTriggerKind.Invoked.value}
    return {**message, "params": {**params, "context": context}}


def _is_notification(method: str) -> bool:
    """Whether the standard names a method that has no answer."""
    _, response, *_ = types.METHOD_TO_TYPES.get(method, (None, object))
    return response is None
