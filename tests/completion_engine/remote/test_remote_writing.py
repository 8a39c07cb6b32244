"""One text goes on by the stream of another, and is asked for again only where that had to stop."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import pytest
from h2.connection import H2Connection

from completion_engine.decoding.ending import Limits
from completion_engine.decoding.reuse import Continuation
from completion_engine.probability import NOT_SCORED
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.remote_writing import Remaining, RemoteWriting
from completion_engine.remote.socket_transport import Wait
from completion_engine.remote.token_stream import TokenStream
from completion_engine.request import Cancellation, CompletionStats
from tests.completion_engine.remote.wire import NOW, Wire

PROMPT = (1, 2)


class Texts:
    """Texts after prompts, by a server that sends `tokens` and the reason of its stop, but no end."""

    def __init__(self, tokenizer: Tokenizer, tokens: Sequence[int], finish_reason: str) -> None:
        self.asked: list[Remaining] = []
        self._tokenizer, self._tokens, self._finish_reason = tokenizer, tokens, finish_reason
        self._wire = Wire(self._write)
        self._connection = self._wire.connection()

    def behind(self, prompt: tuple[int, ...], known: Sequence[int] = ()) -> RemoteWriting:
        return RemoteWriting(
            self._ask,
            "localhost:1",
            Prompt(prompt, b""),
            Written(self._tokenizer, b""),
            Continuation(known, probabilities=(NOT_SCORED,) * len(known)),
            limits=Limits(len(self._tokens), patience_at=time.perf_counter() + 600),
            cancellation=Cancellation(),
            stats=CompletionStats(),
        )

    def end(self) -> None:
        """The first answer."""
        self._wire.server.send_data(1, b"data: [DONE]\n\n", end_stream=True)
        self._wire.flush()

    def _ask(self, remaining: Remaining, _wait: Wait) -> TokenStream:
        self.asked.append(remaining)
        stream = self._connection.request("POST", "/", {}, b"", NOW)
        return TokenStream(stream, "localhost:1", remaining.num_tokens)

    def _write(self, server: H2Connection, number: int) -> None:
        server.send_headers(number, [(":status", "200"), ("content-type", "text/event-stream")])
        choice = {"token_ids": list(self._tokens), "finish_reason": self._finish_reason}
        server.send_data(number, f"data: {json.dumps({'choices': [choice]})}\n\n".encode())


@pytest.mark.parametrize(("finish_reason", "has_ended"), [("length", False), ("stop", True)])
def test_whether_more_follows_is_known_to_who_goes_on_with_a_stream(
    tokenizer: Tokenizer, finish_reason: str, *, has_ended: bool
) -> None:
    tokens = tokenizer.encode(" multiply(first, second)")
    texts = Texts(tokenizer, tokens, finish_reason)
    first = texts.behind(PROMPT)
    first.step()
    assert first.tokens == tokens
    second = texts.behind((*PROMPT, tokens[0]), tokens[1:])
    second.take_over(first)
    assert (first.is_open, second.is_open) == (False, True)
    texts.end()
    second.step()
    assert second.has_ended == has_ended
    second.begin()
    assert [asked.path for asked in texts.asked] == [PROMPT, (*PROMPT, *tokens)][: 1 + (not has_ended)]
