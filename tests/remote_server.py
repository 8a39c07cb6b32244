"""A server of the remote target for tests: HTTP/1.1 as vLLM speaks it, vLLM's shapes, faults on demand.

What it writes comes from a `brain`; what it was sent is kept.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from completion_engine.probability import TokenProbability

PATIENCE_S = 30.0
_ANYTHING = r"([\s\S])*"


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
    connection: Any = None
    was_left: threading.Event = field(default_factory=threading.Event)
    num_written: int = 0
    has_ended: bool = False

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def healed(self) -> bytes:
        pattern = self.json.get("structured_outputs", {}).get("regex", "")
        return re.sub(r"\\(.)", r"\1", pattern.removesuffix(_ANYTHING), flags=re.DOTALL).encode()


Fault = Callable[["Answering"], None]


class Answering:
    """One request, as the server answers it. Whatever ends the connection ends the methods by OSError."""

    def __init__(self, server: RemoteServer, asked: Asked) -> None:
        self.server, self.asked, self.connection = server, asked, asked.connection

    def head(self, status: int = 200, **headers: str) -> None:
        headers = {
            "content_type": "text/event-stream; charset=utf-8",
            "transfer_encoding": "chunked",
            **headers,
        }
        lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
        self.raw(f"HTTP/1.1 {status} Whatever\r\n{''.join(lines)}\r\n".encode("latin-1"))

    def data(self, data: bytes, *, end: bool = False) -> None:
        if data:
            self.raw(b"%x\r\n%b\r\n" % (len(data), data))
        if end:
            self.asked.has_ended = True
            self.raw(b"0\r\n\r\n")

    def raw(self, data: bytes) -> None:
        self.connection.send(data)

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

    def reset(self) -> None:
        """The connection ends without a goodbye."""
        self.connection.reset()

    def hang_up(self) -> None:
        self.connection.close()

    def json(self, value: object, status: int = 200, **headers: str) -> None:
        self.head(status, content_type="application/json", **headers)
        self.data(json.dumps(value).encode(), end=True)

    def stay_silent(self) -> None:
        """Until the client has had enough."""
        self.asked.was_left.wait(PATIENCE_S)

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
            if at == most or self.asked.was_left.is_set():
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
    ) -> None:
        self.brain, self.tokenize, self.token, self.model = brain, tokenize, token, model
        self.num_positions = num_positions
        self.asked: list[Asked] = []
        self.faults: deque[Fault] = deque()
        self.always: Fault | None = None
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
        """The completion of that number."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.completions) >= num_completions, PATIENCE_S)
        return self.completions[num_completions - 1]

    def hang_up(self) -> None:
        """Every connection ends."""
        for connection in self._open:
            connection.close()

    def close_idle(self) -> None:
        """Connections without a request end, as when a proxy restarts; answers go on."""
        for connection in self._open:
            if not connection.is_busy:
                connection.close()

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
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as vLLM's server does
                threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                accepted = self._tls.wrap_socket(accepted, server_side=True)
            connection = _Connection(self, accepted)
            self._open.append(connection)
            connection.run()
        accepted.close()


class _Connection:
    """A client's connection, read also while an answer is sent, to see the client leave."""

    def __init__(self, server: RemoteServer, accepted: socket.socket) -> None:
        self._server, self._socket = server, accepted
        self._asked: Asked | None = None
        self._answering: threading.Thread | None = None
        self.is_deaf = False

    @property
    def is_busy(self) -> bool:
        return self._asked is not None and not self._asked.has_ended

    def run(self) -> None:
        try:
            come = b""
            while data := self._socket.recv(1 << 16):
                come = b"" if self.is_deaf else come + data
                head, end, rest = come.partition(b"\r\n\r\n")
                first, *lines = head.decode("latin-1").split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                num_bytes = int(headers.get("content-length", "0"))
                if not end or len(rest) < num_bytes:
                    continue
                come = rest[num_bytes:]
                self._begin(Asked(first.split(" ")[1], headers, rest[:num_bytes], self))
        finally:
            if self._asked is not None:
                self._asked.was_left.set()

    def send(self, data: bytes) -> None:
        if not self.is_deaf:
            self._socket.sendall(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.shutdown(socket.SHUT_RD)  # `run` closes it, which then sends RST

    def _begin(self, asked: Asked) -> None:
        if self._answering is not None:
            self._answering.join()
        self._asked = asked
        self._server.take(asked)
        self._answering = threading.Thread(target=self._answer, args=(asked,), daemon=True)
        self._answering.start()

    def _answer(self, asked: Asked) -> None:
        with contextlib.suppress(OSError):
            self._server.answer(Answering(self._server, asked))
