"""How servers are asked to write behind a prompt: for an answer, and for further candidates beside it.

Owns what a request's questions say. Must not know what is made of the answers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from completion_engine.decoding.ending import Limits
from completion_engine.decoding.reuse import Continuation
from completion_engine.errors import RemoteError
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.prompting.written import Written
from completion_engine.remote.remote_writing import Remaining, RemoteWriting
from completion_engine.remote.socket_transport import Wait
from completion_engine.remote.token_stream import TokenStream
from completion_engine.remote.vllm_client import Servers
from completion_engine.remote.vllm_request import Names, Question
from completion_engine.request import CompletionRequest
from completion_engine.stats import CompletionStats

_OTHERS_TEMPERATURE = 0.8  # of further candidates, where the first one is the likeliest text


class Asking:
    """One window's questions to `servers` about their `model`, whose tokens are the tokenizer's."""

    def __init__(self, servers: Servers, model: str, tokenizer: Tokenizer) -> None:
        self._servers, self._model, self._tokenizer = servers, model, tokenizer
        self._names = Names(servers.endpoint.token)

    def writing(
        self, request: CompletionRequest, prompt: Prompt, limits: Limits, known: Continuation
    ) -> RemoteWriting:
        """What goes on behind `prompt` and what is `known` to follow it; asked for at its first step."""

        def ask(remaining: Remaining, wait: Wait) -> TokenStream:
            return self._servers.complete(self._question(request, remaining), self._model, wait)

        return RemoteWriting(
            ask,
            self._servers.endpoint.authority,
            prompt,
            Written(self._tokenizer, prompt.healed),
            known,
            limits=limits,
            cancellation=request.cancellation,
            stats=CompletionStats(device="remote", target=self._model),
        )

    @contextlib.contextmanager
    def others(
        self, request: CompletionRequest, prompt: Prompt, limits: Limits
    ) -> Iterator[list[RemoteWriting]]:
        """Further candidates, begun beside the first answer; at the end nobody goes on with them."""
        others: list[RemoteWriting] = []
        try:
            for seed in range(1, request.num_candidates):
                temperature = request.temperature or _OTHERS_TEMPERATURE
                other = replace(request, temperature=temperature, seed=request.seed + seed)
                others.append(self.writing(other, prompt, limits, Continuation()))
                with contextlib.suppress(RemoteError):
                    others[-1].begin()
            yield others
        finally:
            for writing in others:
                writing.close()

    def _question(self, request: CompletionRequest, remaining: Remaining) -> Question:
        return Question(
            remaining.path,
            remaining.num_tokens,
            tuple(sorted(self._tokenizer.end_ids)),
            remaining.healed,
            request.temperature,
            request.seed,
            self._names.salt,
            self._names.session(request.document),
            scores=request.filters_by_confidence,
        )
