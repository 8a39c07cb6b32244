"""One completion that servers write: requested, read as it comes, and requested again where it broke off.

Owns the queries of a request, and the tokens of one answer. Does not depend on when a completion is long
enough.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import repeat

from completion_engine.decoding.completion import Writing
from completion_engine.decoding.ending import Finish, Limits, TextRules
from completion_engine.decoding.reuse import Continuation
from completion_engine.errors import RemoteError
from completion_engine.probability import NOT_SCORED, TokenProbability
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.answer import Wait
from completion_engine.remote.connections import silent
from completion_engine.remote.token_stream import Chunk, TokenStream
from completion_engine.remote.vllm_client import CompletionQuery, QueryNames, VllmClient
from completion_engine.request import Cancellation, CompletionRequest, CompletionStats

MAX_RESUMES = 3
_OTHERS_TEMPERATURE = 0.8  # for further candidates
_PAUSES_S = (0.0, 0.05, 0.3)  # before another attempt: servers soon notice that a replica died
STALL_S = 10.0  # the longest wait for a token without a deadline
_BROKEN = frozenset({"truncated"})
_BROKEN_LATER = frozenset({"truncated", "unavailable", "unreachable"})  # after an answer has begun


Ask = Callable[[CompletionQuery], TokenStream]


class RemoteWriting(Writing):
    """Tokens that servers write after a prompt.

    `query` has what is asked for, and `known` the tokens that they wrote there before. The first new one is
    waited for until patience ends; then RemoteError is raised.
    """

    def __init__(  # noqa: PLR0913 - where it goes on, and for how long
        self,
        ask: Ask,
        query: CompletionQuery,
        authority: str,
        prompt: Prompt,
        written: Written,
        known: Continuation,
        *,
        limits: Limits,
        cancellation: Cancellation,
        stats: CompletionStats,
    ) -> None:
        super().__init__(prompt, written, stats)
        self.cancellation = cancellation
        self.has_ended = known.has_ended
        self._ask, self._query, self._authority = ask, query, authority
        self._limits = limits
        self._stream: TokenStream | None = None
        self._num_chunks = self.num_resumes = self._num_asked = 0
        self._is_stray = False
        self._finish_reason = ""
        for token, probability in zip(known.tokens, known.probabilities, strict=True):
            self._add(token, probability)
        stats.num_prompt_tokens = self._num_prompt

    @property
    def is_scored(self) -> bool:
        """Whether the probability of every token is known."""
        return all(probability.is_scored for probability in self.probabilities)

    @property
    def next_ms(self) -> float:
        """0: the next tokens may have arrived already."""
        return 0.0

    @property
    def is_open(self) -> bool:
        """Whether the servers are still writing."""
        return self._stream is not None

    def begin(self) -> None:
        """Send the query for what is still to be written, without waiting for the answer."""
        if self._stream is None and not self.has_ended:
            self._num_asked = len(self.path)
            num_tokens, healed = (
                max(1, self._limits.most_tokens - len(self.tokens)),
                self.written.healing().bytes,
            )
            rest = replace(self._query, prompt=tuple(self.path), max_tokens=num_tokens, healed=healed)
            self._stream = self._ask(rest)

    def step(self, within_ms: float = float("inf")) -> None:
        """Read the next tokens, and wait for them if need be. Raises RemoteError, CancelledError."""
        begin_s = time.perf_counter()
        wait = Wait(self._until(begin_s, within_ms), self.cancellation)
        try:
            self.begin()
            chunk = self._stream.read(wait) if self._stream else None
        except RemoteError as fault:
            self._resume(fault)
            return
        finally:
            stage = "verify" if self._has_begun else "prefill"
            self.stats.ms[stage] += (time.perf_counter() - begin_s) * 1e3
        if chunk is not None:
            self._take(chunk)
        elif self._stream is not None and self._stream.has_ended:
            self.stats.num_cached_tokens = min(self._num_prompt, self._stream.num_cached)
            self.has_ended = self._finish_reason != "length" or len(self.path) == self._num_asked
            self.close()
        elif within_ms == float("inf") and (self._has_no_deadline or not self._has_begun):
            self.close()
            raise silent(self._authority)

    def finish(self, rules: TextRules, limits: Limits) -> Finish | None:
        """Return the end of the completion, None to go on; see `Ending`."""
        found = super().finish(rules, limits)
        if found is None and self._is_stray:
            return Finish("end", len(self.written.text), "stray-text")
        if found is None and self.has_ended:
            return Finish("end", len(self.written.text))
        return found

    def end(self) -> None:
        """Do nothing: the servers may go on after a deadline, see `close`."""

    def check_begun(self) -> None:
        """Raise RemoteError if the servers have sent nothing and patience is over."""
        if not self._has_begun and time.perf_counter() >= self._limits.patience_at:
            raise silent(self._authority)

    def close(self) -> None:
        """Stop the servers."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def take_over(self, other: RemoteWriting) -> None:
        """Go on with the stream of another writing whose text is the same."""
        is_known = self.tokens and not self.written.healing().bytes
        if other.is_open and is_known and other.path == self.path:
            self._stream, other._stream = other._stream, None
            self._num_asked, self._finish_reason = other._num_asked, other._finish_reason

    @property
    def _has_begun(self) -> bool:
        return self._num_chunks > 0

    @property
    def _has_no_deadline(self) -> bool:
        return self._limits.deadline_at == float("inf")

    def _until(self, begin_s: float, within_ms: float) -> float:
        """Return the latest end of a step that begins now, in `time.perf_counter()` seconds."""
        if within_ms < float("inf"):
            return begin_s + within_ms / 1e3
        if self._has_no_deadline and self._has_begun:
            return begin_s + STALL_S
        return self._limits.patience_at

    def _take(self, chunk: Chunk) -> None:
        self._num_chunks += 1
        self.stats.num_forwards += 1
        self._finish_reason = chunk.finish_reason
        for token, probability in zip(chunk.tokens, chunk.probabilities or repeat(NOT_SCORED), strict=False):
            is_end = self.written.is_end(token)
            if not is_end and not self.written.allows(token):
                self._is_stray = True  # not what the query allows here
                return
            self._add(token, probability)
            self.stats.num_written += 1
            if is_end:
                return

    def _add(self, token: int, probability: TokenProbability) -> None:
        self.path.append(token)
        self.probabilities.append(probability)
        self.sources.append(None)  # servers do not report which tokens they drafted
        self.written.add(token)

    def _resume(self, fault: RemoteError) -> None:
        """Prepare another query for the rest, where that helps. Raises RemoteError, CancelledError."""
        self.close()
        has_some = self._has_begun or self.num_resumes
        if fault.kind not in (_BROKEN_LATER if has_some else _BROKEN) or self.num_resumes >= MAX_RESUMES:
            raise fault
        pause_s = _PAUSES_S[min(self.num_resumes, len(_PAUSES_S) - 1)]
        self.num_resumes += 1
        self.cancellation.check()
        if pause_s:
            self.cancellation.wait(pause_s)


class Queries:
    """One window's queries to `servers` for their `model`, which uses this tokenizer."""

    def __init__(self, servers: VllmClient, model: str, tokenizer: Tokenizer) -> None:
        self._servers, self._model, self._tokenizer = servers, model, tokenizer
        self._names = QueryNames(servers.endpoint.token)

    def writing(
        self,
        request: CompletionRequest,
        prompt: Prompt,
        limits: Limits,
        known: Continuation,
        candidate: int = 0,
    ) -> RemoteWriting:
        """Return the writing after `prompt` and the `known` tokens; its first step sends the query.

        Each further `candidate` is drawn with its number as the seed.
        """
        query = CompletionQuery(
            (),
            0,
            tuple(sorted(self._tokenizer.end_ids)),
            temperature=_OTHERS_TEMPERATURE if candidate else 0.0,
            seed=candidate,
            salt=self._names.salt,
            session=self._names.session(request.document),
            scores=request.filters_by_confidence,
        )
        return RemoteWriting(
            partial(self._servers.complete, model=self._model),
            query,
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
            for candidate in range(1, request.num_candidates):
                others.append(self.writing(request, prompt, limits, Continuation(), candidate))
                others[-1].begin()
            yield others
        finally:
            for writing in others:
                writing.close()
