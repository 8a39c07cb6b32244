"""A server that writes by the tiny target, and completers on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from completion_engine.decoding.run import NoRules
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.remote.config import RemoteConfig
from completion_engine.request import CompletionRequest
from tests.remote_server import Brain, RemoteServer

PATIENT = CompletionRequest(
    "def add(first, second):\n    return first + second\n\n\ndef mul",
    "\n\nprint(add(1, 2))\n",
    language="python",
    document="a.py",
    deadline_ms=0,
    patience_ms=30_000,
    max_tokens=24,
    may_leave=True,
)


@pytest.fixture
def request_at() -> Callable[..., CompletionRequest]:
    def make(prefix: str = PATIENT.prefix, **more: object) -> CompletionRequest:
        return replace(PATIENT, prefix=prefix, cancellation=type(PATIENT.cancellation)(), **more)

    return make


@pytest.fixture
def brain(make_engine: Callable[..., CompletionEngine]) -> Brain:
    """The tiny target, without drafts; every answer on an engine of its own, as replicas are."""
    engine = make_engine(drafters=())

    def write(prompt: Sequence[int], healed: bytes, ends: Sequence[int], most: int) -> list[int]:
        asked = replace(PATIENT, document="", cancellation=type(PATIENT.cancellation)())
        tokens = engine.write(asked, NoRules(), most, Prompt(tuple(prompt), healed)).tokens[:most]
        cut = next((at + 1 for at, token in enumerate(tokens) if token in ends), len(tokens))
        return tokens[:cut]

    return write


@pytest.fixture
def serve(brain: Brain, tokenizer: Tokenizer) -> Iterator[Callable[..., RemoteServer]]:
    servers: list[RemoteServer] = []

    def make(brain: Brain = brain, **more: object) -> RemoteServer:
        servers.append(RemoteServer(brain, tokenizer.encode, **more))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def server(serve: Callable[..., RemoteServer]) -> RemoteServer:
    return serve()


@pytest.fixture
def load(tokenizer: Tokenizer) -> Iterator[Callable[..., RemoteCompleter]]:
    """Completers with the local tiny engine's windows."""
    completers: list[RemoteCompleter] = []

    def make(server: RemoteServer, **more: object) -> RemoteCompleter:
        config = RemoteConfig(server.url, prefix_chars=400, suffix_chars=200, context_tokens=0, **more)
        completers.append(RemoteCompleter.load(config, tokenizer))
        return completers[-1]

    yield make
    for completer in completers:
        completer.close()


@pytest.fixture
def completer(load: Callable[..., RemoteCompleter], server: RemoteServer) -> RemoteCompleter:
    return load(server)
