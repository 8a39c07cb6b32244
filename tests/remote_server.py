"""A server of the remote target for tests: HTTP/2 by h2's server side, vLLM's shapes, faults on demand.

What it writes comes from a `brain`; what it was sent is kept.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import H2Error
from h2.settings import Settings

from completion_engine.probability import TokenProbability

PATIENCE_S = 30.0
_NO_STREAM = (1 << 31) - 1  # a goodbye that leaves out no stream
_ANYTHING = r"([\s\S])*"


def frame(kind: int, number: int, payload: bytes) -> bytes:
    """A frame of HTTP/2 that h2 would not send."""
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + number.to_bytes(4, "big") + payload


def goodbye(last_stream: int) -> bytes:
    """GOAWAY, without an error."""
    return frame(7, 0, last_stream.to_bytes(4, "big") + bytes(4))


class WeighedToken(int):
    """A token of a brain, with its probability."""

    probability: TokenProbability

    def __new__(cls, token: int, probability: TokenProbability) -> WeighedToken:
        made = super().__new__(cls, token)
        made.probability = probability
        return made


# prompt, healed, end ids, most tokens -> tokens
Brain = Callable[[Sequence[int], bytes, Sequence[int], int], Iterable[int]]


def by_heart(tokens: Sequence[int], shares: Sequence[float]) -> Brain:
    """Writes these tokens with these probabilities after any prompt."""
    weighed = [
        WeighedToken(token, TokenProbability(share)) for token, share in zip(tokens, shares, strict=True)
    ]
    return lambda *_: weighed


@dataclass(eq=False)
class Asked:
    """A request as it came, and what became of it."""

    path: str
    headers: dict[str, str]
    body: bytes = b""
    has_come: threading.Event = field(default_factory=threading.Event)
    was_reset: threading.Event = field(default_factory=threading.Event)
    num_written: int = 0
    connection: Any = None

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def healed(self) -> bytes:
        pattern = self.json.get("structured_outputs", {}).get("regex", "")
        return re.sub(r"\\(.)", r"\1", pattern.removesuffix(_ANYTHING), flags=re.DOTALL).encode()


Fault = Callable[["Answering"], None]


class Answering:
    """One stream, as the server answers it. Whatever ends the connection ends the methods by OSError."""

    def __init__(self, server: RemoteServer, connection: _Connection, number: int, asked: Asked) -> None:
        self.server, self.connection, self.number, self.asked = server, connection, number, asked

    def head(self, status: int = 200, **headers: str) -> None:
        headers.setdefault("content_type", "text/event-stream; charset=utf-8")
        named = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.connection.call("send_headers", self.number, [(":status", str(status)), *named])

    def data(self, data: bytes, *, end: bool = False) -> None:
        self.connection.send(self.number, data, end=end)

    def event(self, value: object) -> None:
        self.data(f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode())

    def tokens(self, tokens: Sequence[int], finish_reason: str | None = None) -> None:
        choice = {"index": 0, "text": "?", "token_ids": list(tokens), "finish_reason": finish_reason}
        if "logprobs" in self.asked.json and all(isinstance(token, WeighedToken) for token in tokens):
            choice["logprobs"] = logprobs([token.probability for token in tokens], tokens)
        self.event({"id": "cmpl-1", "object": "text_completion", "choices": [choice]})
        self.asked.num_written += len(tokens)

    def done(self) -> None:
        usage = {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}}
        self.event({"id": "cmpl-1", "choices": [], "usage": usage})
        self.event("[DONE]")
        self.data(b"", end=True)

    def reset(self, code: ErrorCodes = ErrorCodes.INTERNAL_ERROR) -> None:
        self.connection.call("reset_stream", self.number, code)

    def hang_up(self) -> None:
        self.connection.close()

    def json(self, value: object, status: int = 200, **headers: str) -> None:
        self.head(status, content_type="application/json", **headers)
        self.data(json.dumps(value).encode(), end=True)

    def stay_silent(self) -> None:
        """Until the client has had enough."""
        self.asked.was_reset.wait(PATIENCE_S)

    def written(self) -> Iterator[tuple[int, str | None]]:
        """The brain's tokens, and the reason of the end."""
        body = self.asked.json
        ends, most = body["stop_token_ids"], body["max_tokens"]
        tokens = list(self.server.brain(body["prompt"], self.asked.healed, ends, most))
        for at, token in enumerate(tokens):
            is_last = at + 1 == len(tokens)
            reason = "stop" if token in ends else "length" if at + 1 >= most else "stop"
            yield token, reason if is_last else None

    def write(self, most: int = 1 << 30) -> bool:
        """Send at most this number of the brain's tokens; returns whether that was all."""
        self.head()
        for at, (token, reason) in enumerate(self.written()):
            if at == most or self.asked.was_reset.is_set():
                return False
            self.tokens([token], reason)
        return True


def whole(answering: Answering) -> None:
    """All that the brain writes."""
    if answering.write():
        answering.done()


def pausing(num_tokens: int, may_go_on: threading.Event) -> Fault:
    """All of the brain's tokens, with a pause after this number of tokens."""

    def answer(answering: Answering) -> None:
        answering.head()
        for at, (token, reason) in enumerate(answering.written()):
            if at == num_tokens:
                assert may_go_on.wait(PATIENCE_S)
            answering.tokens([token], reason)
        answering.done()

    return answer


def logprobs(probabilities: Sequence[TokenProbability], tokens: Sequence[int]) -> dict[str, Any]:
    """Probabilities in vLLM's format."""
    tops = [
        {f"token_id:{one}": _log(value) for one, value in ((token, probability.value), *probability.rivals)}
        for token, probability in zip(tokens, probabilities, strict=True)
    ]
    own = [_log(probability.value) for probability in probabilities]
    return {"tokens": list(tops), "token_logprobs": own, "top_logprobs": tops, "text_offset": []}


def _log(value: float) -> float:
    return max(math.log(value), -9999.0) if value else -9999.0


class RemoteServer:
    """Serves on the loopback until `stop`. `faults` answer the next completions in place of the brain."""

    def __init__(
        self,
        brain: Brain,
        tokenize: Callable[[str], list[int]],
        *,
        tls: ssl.SSLContext | None = None,
        token: str = "",
        model: str = "tiny",
        num_positions: int = 512,
        settings: dict[Any, int] | None = None,
    ) -> None:
        self.brain, self.tokenize, self.token, self.model = brain, tokenize, token, model
        self.num_positions = num_positions
        self.asked: list[Asked] = []
        self.faults: deque[Fault] = deque()
        self.always: Fault | None = None
        self.num_connections = 0
        self.settings = settings or {}
        self._tls = tls
        self._changed = threading.Condition()
        self._open: list[_Connection] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://localhost:{self.port}"

    @property
    def completions(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.path.endswith("/v1/completions")]

    def wait_for(self, num_completions: int) -> Asked:
        """The completion of that number, once all of it has come."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.completions) >= num_completions, PATIENCE_S)
        asked = self.completions[num_completions - 1]
        assert asked.has_come.wait(PATIENCE_S)
        return asked

    def hang_up(self) -> None:
        """Every connection ends."""
        for connection in self._open:
            connection.close()

    def say_goodbye(self) -> None:
        """GOAWAY on every connection; running streams go on, as when a proxy restarts."""
        for connection in self._open:
            connection.raw(goodbye(_NO_STREAM))

    def deafen(self) -> None:
        """The open connections receive and send nothing more; later ones are as usual."""
        for connection in self._open:
            connection.is_deaf = True

    def stop(self) -> None:
        self._listener.close()
        self.hang_up()

    def take(self, asked: Asked) -> None:
        with self._changed:
            self.asked.append(asked)
            self._changed.notify_all()

    def answer(self, answering: Answering) -> None:
        asked = answering.asked
        if self.token and asked.headers.get("authorization") != f"Bearer {self.token}":
            answering.json({"error": {"message": "no", "type": "Unauthorized"}}, 401)
        elif asked.path.endswith("/v1/models"):
            model = {"id": self.model, "max_model_len": self.num_positions}
            answering.json({"object": "list", "data": [model]})
        elif asked.path.endswith("/tokenize"):
            tokens = self.tokenize(asked.json["prompt"])
            answering.json({"tokens": tokens, "count": len(tokens), "max_model_len": self.num_positions})
        elif asked.path.endswith("/v1/completions"):
            fault = self.faults.popleft() if self.faults else self.always
            (fault or whole)(answering)
        else:
            answering.json({"error": {"type": "NotFoundError"}}, 404)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        with contextlib.suppress(OSError, H2Error):
            if self._tls is not None:
                accepted = self._tls.wrap_socket(accepted, server_side=True)
            self.num_connections += 1
            connection = _Connection(self, accepted)
            self._open.append(connection)
            connection.run()
        accepted.close()


class _Connection:
    """A client's connection; each stream is answered on a thread of its own."""

    def __init__(self, server: RemoteServer, accepted: socket.socket) -> None:
        self._server, self._socket = server, accepted
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._changed = threading.Condition()
        self._streams: dict[int, Asked] = {}
        self.is_closed = False
        self.is_deaf = False

    def run(self) -> None:
        with self._changed:
            if self._server.settings:
                self._h2.local_settings = Settings(client=False, initial_values=self._server.settings)
            self._h2.initiate_connection()
            self._flush()
        while data := self._socket.recv(1 << 16):
            if self.is_deaf:
                continue
            with self._changed:
                for event in self._h2.receive_data(data):
                    self._take(event)
                self._flush()
                self._changed.notify_all()
        self.close()

    def call(self, name: str, *arguments: Any) -> None:
        with self._changed, _gone():
            getattr(self._h2, name)(*arguments)
            self._flush()

    def raw(self, data: bytes) -> None:
        with self._changed:
            self._socket.sendall(data)

    def send(self, number: int, data: bytes, *, end: bool) -> None:
        while True:
            with self._changed, _gone():
                room = min(self._h2.local_flow_control_window(number), self._h2.max_outbound_frame_size)
                part, data = data[:room], data[room:]
                if part or not data:
                    self._h2.send_data(number, part, end_stream=end and not data)
                    self._flush()
                if not data:
                    return
                if not room:
                    self._changed.wait(PATIENCE_S)
                    if self.is_closed:
                        raise BrokenPipeError

    def close(self) -> None:
        self.is_closed = True
        for asked in self._streams.values():
            asked.was_reset.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self._socket.sendall(data)

    def _take(self, event: events.Event) -> None:
        if isinstance(event, events.RequestReceived):
            headers = dict(event.headers)
            asked = Asked(headers[":path"], headers, connection=self)
            self._streams[event.stream_id] = asked
            self._server.take(asked)
        elif isinstance(event, events.DataReceived):
            self._streams[event.stream_id].body += event.data
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, events.StreamEnded):
            asked = self._streams[event.stream_id]
            asked.has_come.set()
            answering = Answering(self._server, self, event.stream_id, asked)
            threading.Thread(target=self._answer, args=(answering,), daemon=True).start()
        elif isinstance(event, events.StreamReset):
            self._streams[event.stream_id].was_reset.set()

    def _answer(self, answering: Answering) -> None:
        with contextlib.suppress(OSError):
            self._server.answer(answering)


@contextlib.contextmanager
def _gone() -> Iterator[None]:
    """A stream that the client has reset is as one whose client is gone."""
    try:
        yield
    except H2Error as error:
        raise BrokenPipeError from error
