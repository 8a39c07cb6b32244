"""One text goes on by the stream of another, and is asked for again only where that had to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from completion_engine.decoding.ending import Limits
from completion_engine.decoding.reuse import Continuation
from completion_engine.probability import NOT_SCORED
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.endpoint import Endpoint
from completion_engine.remote.remote_writing import RemoteWriting
from completion_engine.remote.token_stream import TokenStream
from completion_engine.remote.vllm_client import CompletionQuery, VllmClient
from completion_engine.request import Cancellation, CompletionStats
from tests.remote_server import PATIENCE_S, Answering, RemoteServer

PROMPT = (1, 2)


class Texts:
    """Texts after prompts, by a server that sends `tokens` and why it stops, and ends when it `may_end`."""

    def __init__(
        self, servers: VllmClient, tokenizer: Tokenizer, tokens: Sequence[int], finish_reason: str
    ) -> None:
        self.asked: list[CompletionQuery] = []
        self.may_end = threading.Event()
        self._servers = servers
        self._tokenizer, self._tokens, self._finish_reason = tokenizer, tokens, finish_reason

    def behind(self, prompt: tuple[int, ...], known: Sequence[int] = ()) -> RemoteWriting:
        return RemoteWriting(
            self._ask,
            CompletionQuery((), 0),
            "localhost:1",
            Prompt(prompt, b""),
            Written(self._tokenizer, b""),
            Continuation(known, probabilities=(NOT_SCORED,) * len(known)),
            limits=Limits(len(self._tokens), patience_at=time.perf_counter() + 600),
            cancellation=Cancellation(),
            stats=CompletionStats(),
        )

    def answer(self, answering: Answering) -> None:
        answering.head()
        answering.tokens(self._tokens, self._finish_reason)
        assert self.may_end.wait(PATIENCE_S)
        answering.done()

    def _ask(self, query: CompletionQuery) -> TokenStream:
        self.asked.append(query)
        return self._servers.complete(query, "tiny")


@pytest.fixture
def servers(server: RemoteServer) -> Iterator[VllmClient]:
    with closing(VllmClient(Endpoint("localhost", server.port))) as made:
        yield made


@pytest.mark.parametrize(("finish_reason", "has_ended"), [("length", False), ("stop", True)])
def test_whether_more_follows_is_known_to_who_goes_on_with_a_stream(
    server: RemoteServer,
    servers: VllmClient,
    tokenizer: Tokenizer,
    finish_reason: str,
    *,
    has_ended: bool,
) -> None:
    tokens = tokenizer.encode(" multiply(first, second)")
    texts = Texts(servers, tokenizer, tokens, finish_reason)
    server.always = texts.answer
    first = texts.behind(PROMPT)
    first.step()
    assert first.tokens == tokens
    second = texts.behind((*PROMPT, tokens[0]), tokens[1:])
    second.take_over(first)
    assert (first.is_open, second.is_open) == (False, True)
    texts.may_end.set()
    second.step()
    assert second.has_ended == has_ended
    second.begin()
    assert [asked.prompt for asked in texts.asked] == [PROMPT, (*PROMPT, *tokens)][: 1 + (not has_ended)]
