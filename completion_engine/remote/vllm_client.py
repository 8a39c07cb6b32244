"""A client of a team's vLLM servers at one address: whole answers, streamed ones, and reconnection.

Owns the connection and when there is another one. Used on one thread. Does not depend on documents.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from typing import Any

from completion_engine.errors import RemoteError
from completion_engine.remote.connection import Connection
from completion_engine.remote.endpoint import Endpoint
from completion_engine.remote.socket_transport import Address, Transport, Wait, Waker, addresses_of, silent
from completion_engine.remote.stream import Stream
from completion_engine.remote.token_stream import TokenStream, fault_of, rubbish, whole_body
from completion_engine.remote.vllm_request import (
    COMPLETIONS,
    MODELS,
    TOKENIZE,
    CompletionQuery,
    tokenize_body,
)
from completion_engine.request import CancelledError

_MAX_WHOLE_BYTES = 1 << 20
_MAX_MODELS, _MAX_NAME_CHARS = 1000, 200
_ELSEWHERE = frozenset({"unreachable", "silent"})  # another address of the host may work


class VllmClient:
    """The servers at `endpoint`. A wait ends when it is cancelled and `waker` is woken."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Resolve the host at the first request, and connect whenever there is not a usable connection."""
        self.endpoint = endpoint
        self.waker = Waker()
        self.num_connections = 0
        self._addresses: list[Address] = []
        self._opening: Transport | None = None
        self._connection: Connection | None = None

    def resolve(self) -> None:
        """Resolve the host; blocks as long as the system's resolver does. Raises RemoteError."""
        self._addresses = addresses_of(self.endpoint)

    def models(self, wait: Wait) -> dict[str, int]:
        """Return the servers' models by name, with the tokens that each takes. Raises RemoteError."""
        entries = self._whole("GET", MODELS, b"", wait).get("data")
        if not isinstance(entries, list):
            raise rubbish(self.endpoint.authority, "it is not a list of models")
        models: dict[str, int] = {}
        for entry in entries[:_MAX_MODELS]:
            fields = entry if isinstance(entry, dict) else {}
            name, num_positions = fields.get("id"), fields.get("max_model_len")
            if isinstance(name, str) and 0 < len(name) <= _MAX_NAME_CHARS and name.isprintable():
                models[name] = num_positions if type(num_positions) is int else 0
        return models

    def tokenize(self, model: str, text: str, wait: Wait) -> list[int]:
        """Return the servers' tokens of a text. Raises RemoteError."""
        tokens = self._whole("POST", TOKENIZE, tokenize_body(model, text), wait).get("tokens")
        if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
            raise rubbish(self.endpoint.authority, "it has no token ids")
        return tokens

    def complete(self, question: CompletionQuery, model: str, wait: Wait) -> TokenStream:
        """Send a query and return its streamed answer. Raises RemoteError, CancelledError."""
        more = {"accept": "text/event-stream"}
        if question.session:
            more["x-session-id"] = question.session
        stream = self._request("POST", COMPLETIONS, question.body(model), more, wait)
        return TokenStream(stream, self.endpoint.authority, question.max_tokens)

    def close(self) -> None:
        """Close the connection."""
        self.drop()
        self.waker.close()

    def drop(self) -> None:
        """Drop the connection; the next request makes a new one."""
        if self._opening is not None:
            self._opening.close()
            self._opening = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _whole(self, method: str, path: str, body: bytes, wait: Wait) -> dict[str, Any]:
        stream = self._request(method, path, body, {"accept": "application/json"}, wait)
        authority = self.endpoint.authority
        if not stream.wait_for_status(wait):
            stream.reset()
            raise silent(authority)
        if stream.status != 200:
            raise fault_of(stream, authority, wait)
        try:
            value = json.loads(whole_body(stream, authority, wait, _MAX_WHOLE_BYTES))
        except (ValueError, RecursionError) as error:
            raise rubbish(authority, "it is not JSON") from error
        if not isinstance(value, dict):
            raise rubbish(authority, "it is not a JSON object")
        return value

    def _request(self, method: str, path: str, body: bytes, more: Mapping[str, str], wait: Wait) -> Stream:
        headers = {"user-agent": "slipstream", **more}
        if body:
            headers |= {"content-type": "application/json", "content-length": str(len(body))}
        if self.endpoint.token:
            headers["authorization"] = f"Bearer {self.endpoint.token}"
        return self._connected(wait).request(method, self.endpoint.path + path, headers, body, wait)

    def _connected(self, wait: Wait) -> Connection:
        """Return a connection on which a stream can begin."""
        if self._connection is not None:
            with contextlib.suppress(RemoteError):
                self._connection.look()
            if self._connection.is_usable:
                return self._connection
            if not self._connection.num_streams:
                self._connection.close()
            self._connection = None
        transport = self._opened(wait)
        try:
            self._connection = Connection(transport, self.endpoint.authority, self.endpoint.scheme)
        except BaseException:
            transport.close()
            raise
        self.num_connections += 1
        return self._connection

    def _opened(self, wait: Wait) -> Transport:
        """Return an open transport; one that a cancellation left half open is continued."""
        if not self._addresses:
            self.resolve()
        if self._opening is not None and self._opening.is_late:
            self._leave_address()
        for num_others in reversed(range(len(self._addresses))):
            # Half of the remaining time: the next address has time too if this one swallows packets.
            share = wait.at_most(time.perf_counter() + wait.left_s / 2) if num_others else wait
            try:
                return self._opened_at(self._addresses[0], share)
            except RemoteError as error:
                if not num_others or wait.is_over or error.kind not in _ELSEWHERE:
                    raise
        raise AssertionError("a name has an address")

    def _opened_at(self, address: Address, wait: Wait) -> Transport:
        """See `_opened`; an address where that fails comes last."""
        try:
            transport = self._opening = self._opening or Transport(self.endpoint, address, self.waker)
            transport.open(wait)
        except CancelledError:
            raise
        except BaseException:
            self._leave_address()
            raise
        self._opening = None
        return transport

    def _leave_address(self) -> None:
        """Move the first address, which did not connect, to the end."""
        if self._opening is not None:
            self._opening.close()
            self._opening = None
        self._addresses = [*self._addresses[1:], *self._addresses[:1]]
