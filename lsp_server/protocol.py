"""The JSON-RPC side of pygls, adapted: every request is answered once, whatever is wrong with it.

Owns message parsing, custom methods and the end of the conversation. Must not know what any method does.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Generator
from typing import Any

import attrs
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, lsp_method

logger = logging.getLogger(__name__)

# pygls keeps its own copy of each text, at the price of the whole text per keystroke; ours replaces it.
_OWN_METHODS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
)


@attrs.define
class CustomNotification:
    """A notification outside of the standard; `params` are plain JSON values."""

    method: str
    params: Any = None
    jsonrpc: str = "2.0"


@attrs.define
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

    def receive(self, body: bytes) -> None:
        """Handle one message. What cannot be handled is answered with an error where it has an id."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._refuse(None, JsonRpcParseError(f"The message is not JSON: {error}"))
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            self._refuse(None, JsonRpcInvalidRequest("The message is no JSON-RPC 2.0 object."))
        elif not isinstance(message.get("id", 0), int | str):
            self._refuse(None, JsonRpcInvalidRequest("A message's id is a number or a string."))
        elif "method" not in message:
            self._receive_response(message)
        else:
            self._receive_call(message)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """The message as a typed value; custom ones keep their parameters as they came.

        Raises JsonRpcException when it is no message.
        """
        method, params = data.get("method"), data.get("params")
        if method is None or method in types.METHOD_TO_TYPES:
            return super().structure_message(data)
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
        if self.is_shut_down:
            raise JsonRpcInvalidRequest("The server is shutting down.")
        if self.is_initialized == (method == types.INITIALIZE):
            problem = "is initialized already" if self.is_initialized else "has not been initialized yet"
            raise JsonRpcServerNotInitialized(f"The server {problem}.")

    def _refuse(self, request_id: int | str | None, error: JsonRpcException) -> None:
        # The standard wants an `id` of null, which the typed message would leave out.
        response = {"code": error.code, "message": error.message}
        self._send_data({"jsonrpc": self.VERSION, "id": request_id, "error": response})
