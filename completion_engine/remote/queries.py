"""Builds queries for an answer after a prompt, and for further candidates beside it.

Owns what a request's questions say. Does not depend on what is made of the answers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from completion_engine.decoding.ending import Limits
from completion_engine.decoding.reuse import Continuation
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.remote_writing import Remaining, RemoteWriting
from completion_engine.remote.token_stream import TokenStream
from completion_engine.remote.vllm_client import VllmClient
from completion_engine.remote.vllm_request import CompletionQuery, QueryNames
from completion_engine.request import CompletionRequest, CompletionStats

_OTHERS_TEMPERATURE = 0.8  # for further candidates of a greedy request


class Queries:
    """One window's queries to `servers` for their `model`, which uses this tokenizer."""

    def __init__(self, servers: VllmClient, model: str, tokenizer: Tokenizer) -> None:
        self._servers, self._model, self._tokenizer = servers, model, tokenizer
        self._names = QueryNames(servers.endpoint.token)

    def writing(
        self, request: CompletionRequest, prompt: Prompt, limits: Limits, known: Continuation
    ) -> RemoteWriting:
        """Return the writing after `prompt` and the `known` tokens; its first step sends the query."""

        def ask(remaining: Remaining) -> TokenStream:
            return self._servers.complete(self._question(request, remaining), self._model)

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
        """Begin further candidates beside the first answer; they are closed at the end of the block."""
        others: list[RemoteWriting] = []
        try:
            for seed in range(1, request.num_candidates):
                temperature = request.temperature or _OTHERS_TEMPERATURE
                other = replace(request, temperature=temperature, seed=request.seed + seed)
                others.append(self.writing(other, prompt, limits, Continuation()))
                others[-1].begin()
            yield others
        finally:
            for writing in others:
                writing.close()

    def _question(self, request: CompletionRequest, remaining: Remaining) -> CompletionQuery:
        return CompletionQuery(
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
