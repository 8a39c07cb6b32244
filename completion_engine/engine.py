"""The engine: completions, edits and background work on one loaded target. A server calls this object alone.

Text and limits in, verified text out; goes on with the next backend if one fails. Does not depend on LSP.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from completion_engine.config import EngineConfig
from completion_engine.cutting.surroundings import forget_texts
from completion_engine.decoding.alternatives import alternatives
from completion_engine.decoding.background import Answer, BackgroundWork
from completion_engine.decoding.completion import CompletionBuilder, run
from completion_engine.decoding.ending import Limits, TextRules, rules_at, suppression
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.preparation import PreparedRequest, RequestPreparation
from completion_engine.drafting.drafts import Drafter
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.errors import SlipstreamError
from completion_engine.loading.backends import BackendChain, forget_frames
from completion_engine.loading.drafters import build_drafters
from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.next_edit.proposer import EditProposer
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import (
    Cancellation,
    CancelledError,
    Completion,
    CompletionRequest,
    CompletionStats,
)
from completion_engine.target_model.language_model import LanguageModel

R = TypeVar("R")
P = ParamSpec("P")


def with_fallback(
    work: Callable[Concatenate[CompletionEngine, P], R],
) -> Callable[Concatenate[CompletionEngine, P], R]:
    """Run the method again, from its beginning, on the next backend if a GPU fails under it."""

    @wraps(work)
    def call(engine: CompletionEngine, /, *args: P.args, **kwargs: P.kwargs) -> R:
        while True:
            try:
                return work(engine, *args, **kwargs)
            except (CancelledError, SlipstreamError):
                raise
            except Exception as error:
                if engine.chain is None or not engine.chain.has_fallback:
                    raise
                engine.fall_back(engine.chain, error)

    return call


class CompletionEngine:
    """Completions from one target. All calls, except `cancel` on a request, belong to one thread."""

    def __init__(
        self,
        config: EngineConfig,
        target: LanguageModel,
        tokenizer: Tokenizer,
        drafters: Mapping[str, Drafter] | None = None,
        chain: BackendChain | None = None,
    ) -> None:
        """Build an engine on loaded parts; without `drafters`, those that `config` names are built.

        If the backend of `chain` fails later, the engine goes on with the target on the next one.
        """
        self.config, self.target, self.tokenizer, self.chain = config, target, tokenizer, chain
        self.drafters = build_drafters(config, target) if drafters is None else drafters
        self.preparation = RequestPreparation(config, target, tokenizer, self.drafters)
        self.background = BackgroundWork(self.preparation)
        self._edits = EditProposer(target, tokenizer)

    def fall_back(self, chain: BackendChain, error: Exception) -> None:
        """Load the target on the next backend, once nothing holds the memory of the one that failed."""
        config, tokenizer = self.config, self.tokenizer
        forget_frames(error)
        vars(self).clear()
        chain.fall_back(error)

        def build(target: LanguageModel) -> None:
            drafters = build_drafters(config, target, chain.note)
            CompletionEngine.__init__(self, config, target, tokenizer, drafters, chain)

        chain.run_on_best(build)

    @property
    def backend(self) -> str:
        """The way the target runs, which its bits depend on."""
        return str(self.chain.backend) if self.chain else str(self.target.device)

    def beside(self, **changes: Any) -> CompletionEngine:
        """Return another engine on the same target, with `changes` of the configuration, to compare both.

        It has the same space for context, which otherwise follows from the pass times when it is made.
        """
        same = replace(self.config, context_tokens=self.preparation.context_space)
        return CompletionEngine(replace(same, **changes), self.target, self.tokenizer)

    def share_recent(self, other: CompletionEngine) -> None:
        """Draft from the recent completions of both engines from now on, if they have the same tokens."""
        mine, theirs = (engine.drafters.get("ngram") for engine in (self, other))
        is_same = self.tokenizer.fingerprint == other.tokenizer.fingerprint
        if is_same and isinstance(mine, NgramDrafter) and isinstance(theirs, NgramDrafter):
            mine.share_recent(theirs)

    @with_fallback
    def complete(self, request: CompletionRequest) -> Completion:
        """Return the verified completion at the request's cursor; empty text when nothing is worth showing.

        Raises CancelledError after the present step when the request is cancelled.
        """
        begin_s = time.perf_counter()
        rules = rules_at(request)
        prepared, decoding = self._begin(request, waits=True)
        limits = Limits.of(request, self.preparation.max_new_tokens, begin_s, decoding.cold_ms)
        try:
            finish = suppression(rules, request) or run(decoding, rules, limits, request.cancellation)
        except CancelledError:
            self.background.follow(prepared)
            raise
        num_context, scores = prepared.prompt.num_context, request.filters_by_confidence
        builder = CompletionBuilder(request, rules, self.tokenizer, num_context, scores)
        completion = builder.build(decoding, finish, begin_s)
        if request.num_candidates > 1 and not finish.is_suppressed:
            others = alternatives(prepared, builder, decoding, finish, limits)
            completion = completion.with_alternatives(others, request.num_candidates)
        self.background.follow(Answer(prepared, completion, finish, rules, limits))
        return completion

    @with_fallback
    def prepare(self, request: CompletionRequest, prompt: Prompt | None = None) -> None:
        """Compute the keys and values of the request's prompt, write nothing; `prompt` is as in `write`."""
        _, decoding = self._begin(request, prompt)
        while decoding.prepare():
            pass

    def prepare_context(self, request: CompletionRequest, like: CompletionEngine | None = None) -> None:
        """Do what `prepare` does with the request's context in front, which its document has from now on.

        The prompt is copied as far as `like`, an engine on the same target, has computed it.
        """
        prompt = self.preparation.commit_context(request)
        if like is not None and like.backend == self.backend:
            self.preparation.copy_prompt_from(like.preparation, request.document, prompt)
        self.prepare(request, prompt)

    @with_fallback
    def write(
        self, request: CompletionRequest, rules: TextRules, max_tokens: int, prompt: Prompt | None = None
    ) -> Decoding:
        """Write bare tokens at the request's cursor under other rules and no deadline, for measurements.

        `prompt` replaces the one that would be built.
        """
        _, decoding = self._begin(request, prompt)
        run(decoding, rules, Limits(min(max_tokens, self.preparation.max_new_tokens)), request.cancellation)
        return decoding

    @with_fallback
    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """Prefetch for a request that is likely soon: `idle` computes the prompt that it would get.

        With `writes`, its completion is written next. The whole prompt comes last.
        """
        self.background.prefetch(request, self._new_stats(), writes=writes)

    def is_in_time(self, request: CompletionRequest) -> bool:
        """Return whether the request would be answered soon, by the whole prompt."""
        return self.preparation.is_in_time(request)

    @with_fallback
    def idle(self, cancellation: Cancellation, *, is_late: bool = False) -> bool:
        """Run one step of background work: write on after an answer, or prefetch.

        A step stays short if several windows share the engine. A request ends its pass at once, unless it
        needs the result of that pass; if the work `is_late`, no request does. Return False when nothing is
        left.
        """
        if cancellation.is_cancelled:
            return False
        is_in_vain = self.background.vain_test(cancellation, is_late=is_late)
        try:
            with self.target.decoder.brake.pulled_by(cancellation, is_in_vain):
                return self.background.step(self._new_stats(), cancellation)
        except CancelledError:
            return True

    def take_grown(self) -> CompletionRequest | None:
        """Return the request whose answer would show more by now, once; None without news."""
        return self.background.take_grown()

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        """Return the next edit that the user is likely to want, or none.

        Cached completions stay. Raises CancelledError within a step when the request is cancelled.
        """
        with self.target.decoder.brake.pulled_by(request.cancellation, lambda: True):
            return self._edits.propose(request)

    def forget(self, document: str) -> None:
        """Release the cache of a closed document, and drop its text from all drafters."""
        self.background.forget(document)
        self.preparation.forget(document)
        forget_texts()
        self._edits.forget()

    def describe(self) -> dict[str, Any]:
        """Describe what runs here, for `stats` and `doctor`."""
        target = self.target
        return {
            "state": "ready",
            "target": self.config.target,
            "device": str(target.device),
            "dtype": target.precision.name,
            "drafters": list(self.drafters),
            "exactness": target.exactness,
            "pass_ms": {str(width): round(cost, 2) for width, cost in target.pass_ms.items()},
            "capacity": target.capacity,
            "num_context_tokens": self.preparation.max_context_tokens,
            "window_chars": astuple(self.preparation.text_window),
            "num_weight_bytes": target.num_weight_bytes,
            "num_cache_bytes": self.preparation.num_cache_bytes
            + target.num_branch_bytes
            + self._edits.num_cache_bytes,
            "num_drafter_bytes": sum(drafter.num_bytes for drafter in self.drafters.values()),
            **(
                {"backend": self.chain.backend.name, "backend_reason": self.chain.reason}
                if self.chain
                else {}
            ),
        }

    def _begin(
        self, request: CompletionRequest, prompt: Prompt | None = None, *, waits: bool = False
    ) -> tuple[PreparedRequest, Decoding]:
        """Prepare a request and begin to write; background work for another one is given up."""
        begin = time.perf_counter()
        stats = self._new_stats()
        prepared, decoding = self.background.replace(request, stats, prompt, waits=waits)
        stats.is_provisional = not prepared.shows_window
        stats.ms["prompt"] = (time.perf_counter() - begin) * 1e3
        return prepared, decoding

    def _new_stats(self) -> CompletionStats:
        return CompletionStats(device=str(self.target.device), target=self.config.target)
