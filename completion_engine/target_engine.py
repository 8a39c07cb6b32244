"""Requests on one loaded target: its caches, drafters, checks and background work, on one thread.

Text and limits in, verified text out. Nothing of it is kept when another target is loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any

from completion_engine.config import EngineConfig
from completion_engine.cutting.surroundings import forget_texts
from completion_engine.decoding.alternatives import Alternatives
from completion_engine.decoding.background import (
    Answered,
    BackgroundPrompt,
    BackgroundWriting,
    never_needed,
)
from completion_engine.decoding.completion import CompletionBuilder
from completion_engine.decoding.ending import (
    Limits,
    TextRules,
    rules_at,
    run,
    suppression,
)
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.preparation import PreparedRequest, RequestPreparation
from completion_engine.decoding.shadow import DraftedCompletion, ShadowChecks
from completion_engine.drafting.drafts import Drafter
from completion_engine.loading.drafters import device_decoder_of
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


class TargetEngine:
    """Everything that stands on one target. The methods are described in `CompletionEngine`."""

    def __init__(
        self,
        config: EngineConfig,
        target: LanguageModel,
        tokenizer: Tokenizer,
        drafters: Mapping[str, Drafter],
        note: Callable[[str], None],
    ) -> None:
        """Begin with empty caches; `note` receives what this target does without."""
        self.config, self.target, self.tokenizer, self.drafters = config, target, tokenizer, drafters
        may_step_on_device = config.drafts_trees and not config.plans_on_host
        self._device_decoder = (
            device_decoder_of(drafters, target, tokenizer.num_tokens, note) if may_step_on_device else None
        )
        self.preparation = RequestPreparation(config, target, tokenizer, drafters, self._device_decoder)
        self._background: BackgroundWriting | BackgroundPrompt | None = None
        self._later: CompletionRequest | None = None  # prepared after the rest of an answer
        self._grown: CompletionRequest | None = None  # which background work has news for
        self._answered: Answered | None = None  # after which no background work was chosen yet
        self.shadow = ShadowChecks(target, tokenizer)
        self._edits = EditProposer(target, tokenizer)

    def complete(self, request: CompletionRequest) -> Completion:
        """Return the verified completion at the request's cursor."""
        begin_s = time.perf_counter()
        rules = rules_at(request)
        prepared, decoding = self._begin(request, waits=True)
        limits = Limits.of(request, self.preparation.max_new_tokens, begin_s, decoding.cold_ms)
        try:
            finish = suppression(rules, request) or run(decoding, rules, limits, request.cancellation)
        except CancelledError:
            self._background = BackgroundPrompt(prepared)
            raise
        if request.shadow and not finish.is_suppressed:
            self.shadow.take(DraftedCompletion.of(request, prepared.prompt, decoding), request.shadow)
        num_context, scores = prepared.prompt.num_context, prepared.setup.scores
        builder = CompletionBuilder(request, rules, self.tokenizer, num_context, scores)
        completion = builder.build(decoding, finish, begin_s)
        if request.num_candidates > 1 and not finish.is_suppressed:
            others = Alternatives(prepared, builder, decoding, finish, limits)
            completion = completion.with_alternatives(others, request.num_candidates)
        self._answered = Answered(prepared, completion, finish, rules, limits)
        return completion

    @property
    def background(self) -> BackgroundWriting | BackgroundPrompt | None:
        """The present background work. After an answer it is chosen here: no answer waits for that."""
        if self._answered is not None:
            self._background = self._answered.work(self.preparation.with_whole_prompt)
            self._answered = None
        return self._background

    def prepare(self, request: CompletionRequest, prompt: Prompt | None = None) -> None:
        """Compute the keys and values of the request's prompt."""
        _, decoding = self._begin(request, prompt)
        while decoding.prepare():
            pass

    def prefetch(self, request: CompletionRequest, *, writes: bool) -> None:
        """Prepare for a request that is likely soon; `idle` does the work.

        The rest of an answer at the same cursor is written first: the user looks at it.
        """
        work = self.background
        if not writes and isinstance(work, BackgroundWriting) and work.is_rest_of(request):
            self._later = request
            return
        prepared, decoding = self._begin(request, waits=True)
        self._background = BackgroundPrompt(prepared, decoding)
        rules = rules_at(request)
        if writes and not suppression(rules, request):
            limits = Limits.of(request, self.preparation.max_new_tokens, time.perf_counter(), 0.0)
            self._background = BackgroundWriting(prepared, rules, limits, decoding)

    def write(
        self, request: CompletionRequest, rules: TextRules, max_tokens: int, prompt: Prompt | None = None
    ) -> Decoding:
        """Write bare tokens at the request's cursor."""
        _, decoding = self._begin(request, prompt)
        run(decoding, rules, Limits(min(max_tokens, self.preparation.max_new_tokens)), request.cancellation)
        return decoding

    def idle(self, cancellation: Cancellation, *, is_late: bool) -> bool:
        """Run one step of background work; return False when nothing is left."""
        work = self.background
        needed_by = never_needed if is_late or work is None else work.need_test()

        def is_in_vain() -> bool:
            return not (cancellation.instead and needed_by(cancellation.instead))

        try:
            with self.target.decoder.brake.pulled_by(cancellation, is_in_vain):
                return self._step(cancellation)
        except CancelledError:
            return True

    def _step(self, cancellation: Cancellation) -> bool:
        """Run one step; return False when nothing is left. Raises CancelledError when it is cut short."""
        work = self.background
        if work is None:
            return self.shadow.step()
        goes_on = work.step(self._new_stats(), cancellation)
        if isinstance(work, BackgroundWriting) and work.has_news(has_ended=not goes_on):
            self._grown = work.prepared.request
        if not goes_on and (later := self._later) is not None:
            grown = self._grown
            self._background = None
            self.prefetch(later, writes=False)
            self._grown = grown
        elif not goes_on:
            shows_all, widen = work.prepared.shows_all, self.preparation.with_whole_prompt
            self._background = None if shows_all else BackgroundPrompt(widen(work.prepared), is_widened=True)
        return self._background is not None or self.shadow.is_waiting

    def take_grown(self) -> CompletionRequest | None:
        """Return the request whose answer would show more by now, once; None without news."""
        grown, self._grown = self._grown, None
        return grown

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        """Return the next edit that the user is likely to want, or none."""
        with self.target.decoder.brake.pulled_by(request.cancellation, lambda: True):
            return self._edits.propose(request)

    def forget(self, document: str) -> None:
        """Release the cache of a closed document, and drop its text."""
        work = self.background
        if work is not None and work.prepared.request.document == document:
            self._abandon()
        self.preparation.forget(document)
        forget_texts()
        self.shadow.forget(document)
        self._edits.forget()

    def describe(self) -> dict[str, Any]:
        """Describe what runs here."""
        target = self.target
        return {
            "shadow": self.shadow.describe(),
            "state": "ready",
            "target": self.config.target,
            "device": str(target.device),
            "dtype": target.precision.name,
            "drafters": list(self.drafters),
            "exactness": target.exactness,
            "plans": "on the device" if self._device_decoder else "on the host",
            "pass_ms": {str(width): round(cost, 2) for width, cost in target.pass_ms.items()},
            "capacity": target.capacity,
            "num_context_tokens": self.preparation.max_context_tokens,
            "window_chars": astuple(self.preparation.text_window),
            "num_weight_bytes": target.num_weight_bytes,
            "num_cache_bytes": self.preparation.num_cache_bytes
            + target.num_branch_bytes
            + self.shadow.num_bytes
            + self._edits.num_cache_bytes,
            "num_drafter_bytes": sum(drafter.num_bytes for drafter in self.drafters.values()),
        }

    def _begin(
        self, request: CompletionRequest, prompt: Prompt | None = None, *, waits: bool = False
    ) -> tuple[PreparedRequest, Decoding]:
        """Prepare a request and begin to write; background work for another one is given up."""
        begin = time.perf_counter()
        stats = self._new_stats()
        self._abandon()
        prepared = self.preparation.prepare_request(request, prompt, waits=waits)
        decoding = prepared.decode(stats)
        stats.is_provisional = not prepared.shows_window
        stats.ms["prompt"] = (time.perf_counter() - begin) * 1e3
        return prepared, decoding

    def _abandon(self) -> None:
        """Give the background work up: the drafters keep what they may of it."""
        if self._background is not None:
            self._background.end()
        self._background = self._answered = self._grown = self._later = None

    def _new_stats(self) -> CompletionStats:
        return CompletionStats(device=str(self.target.device), target=self.config.target)
