"""A server that writes by the tiny target, and completers on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from completion_engine.decoding.ending import NoRules
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.remote.endpoint import RemoteConfig
from completion_engine.request import Cancellation, CompletionRequest
from tests.conftest import write_tiny_tokenizer
from tests.remote_server import Brain, RemoteServer, WeighedToken

# After "def"; the next word is typed in part and healed.
STORY = " multiply(first, second):\n    return first * second\n"
PATIENT = CompletionRequest(
    "def add(first, second):\n    return first + second\n\n\ndef mul",
    "\n\nprint(add(1, 2))\n",
    language="python",
    document="a.py",
    deadline_ms=30_000,
    patience_ms=30_000,
    max_tokens=48,
    may_leave=True,
)


@pytest.fixture
def request_at() -> Callable[..., CompletionRequest]:
    def make(prefix: str = PATIENT.prefix, **more: object) -> CompletionRequest:
        return replace(PATIENT, prefix=prefix, cancellation=Cancellation(), **more)

    return make


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """The tiny target's, without the target."""
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tiny_tokenizer(folder)
    return load_tokenizer(folder)


@pytest.fixture
def brain(tokenizer: Tokenizer) -> Brain:
    """Continues the story wherever a prompt is inside it, like a model that has learned it."""
    story = [*tokenizer.encode(STORY), min(tokenizer.end_ids)]

    def write(prompt: Sequence[int], _healed: bytes, _ends: Sequence[int], most: int) -> list[int]:
        known = next(at for at in range(len(story), -1, -1) if list(prompt[len(prompt) - at :]) == story[:at])
        return story[known:][:most]

    return write


@pytest.fixture
def toy(make_engine: Callable[..., CompletionEngine]) -> Brain:
    """The tiny target, without drafts, which reports the probability of each token."""
    engine = make_engine(drafters=())

    def write(prompt: Sequence[int], healed: bytes, ends: Sequence[int], most: int) -> list[int]:
        engine.forget("")  # a narrowed probability of an earlier answer is less precise
        asked = replace(PATIENT, document="", cancellation=Cancellation(), eagerness=0.5)
        written = engine.write(asked, NoRules(), most, Prompt(tuple(prompt), healed))
        tokens: list[int] = list(map(WeighedToken, written.tokens, written.probabilities))[:most]
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
        windows = {"prefix_chars": 400, "suffix_chars": 200, "context_tokens": 0}
        config = RemoteConfig(server.url, **{**windows, **more})
        completers.append(RemoteCompleter.load(config, tokenizer))
        return completers[-1]

    yield make
    for completer in completers:
        completer.close()


@pytest.fixture
def completer(load: Callable[..., RemoteCompleter], server: RemoteServer) -> RemoteCompleter:
    return load(server)
