"""The engine: one target, its caches and drafters, answering completion requests on one thread.

Text and limits in, verified text out. Owns the life of a request, and what is gone on with behind it. Knows
nothing of LSP or editors.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from completion_engine.config import EngineConfig
from completion_engine.decoding.alternatives import other_answers
from completion_engine.decoding.answers import answer, silence, with_alternatives
from completion_engine.decoding.background import Expected, NextLine, Unfinished, serves_nobody
from completion_engine.decoding.judged_answers import judged_answer
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.run import Limits, prompt_budget, run
from completion_engine.decoding.shadow import Answer, ShadowChecks
from completion_engine.decoding.task import Task
from completion_engine.decoding.tasks import Tasks
from completion_engine.decoding.writing import Finish, TextRules
from completion_engine.drafting.draft import Drafter
from completion_engine.energy import find_meter
from completion_engine.loading.drafters import build_drafters
from completion_engine.loading.model import load_language_model
from completion_engine.loading.trained_drafter import device_decoder_of
from completion_engine.memory import give_back
from completion_engine.models import ModelStore
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.prompt_choice import PromptBudget
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.request import Cancellation, CancelledError, CompletionRequest, Progress, ShouldStop
from completion_engine.stats import Completion, CompletionStats
from completion_engine.suggestions.stopping import StopRules, load_grammar
from completion_engine.target_model.language_model import LanguageModel
from ngram_cache import NgramIndex

_MAX_TOKENS_AHEAD = 32  # behind a suggestion
_REHEARSED = ("def add(first, second):\n    return first + second\n\n\nadd(", "\n")
_LANGUAGE, _NUM_REHEARSED = "python", 8


class CompletionEngine:
    """Completions from one target. Every call but `cancel` on a request belongs to one thread."""

    def __init__(
        self,
        config: EngineConfig,
        target: LanguageModel,
        tokenizer: Tokenizer,
        drafters: Mapping[str, Drafter] | None = None,
    ) -> None:
        """An engine on loaded parts. Without `drafters` they are built as `config` names them."""
        self.config = config
        self.tokenizer = tokenizer
        self._target = target
        self._drafters = build_drafters(config, target, tokenizer) if drafters is None else drafters
        may_step_on_device = config.drafts_trees and not config.plans_on_host
        self._device_decoder = (
            device_decoder_of(self._drafters, target, tokenizer.num_tokens) if may_step_on_device else None
        )
        self._tasks = Tasks(config, target, tokenizer, self._drafters, self._device_decoder)
        self._ahead: Unfinished | Expected | None = None
        self._shadow = ShadowChecks(target, tokenizer)
        self.energy = find_meter(str(target.device))

    @classmethod
    def load(
        cls,
        config: EngineConfig,
        report: Progress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> CompletionEngine:
        """Fetch the target if need be and make it ready: seconds when it is there, else minutes.

        Raises SlipstreamError with advice when that cannot be done.
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
        rehearses: bool = True,
    ) -> CompletionEngine:
        """An engine on the model in `folder`; `tokenizer` is its own, where that is loaded already.

        It `rehearses` what the first keystrokes would wait for; for a single answer that takes longer.
        """
        tell = report or (lambda *_: None)
        tell("Loading the tokenizer", 0, 2)
        tokenizer = tokenizer or load_tokenizer(folder)
        tell("Loading the model", 1, 2)
        target = load_language_model(folder, config.device, config.dtype)
        drafters = build_drafters(config, target, tokenizer, report, should_stop)
        engine = cls(config, target, tokenizer, drafters)
        if rehearses:
            engine._rehearse()
        give_back()
        tell("Model ready", 2, 2)
        return engine

    def _rehearse(self) -> None:
        """Write a few tokens that nobody sees, lest the first keystroke waits for what is made once."""
        self.tokenizer.tokens_towards(b"x")
        self._target.rehearse()
        request = CompletionRequest(*_REHEARSED, _LANGUAGE, deadline_ms=0)
        if self._target.device.type == "cpu":
            index = NgramIndex([("", self.tokenizer.encode(request.prefix * 2))])
            request = replace(request, index=index, indexed_as="-", repository_memory="on")
        self.open(request.language)
        self.write(request, NextLine(""), _NUM_REHEARSED)
        self.forget(request.document)

    @property
    def target(self) -> LanguageModel:
        """The model that verifies."""
        return self._target

    def complete(self, request: CompletionRequest) -> Completion:
        """The verified completion at the request's cursor; empty text when nothing is worth showing.

        Raises CancelledError as soon as the step under way when the request is cancelled is over.
        """
        begin = time.perf_counter()
        task, decoding = self._begin(request, budget=self._budget_of(request))
        rules = StopRules(task.cursor)
        if nothing := silence(rules, request):
            self._ahead = Expected(task)
            return answer(task.origins(), rules, decoding, nothing, begin)
        limits = Limits.of(request, self._max_tokens_of(request), begin, decoding.cold_ms)
        finish = self._run(task, decoding, rules, limits)
        self._shadow.take(Answer.of(request, task.prompt, decoding), request.shadow)
        completion = judged_answer(task, rules, decoding, finish, begin)
        if request.num_candidates > 1:
            others = other_answers(task, rules, decoding, finish, limits)
            completion = with_alternatives(completion, others, request.num_candidates)
        self._ahead = self._behind(completion, task, rules, finish, limits)
        return completion

    def prepare(self, request: CompletionRequest, prompt: Prompt | None = None) -> None:
        """Compute the keys and values of the request's prompt and write nothing; `prompt` as in `write`."""
        _, decoding = self._begin(request, prompt)
        while decoding.prepare():
            pass

    def prepare_context(self, request: CompletionRequest, like: CompletionEngine | None = None) -> None:
        """As `prepare`, behind the request's context, which the document has from now on.

        What `like`, an engine on the same target, has computed of the prompt is copied.
        """
        prompt = self._tasks.settle(request)
        if like is not None:
            self._tasks.take_over(like._tasks, request.document, prompt)
        self.prepare(request, prompt)

    def expect(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """The request may come soon: `idle` computes the prompt for who waits, then all of the text.

        Between the two it writes what the request will get, where it `writes`.
        """
        task, decoding = self._begin(request, budget=self._budget_of(request))
        self._ahead = Expected(task, decoding)
        rules = StopRules(task.cursor)
        if writes and not silence(rules, request):
            limits = Limits.of(request, self._max_tokens_of(request), time.perf_counter(), 0.0)
            self._ahead = Unfinished(task, rules, limits, decoding)

    def is_in_time(self, request: CompletionRequest) -> bool:
        """Whether somebody would be answered soon, with all of the text that a prompt may show."""
        return self._budget_of(request).is_soon(self._tasks.num_missing(request))

    def write(
        self, request: CompletionRequest, rules: TextRules, max_tokens: int, prompt: Prompt | None = None
    ) -> Decoding:
        """The bare tokens at the request's cursor under other rules and no deadline, for measurements.

        `prompt` takes the place of the one that would be built.
        """
        _, decoding = self._begin(request, prompt)
        run(decoding, rules, Limits(min(max_tokens, self._tasks.max_new_tokens)), request.cancellation)
        return decoding

    def idle(self, cancellation: Cancellation, *, is_late: bool = False) -> bool:
        """One step of background work: write on behind an answer, prepare what is expected, check an answer.

        It stays short where others may come, to whom the work gives way. Who comes ends its pass at once, but
        for one that finds what is asked for then, unless the work `is_late` for all who may come. False when
        nothing is left.
        """
        if cancellation.is_cancelled:
            return False
        serves = serves_nobody if is_late or self._ahead is None else self._ahead.serving()

        def is_in_vain() -> bool:
            return not (cancellation.instead and serves(cancellation.instead))

        try:
            with self._target.brake.pulled_by(cancellation, is_in_vain):
                return self._work_ahead(cancellation)
        except CancelledError:
            return True

    def _work_ahead(self, cancellation: Cancellation) -> bool:
        """One step; False when nothing is left. Raises CancelledError where a pass was ended early."""
        if self._ahead is None:
            return self._shadow.step()
        ahead, num_before = self._ahead, self._ahead.num_written
        with self.energy.measured() as count:
            goes_on = ahead.step(self._new_stats(), cancellation)
            count(ahead.num_written - num_before)
        if not goes_on:
            widened = None if ahead.task.shows_all else self._tasks.showing_all(ahead.task)
            self._ahead = Expected(widened, is_widened=True) if widened else None
        return self._ahead is not None or self._shadow.is_waiting

    def open(self, language: str) -> None:
        """A document of a language is open: its grammar is loaded, lest the first keystroke waits for it."""
        load_grammar(language)

    def forget(self, document: str) -> None:
        """A document was closed: its cache may be taken over, and nothing it wrote is drafted elsewhere."""
        if self._ahead is not None and self._ahead.task.request.document == document:
            self._abandon()
        self._tasks.forget(document)
        self._shadow.forget(document)

    def describe(self) -> dict[str, Any]:
        """What runs here, for `stats` and `doctor`."""
        target, energy = self._target, self.energy.describe()
        return {
            **({"energy": energy} if energy else {}),
            "shadow": {
                "num_checked": self._shadow.num_checked,
                "num_different": self._shadow.num_different,
            },
            "state": "ready",
            "target": self.config.target,
            "device": str(target.device),
            "dtype": target.precision.name,
            "drafters": list(self._drafters),
            "exactness": target.exactness,
            "plans": "on the device" if self._device_decoder else "on the host",
            "pass_ms": {str(width): round(cost, 2) for width, cost in target.pass_ms.items()},
            "capacity": target.capacity,
            "num_context_tokens": self._tasks.max_context_tokens,
            "window_chars": astuple(self._tasks.window),
            "num_weight_bytes": target.num_weight_bytes,
            "num_cache_bytes": self._tasks.num_cache_bytes + target.num_branch_bytes + self._shadow.num_bytes,
            "num_drafter_bytes": sum(drafter.num_bytes for drafter in self._drafters.values()),
        }

    def _begin(
        self, request: CompletionRequest, prompt: Prompt | None = None, budget: PromptBudget | None = None
    ) -> tuple[Task, Decoding]:
        """See `Tasks.begin`; what is written ahead for another request is given up."""
        begin = time.perf_counter()
        stats = self._new_stats()
        self._abandon()
        begun = self._tasks.begin(request, stats, prompt, budget)
        stats.ms["prompt"] = (time.perf_counter() - begin) * 1e3
        return begun

    def _run(self, task: Task, decoding: Decoding, rules: StopRules, limits: Limits) -> Finish:
        """Write what is shown, and count what it takes. Raises CancelledError: the place is then expected."""
        try:
            with self.energy.measured() as count:
                try:
                    return run(decoding, rules, limits, task.request.cancellation)
                finally:
                    count(decoding.stats.num_written)
        except CancelledError:
            self._ahead = Expected(task)
            raise

    def _behind(
        self, completion: Completion, task: Task, rules: StopRules, finish: Finish, limits: Limits
    ) -> Unfinished | None:
        """What is written while an answer is read: all of it where it is not whole, else the next line."""
        is_unfinished = finish.reason == "deadline" or (finish.reason == "unsure" and not completion.text)
        if is_unfinished or not task.shows_all:
            widened = None if task.shows_all else self._tasks.showing_all
            shown = completion.text
            return Unfinished(task, rules, Limits(limits.max_tokens), widened=widened, shown=shown)
        if not completion.text:
            return None
        further = Limits(completion.stats.num_tokens + _MAX_TOKENS_AHEAD)
        return Unfinished(task, NextLine(completion.text), further, shown=completion.text, is_whole=True)

    def _abandon(self) -> None:
        """Nobody goes on with what is written ahead: the drafters keep of it what they may."""
        if self._ahead is not None:
            self._ahead.end()
        self._ahead = None

    def _new_stats(self) -> CompletionStats:
        return CompletionStats(device=str(self._target.device), target=self.config.target)

    def _max_tokens_of(self, request: CompletionRequest) -> int:
        return min(request.max_tokens, self._tasks.max_new_tokens)

    def _budget_of(self, request: CompletionRequest) -> PromptBudget:
        """What the prompt of somebody who waits may take."""
        return prompt_budget(request, self._target.prompt_token_ms)
