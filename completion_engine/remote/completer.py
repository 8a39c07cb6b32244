"""The target on a team's servers, with the interface of the local engine: text in, verified text out.

Owns one window's connection to the servers. A prompt leaves the machine only after redaction. Used on one
thread; only cancelling a request is safe on others.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from typing import Any

from completion_engine.cutting.cutter import Cutter
from completion_engine.cutting.surroundings import forget_texts
from completion_engine.decoding.completion import CompletionBuilder, run
from completion_engine.decoding.ending import MAX_NEW_TOKENS, Limits, rules_at, suppression
from completion_engine.decoding.reuse import PastCompletion, PastCompletions
from completion_engine.errors import RemoteError
from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.prompt_choice import (
    MAX_CONTEXT_TOKENS,
    PromptBudget,
    PromptChooser,
    PromptWindows,
)
from completion_engine.prompting.repository_format import RepositoryFormat
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.answer import Wait
from completion_engine.remote.endpoint import Endpoint, RemoteConfig
from completion_engine.remote.outbound_text import AT_CURSOR, LEAVES, Masking, refusal
from completion_engine.remote.remote_writing import Queries, RemoteWriting
from completion_engine.remote.vllm_client import Served, VllmClient, prove
from completion_engine.request import (
    Cancellation,
    Completion,
    CompletionRequest,
    CompletionStats,
    Progress,
    ShouldStop,
)
from completion_engine.text_window import TextWindow
from ngram_cache.redaction import blank_secrets

EXACTNESS = "verified by the server"
_IDLE_MS, REST_S = 1000.0, 10.0  # for one background step, and for the whole rest of an answer
_LOAD_S = 10.0


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """A completion that a deadline cut short, and until when the rest of it is read."""

    document: str
    writing: RemoteWriting
    rules: Cutter
    limits: Limits
    past: PastCompletion
    until_s: float

    @property
    def is_written(self) -> bool:
        """Whether all that is wanted has come."""
        return self.writing.finish(self.rules, self.limits) is not None


class RemoteCompleter:
    """Completions by a team's servers. Satisfies the engine's protocol."""

    def __init__(
        self, config: RemoteConfig, servers: VllmClient, tokenizer: Tokenizer, served: Served
    ) -> None:
        """Use connected servers, whose `served` model has this tokenizer."""
        self._servers, self._tokenizer, self._served = servers, tokenizer, served
        self._queries, self._past = Queries(servers, served.name, tokenizer), PastCompletions()
        self._window = TextWindow.for_device("remote", config.prefix_chars, config.suffix_chars)
        self._masking = Masking(self._window)
        max_context = MAX_CONTEXT_TOKENS if config.context_tokens < 0 else config.context_tokens
        form = RepositoryFormat(tokenizer, max_context, blank_secrets)
        windows = PromptWindows(
            tokenizer,
            self._window,
            max_prompt=max(64, served.num_positions - MAX_NEW_TOKENS - form.max_front_tokens),
        )
        self._prompts = PromptChooser(windows, form, self._past)
        self._unfinished: _Unfinished | None = None

    @classmethod
    def load(
        cls,
        config: RemoteConfig,
        tokenizer: Tokenizer,
        report: Progress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> RemoteCompleter:
        """Connect, and prove that the servers' tokenizer is `tokenizer`. Raises UserError, RemoteError."""
        endpoint = Endpoint.of(config)
        if report is not None:
            report(f"Connecting to {endpoint.authority}", 0, 1)
        servers = VllmClient(endpoint)
        try:
            served = prove(servers, config.model, tokenizer, Wait.seconds(_LOAD_S, should_stop=should_stop))
        except BaseException:
            servers.close()
            raise
        tokenizer.tokens_towards(b"x")  # builds its tables before the first keystroke
        return cls(config, servers, tokenizer, served)

    def complete(self, request: CompletionRequest) -> Completion:
        """Return the verified completion at the request's cursor; empty text when nothing is worth showing.

        Raises RemoteError, and CancelledError at once when the request is cancelled: the servers stop.
        """
        if rule := refusal(request):
            return Completion("", 0, CompletionStats(), rule=rule)
        begin_s = time.perf_counter()
        rules = rules_at(request)
        if suppressed := suppression(rules, request):
            return Completion("", 0, CompletionStats(finish_reason=suppressed.reason), rule=suppressed.rule)
        cursor = rules.around.cursor
        if (shown := self._masking.around(cursor.prefix, cursor.suffix)) is None:
            return Completion("", 0, CompletionStats(), rule=AT_CURSOR)
        prompt = self._prompts.choose(request, *shown, PromptBudget()).prompt
        limits = Limits.of(request, MAX_NEW_TOKENS, begin_s, cold_ms=0.0)
        writing = self._write_on(request, prompt, limits)
        writing.stats.ms["prompt"] = (time.perf_counter() - begin_s) * 1e3
        past = self._past_of(request, prompt, writing)
        with _closed_on_failure(writing), self._queries.others(request, prompt, limits) as others:
            try:
                finish = run(writing, rules, limits, request.cancellation)
                if finish.reason == "deadline" and not finish.num_chars:
                    writing.check_begun()
            finally:
                past.has_ended = writing.has_ended
                self._past.commit(request.document, past)
            builder = CompletionBuilder(
                request, rules, self._tokenizer, prompt.num_context, writing.is_scored
            )
            completion = builder.build(writing, finish, begin_s)
            found = self._alternatives(builder, others, limits)
            completion = completion.with_alternatives(found, request.num_candidates)
        if finish.reason == "deadline" and writing.is_open:
            until_s = time.perf_counter() + REST_S
            self._unfinished = _Unfinished(request.document, writing, rules, limits, past, until_s)
        else:
            writing.close()
        return completion

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """Do nothing: servers are not asked before a request waits."""

    def idle(self, cancellation: Cancellation) -> bool:
        """Read more of an answer that a deadline cut short. Return False when nothing is left."""
        if self._unfinished is None or cancellation.is_cancelled:
            return False
        rest = self._unfinished
        rest.writing.cancellation = cancellation
        try:
            if time.perf_counter() < rest.until_s and not rest.is_written:
                rest.writing.step(_IDLE_MS)
                rest.past.has_ended = rest.writing.has_ended
                return True
        except RemoteError:
            pass  # no request waits now; the next one gets the error
        self._leave_unfinished()
        return False

    def take_grown(self) -> None:
        """Return None: the rest of an answer is kept for the next request."""

    def propose_edit(self, request: EditRequest) -> EditAnswer:  # noqa: ARG002 - see `CompletionEngine`
        """Return none: servers score no edits."""
        return EditAnswer(rule="edit-needs-local-model")

    def forget(self, document: str) -> None:
        """Drop all that is held of a closed document."""
        if self._unfinished is not None and self._unfinished.document == document:
            self._leave_unfinished()
        self._past.forget(document)
        self._prompts.forget(document)
        self._masking.forget()
        forget_texts()

    def describe(self) -> dict[str, Any]:
        """Describe the servers, for `stats` and `doctor`."""
        return {
            "state": "ready",
            "target": self._served.name,
            "device": "remote",
            "drafters": [],
            "exactness": EXACTNESS,
            "capacity": self._served.num_positions,
            "num_context_tokens": self._prompts.max_context_tokens,
            "window_chars": astuple(self._window),
            "remote": {
                "servers": self._servers.endpoint.authority,
                "leaves": LEAVES,
                "num_connections": self._servers.num_connections,
            },
        }

    def close(self) -> None:
        """Close the connection."""
        self._leave_unfinished()
        self._servers.close()

    def _write_on(self, request: CompletionRequest, prompt: Prompt, limits: Limits) -> RemoteWriting:
        """Return the writing after all tokens that are known, on the stream that writes it already."""
        needs_scores = request.filters_by_confidence
        known = self._past.continuation(
            request.document,
            prompt,
            Written(self._tokenizer, prompt.healed),
            needs_scores=needs_scores,
        )
        writing = self._queries.writing(request, prompt, limits, known)
        if self._unfinished is not None:
            if self._unfinished.past.is_scored or not needs_scores:
                writing.take_over(self._unfinished.writing)
            self._leave_unfinished()
        return writing

    @staticmethod
    def _alternatives(
        builder: CompletionBuilder, others: list[RemoteWriting], limits: Limits
    ) -> Iterator[Completion]:
        """Yield the completions of the further candidates, until patience ends."""
        patient = replace(limits, deadline_at=limits.patience_at)
        for writing in others:
            begin_s = time.perf_counter()
            if begin_s > limits.patience_at:
                return
            with contextlib.suppress(RemoteError):
                finish = run(writing, builder.rules, patient, writing.cancellation)
                yield replace(builder, scores=writing.is_scored).build(writing, finish, begin_s)

    @staticmethod
    def _past_of(request: CompletionRequest, prompt: Prompt, writing: RemoteWriting) -> PastCompletion:
        """Return the record of an answer, which grows with it."""
        return PastCompletion(
            writing.path,
            len(prompt.tokens),
            prompt.healed,
            probabilities=writing.probabilities,
            is_scored=request.filters_by_confidence,
        )

    def _leave_unfinished(self) -> None:
        if self._unfinished is not None:
            self._unfinished.writing.close()
            self._unfinished = None


@contextlib.contextmanager
def _closed_on_failure(writing: RemoteWriting) -> Iterator[None]:
    """Stop the servers if the block fails."""
    try:
        yield
    except BaseException:
        writing.close()
        raise
