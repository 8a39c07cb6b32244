"""The engine: one target, its caches and drafters, answering completion requests on one thread.

Text and limits in, verified text out. Owns the life of a request and the background work after it. Must not
know LSP and editors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, TypeVar

from completion_engine.config import EngineConfig
from completion_engine.decoding.alternatives import Alternatives
from completion_engine.decoding.background import (
    BackgroundPrompt,
    BackgroundWriting,
    NextLine,
    never_needed,
    work_after,
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
from completion_engine.energy import find_meter
from completion_engine.errors import SlipstreamError
from completion_engine.loading.drafters import build_drafters
from completion_engine.loading.gpu_target import TargetWish
from completion_engine.loading.ladder import Ladder, forget_frames
from completion_engine.loading.model import ladder_for
from completion_engine.loading.trained_drafter import device_decoder_of
from completion_engine.models import ModelStore
from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.next_edit.proposer import EditProposer
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.request import (
    Cancellation,
    CancelledError,
    Completion,
    CompletionRequest,
    CompletionStats,
    Progress,
    ShouldStop,
)
from completion_engine.runtime import give_back
from completion_engine.suggestions.checkpoints import forget_texts
from completion_engine.suggestions.stopping import load_grammar
from completion_engine.target_model.language_model import LanguageModel
from ngram_cache import NgramIndex

_WARM_UP_TEXT = ("def add(first, second):\n    return first + second\n\n\nadd(", "\n")
_COMPARED_TEXT = (
    _WARM_UP_TEXT[0] + "1, 2)\n\n\nclass Point:\n    def __init__(self, x, y):\n        self.x = x\n"
)
_WARM_UP_LANGUAGE, _NUM_WARM_UP_TOKENS = "python", 8

R = TypeVar("R")


class CompletionEngine:
    """Completions from one target. All calls, except `cancel` on a request, belong to one thread."""

    def __init__(
        self,
        config: EngineConfig,
        target: LanguageModel,
        tokenizer: Tokenizer,
        drafters: Mapping[str, Drafter] | None = None,
        ladder: Ladder[LanguageModel] | None = None,
    ) -> None:
        """Build an engine on loaded parts; without `drafters`, those that `config` names are built.

        If the rung of `ladder` fails later, the engine goes on with the target on the next one.
        """
        self.config = config
        self.tokenizer = tokenizer
        self._ladder = ladder
        self._take(target, build_drafters(config, target, tokenizer) if drafters is None else drafters)

    def _take(self, target: LanguageModel, drafters: Mapping[str, Drafter]) -> None:
        """Answer with `target` from now on, with empty caches."""
        config, tokenizer = self.config, self.tokenizer
        self._target, self._drafters = target, drafters
        may_step_on_device = config.drafts_trees and not config.plans_on_host
        self._device_decoder = (
            device_decoder_of(drafters, target, tokenizer.num_tokens, self._note)
            if may_step_on_device
            else None
        )
        self._preparation = RequestPreparation(config, target, tokenizer, drafters, self._device_decoder)
        self._background: BackgroundWriting | BackgroundPrompt | None = None
        self._shadow = ShadowChecks(target, tokenizer)
        self._edits = EditProposer(target, tokenizer)
        self.energy = find_meter(str(target.device))

    def _note(self, reason: str) -> None:
        """Remember what the rung in use does without."""
        if self._ladder is not None:
            self._ladder.note(reason)

    @classmethod
    def load(
        cls,
        config: EngineConfig,
        report: Progress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> CompletionEngine:
        """Fetch the target if it is not there, and make it ready: in minutes, or seconds if it is there.

        Raises SlipstreamError with advice when that fails.
        """
        folder = ModelStore().ensure(config.target, report, should_stop)
        return cls.from_folder(folder, config, report, should_stop)

    @classmethod
    def from_folder(  # noqa: PLR0913 - as `load`, and what is there already
        cls,
        folder: Path,
        config: EngineConfig,
        report: Progress | None = None,
        should_stop: ShouldStop | None = None,
        tokenizer: Tokenizer | None = None,
        *,
        warms_up: bool = True,
    ) -> CompletionEngine:
        """Load an engine on the model in `folder`; `tokenizer` is its own, where that is loaded already.

        It `warms_up` so that the first keystroke does not pay for one-time setup. A single answer comes
        sooner without that.
        """
        tell = report or (lambda *_: None)
        tell("Loading the tokenizer", 0, 2)
        tokenizer = tokenizer or load_tokenizer(folder)
        tell("Loading the model", 1, 2)
        text = tokenizer.encode(_COMPARED_TEXT)
        wish = TargetWish(folder, num_slots=config.num_slots, text=text)
        ladder = ladder_for(wish, config.device, config.dtype)

        def build(target: LanguageModel) -> CompletionEngine:
            drafters = build_drafters(config, target, tokenizer, report, should_stop, ladder.note)
            engine = cls(config, target, tokenizer, drafters, ladder)
            if warms_up:
                engine._warm_up()
            return engine

        engine = ladder.climb(build)
        give_back()
        tell("Model ready", 2, 2)
        return engine

    def _warm_up(self) -> None:
        """Write a few tokens and discard them: the first keystroke then does not pay for one-time setup."""
        self.tokenizer.tokens_towards(b"x")
        self._target.rehearse()
        request = CompletionRequest(*_WARM_UP_TEXT, _WARM_UP_LANGUAGE, deadline_ms=0)
        if self._target.device.type == "cpu":
            index = NgramIndex([("", self.tokenizer.encode(request.prefix * 2))])
            request = replace(request, index=index, indexed_as="-", repository_memory="on")
        self.open(request.language)
        self._write(request, NextLine(""), _NUM_WARM_UP_TOKENS)
        self.forget(request.document)

    @property
    def target(self) -> LanguageModel:
        """The model that verifies."""
        return self._target

    @property
    def rung(self) -> str:
        """The way the target runs, which its bits depend on."""
        return str(self._ladder.rung) if self._ladder else str(self._target.device)

    def beside(self, **changes: Any) -> CompletionEngine:
        """Return another engine on the same target, with `changes` of the configuration, to compare both.

        It has the same context budget, which otherwise follows from the pass times measured when it is made.
        """
        same = replace(self.config, context_tokens=self._preparation.max_context_tokens)
        return CompletionEngine(replace(same, **changes), self.target, self.tokenizer)

    def complete(self, request: CompletionRequest) -> Completion:
        """Return the verified completion at the request's cursor; empty text when nothing is worth showing.

        Raises CancelledError after the present step when the request is cancelled.
        """
        return self._on_any_rung(lambda: self._complete(request))

    def _complete(self, request: CompletionRequest) -> Completion:
        begin_s = time.perf_counter()
        rules = rules_at(request)
        prepared, decoding = self._begin(request, waits=True)
        limits = Limits.of(request, self._preparation.max_new_tokens, begin_s, decoding.cold_ms)
        try:
            with self.energy.measured(lambda: decoding.stats.num_written):
                finish = suppression(rules, request) or run(decoding, rules, limits, request.cancellation)
        except CancelledError:
            self._background = BackgroundPrompt(prepared)
            raise
        if request.shadow and not finish.is_suppressed:
            self._shadow.take(DraftedCompletion.of(request, prepared.prompt, decoding), request.shadow)
        num_context, scores = prepared.prompt.num_context, prepared.setup.scores
        builder = CompletionBuilder(request, rules, self.tokenizer, num_context, scores)
        completion = builder.build(decoding, finish, begin_s)
        if request.num_candidates > 1 and not finish.is_suppressed:
            others = Alternatives(prepared, builder, decoding, finish, limits)
            completion = completion.with_alternatives(others, request.num_candidates)
        widen = self._preparation.with_whole_prompt
        self._background = work_after(prepared, completion, finish, rules, limits, widen)
        return completion

    def prepare(self, request: CompletionRequest, prompt: Prompt | None = None) -> None:
        """Compute the keys and values of the request's prompt, write nothing; `prompt` is as in `write`."""

        def compute() -> None:
            _, decoding = self._begin(request, prompt)
            while decoding.prepare():
                pass

        self._on_any_rung(compute)

    def prepare_context(self, request: CompletionRequest, like: CompletionEngine | None = None) -> None:
        """Do what `prepare` does with the request's context in front, which its document has from now on.

        The prompt is copied as far as `like`, an engine on the same target, has computed it.
        """
        prompt = self._preparation.commit_context(request)
        if like is not None and like.rung == self.rung:
            self._preparation.copy_prompt_from(like._preparation, request.document, prompt)
        self.prepare(request, prompt)

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """Prefetch for a request that is likely soon: `idle` computes the prompt that it would get.

        Where it `writes`, its completion is written next. The whole prompt comes last.
        """
        self._on_any_rung(lambda: self._expect(request, writes=writes))

    def _expect(self, request: CompletionRequest, *, writes: bool) -> None:
        prepared, decoding = self._begin(request, waits=True)
        self._background = BackgroundPrompt(prepared, decoding)
        rules = rules_at(request)
        if writes and not suppression(rules, request):
            limits = Limits.of(request, self._preparation.max_new_tokens, time.perf_counter(), 0.0)
            self._background = BackgroundWriting(prepared, rules, limits, decoding)

    def is_in_time(self, request: CompletionRequest) -> bool:
        """Return whether the request would be answered soon, by the whole prompt."""
        return self._preparation.is_in_time(request)

    def write(
        self, request: CompletionRequest, rules: TextRules, max_tokens: int, prompt: Prompt | None = None
    ) -> Decoding:
        """Write bare tokens at the request's cursor under other rules and no deadline, for measurements.

        `prompt` replaces the one that would be built.
        """
        return self._on_any_rung(lambda: self._write(request, rules, max_tokens, prompt))

    def _write(
        self, request: CompletionRequest, rules: TextRules, max_tokens: int, prompt: Prompt | None = None
    ) -> Decoding:
        _, decoding = self._begin(request, prompt)
        run(decoding, rules, Limits(min(max_tokens, self._preparation.max_new_tokens)), request.cancellation)
        return decoding

    def idle(self, cancellation: Cancellation, *, is_late: bool = False) -> bool:
        """Run one step of background work: write on after an answer, prefetch, or check an answer.

        A step stays short where several windows share the engine. A request ends its pass at once, unless it
        needs the result of that pass; where the work `is_late`, no request does. Return False when nothing is
        left.
        """
        if cancellation.is_cancelled:
            return False
        return self._on_any_rung(lambda: self._idle(cancellation, is_late=is_late))

    def _idle(self, cancellation: Cancellation, *, is_late: bool) -> bool:
        work = self._background
        needed_by = never_needed if is_late or work is None else work.need_test()

        def is_in_vain() -> bool:
            return not (cancellation.instead and needed_by(cancellation.instead))

        try:
            with self._target.brake.pulled_by(cancellation, is_in_vain):
                return self._step_background(cancellation)
        except CancelledError:
            return True

    def _step_background(self, cancellation: Cancellation) -> bool:
        """Run one step; return False when nothing is left. Raises CancelledError when it is cut short."""
        work = self._background
        if work is None:
            return self._shadow.step()
        with self.energy.measured(lambda: work.num_written):
            goes_on = work.step(self._new_stats(), cancellation)
        if not goes_on:
            shows_all, widen = work.prepared.shows_all, self._preparation.with_whole_prompt
            self._background = None if shows_all else BackgroundPrompt(widen(work.prepared), is_widened=True)
        return self._background is not None or self._shadow.is_waiting

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        """Return the next edit that the user is likely to want, or none.

        Cached completions stay. Raises CancelledError within a step when the request is cancelled.
        """
        with self._target.brake.pulled_by(request.cancellation, lambda: True):
            return self._edits.propose(request)

    def open(self, language: str) -> None:
        """Load the grammar of an open document's language before the first keystroke needs it."""
        load_grammar(language)

    def forget(self, document: str) -> None:
        """Release the cache of a closed document, and drop its text from all drafters."""
        if self._background is not None and self._background.prepared.request.document == document:
            self._abandon()
        self._preparation.forget(document)
        forget_texts()
        self._shadow.forget(document)
        self._edits.forget()

    def describe(self) -> dict[str, Any]:
        """Describe what runs here, for `stats` and `doctor`."""
        target, energy = self._target, self.energy.describe()
        return {
            **({"energy": energy} if energy else {}),
            "shadow": self._shadow.describe(),
            "state": "ready",
            "target": self.config.target,
            "device": str(target.device),
            "dtype": target.precision.name,
            "drafters": list(self._drafters),
            "exactness": target.exactness,
            **({"rung": self._ladder.rung.name, "rung_reason": self._ladder.reason} if self._ladder else {}),
            "plans": "on the device" if self._device_decoder else "on the host",
            "pass_ms": {str(width): round(cost, 2) for width, cost in target.pass_ms.items()},
            "capacity": target.capacity,
            "num_context_tokens": self._preparation.max_context_tokens,
            "window_chars": astuple(self._preparation.text_window),
            "num_weight_bytes": target.num_weight_bytes,
            "num_cache_bytes": self._preparation.num_cache_bytes
            + target.num_branch_bytes
            + self._shadow.num_bytes
            + self._edits.num_cache_bytes,
            "num_drafter_bytes": sum(drafter.num_bytes for drafter in self._drafters.values()),
        }

    def _on_any_rung(self, work: Callable[[], R]) -> R:
        """Return what `work` returns; where a GPU fails under it, on the next rung, from the beginning."""
        while True:
            try:
                return work()
            except (CancelledError, SlipstreamError):
                raise
            except Exception as error:
                if self._ladder is None or not self._ladder.may_leave:
                    raise
                self._descend(self._ladder, error)

    def _descend(self, ladder: Ladder[LanguageModel], error: Exception) -> None:
        """Load the target on the next rung, once nothing holds what lies on the one that failed."""
        forget_frames(error)
        del self._target, self._drafters, self._device_decoder, self._preparation
        del self._background, self._shadow
        ladder.leave(error)

        def build(target: LanguageModel) -> None:
            self._take(target, build_drafters(self.config, target, self.tokenizer, note=ladder.note))

        ladder.climb(build)

    def _begin(
        self, request: CompletionRequest, prompt: Prompt | None = None, *, waits: bool = False
    ) -> tuple[PreparedRequest, Decoding]:
        """Prepare a request and begin to write; background work for another one is given up."""
        begin = time.perf_counter()
        stats = self._new_stats()
        self._abandon()
        prepared = self._preparation.prepare_request(request, prompt, waits=waits)
        decoding = prepared.decode(stats)
        stats.is_provisional = not prepared.shows_window
        stats.ms["prompt"] = (time.perf_counter() - begin) * 1e3
        return prepared, decoding

    def _abandon(self) -> None:
        """Give the background work up: the drafters keep what they may of it."""
        if self._background is not None:
            self._background.end()
        self._background = None

    def _new_stats(self) -> CompletionStats:
        return CompletionStats(device=str(self._target.device), target=self.config.target)
