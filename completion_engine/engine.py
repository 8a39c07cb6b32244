"""The engine: one target, its caches and drafters, answering completion requests on one thread.

Text and limits in, verified text out. Knows nothing of LSP or editors.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from completion_engine.config import EngineConfig
from completion_engine.decoding.alternatives import other_answers
from completion_engine.decoding.answers import answer, silence, with_alternatives
from completion_engine.decoding.background import Expected, NextLine, Unfinished
from completion_engine.decoding.context import DecodingContext
from completion_engine.decoding.contexts import Contexts, longest_context
from completion_engine.decoding.judged_answers import judged_answer
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.place import cursor_of
from completion_engine.decoding.repository_memory import RepositoryMemory
from completion_engine.decoding.run import MAX_NEW_TOKENS, Limits, prompt_budget, run
from completion_engine.decoding.sampling import Sampler
from completion_engine.decoding.shadow import Answer, ShadowChecks
from completion_engine.decoding.slots import SlotPool
from completion_engine.decoding.task import Task
from completion_engine.decoding.writing import TextRules
from completion_engine.drafting.draft import Drafter, Remembering
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.drafting.policy import SurvivalTable
from completion_engine.energy import find_meter
from completion_engine.loading.drafters import build_drafters
from completion_engine.loading.model import load_language_model
from completion_engine.loading.trained_drafter import device_decoder_of
from completion_engine.memory import give_back
from completion_engine.models import ModelStore
from completion_engine.models.catalogue import anchor_lines_of, remembers_repository
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.repository_format import RepositoryFormat
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.prompting.windows import (
    PREFIX_CHARS,
    SUFFIX_CHARS,
    Budget,
    ChosenPrompt,
    PromptWindows,
)
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
        kind = target.device.type
        self.config = config
        self.tokenizer = tokenizer
        self._target = target
        self._max_new_tokens = min(MAX_NEW_TOKENS, target.capacity // 4)
        self._slots = SlotPool(target.cache_shape, config.num_slots)
        form = RepositoryFormat(tokenizer, longest_context(config, target))
        windows = PromptWindows(
            tokenizer,
            prefix_chars=config.prefix_chars or PREFIX_CHARS[kind],
            suffix_chars=config.suffix_chars or SUFFIX_CHARS[kind],
            max_prompt=target.capacity - self._max_new_tokens - 2 * max(target.widths) - form.max_tokens,
            anchor_lines=anchor_lines_of(config.target),
        )
        self._prompts = Contexts(windows, form, self._slots)
        self._table = SurvivalTable()
        self._drafters = build_drafters(config, target, tokenizer) if drafters is None else drafters
        may_step_on_device = config.drafts_trees and not config.plans_on_host
        self._device_decoder = (
            device_decoder_of(self._drafters, target, tokenizer.num_tokens) if may_step_on_device else None
        )
        # A GPU takes whole steps by itself where nothing is mixed in.
        self._remembers = kind == "cpu" and remembers_repository(config.target)
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
        stats = self._new_stats()
        task, decoding = self._begin(request, stats, budget=self._budget_of(request))
        rules = StopRules(task.cursor)
        if nothing := silence(rules, request):
            self._ahead = Expected(task)
            return answer(task.origins(), rules, decoding, nothing, begin)
        limits = Limits.of(request, self._max_tokens_of(request), begin, decoding.cold_ms)
        try:
            with self.energy.measured() as count:
                try:
                    finish = run(decoding, rules, limits, request.cancellation)
                finally:
                    count(stats.num_written)
        except CancelledError:
            self._ahead = Expected(task)
            raise
        self._shadow.take(Answer.of(request, task.prompt, decoding), request.shadow)
        completion = judged_answer(task, rules, decoding, finish, begin)
        if request.num_candidates > 1:
            others = other_answers(task, rules, decoding, finish, limits)
            completion = with_alternatives(completion, others, request.num_candidates)
        is_unfinished = finish.reason == "deadline" or (finish.reason == "unsure" and not completion.text)
        if is_unfinished or not task.shows_all:
            self._ahead = Unfinished(self._showing_all(task), rules, Limits(limits.max_tokens))
        elif completion.text:
            num_tokens = completion.stats.num_tokens + _MAX_TOKENS_AHEAD
            self._ahead = Unfinished(task, NextLine(completion.text), Limits(num_tokens))
        return completion

    def prepare(self, request: CompletionRequest, prompt: Prompt | None = None) -> None:
        """Compute the keys and values of the request's prompt and write nothing; `prompt` as in `write`."""
        _, decoding = self._begin(request, self._new_stats(), prompt)
        while decoding.prepare():
            pass

    def prepare_context(self, request: CompletionRequest) -> None:
        """As `prepare`, behind the request's context, which the document has from now on."""
        self.prepare(request, self._prompts.settle(request, cursor_of(request)))

    def expect(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """The request may come soon: `idle` computes the prompt for who waits, then all of the text.

        Between the two it writes what the request will get, where it `writes`.
        """
        task, decoding = self._begin(request, self._new_stats(), budget=self._budget_of(request))
        self._ahead = Expected(task, decoding)
        rules = StopRules(task.cursor)
        if writes and not silence(rules, request):
            limits = Limits.of(request, self._max_tokens_of(request), time.perf_counter(), 0.0)
            self._ahead = Unfinished(task, rules, limits, decoding)

    def is_in_time(self, request: CompletionRequest) -> bool:
        """Whether somebody would be answered soon, with all of the text that a prompt may show."""
        return self._budget_of(request).is_soon(self._prompts.num_missing(request, cursor_of(request)))

    def write(
        self, request: CompletionRequest, rules: TextRules, max_tokens: int, prompt: Prompt | None = None
    ) -> Decoding:
        """The bare tokens at the request's cursor under other rules and no deadline, for measurements.

        `prompt` takes the place of the one that would be built.
        """
        _, decoding = self._begin(request, self._new_stats(), prompt)
        run(decoding, rules, Limits(min(max_tokens, self._max_new_tokens)), request.cancellation)
        return decoding

    def idle(self, cancellation: Cancellation) -> bool:
        """One step of background work: write on behind an answer, prepare what is expected, check an answer.

        It stays short where others may come, to whom the work gives way. False when nothing is left.
        """
        if cancellation.is_cancelled:
            return False
        if self._ahead is None:
            return self._shadow.step()
        task, num_before = self._ahead.task, self._ahead.num_written
        with self.energy.measured() as count:
            goes_on = self._ahead.step(self._new_stats(), cancellation)
            count(self._ahead.num_written - num_before)
        if not goes_on:
            self._ahead = None if task.shows_all else Expected(self._showing_all(task))
        return self._ahead is not None or self._shadow.is_waiting

    def open(self, language: str) -> None:
        """A document of a language is open: its grammar is loaded, lest the first keystroke waits for it."""
        load_grammar(language)

    def forget(self, document: str) -> None:
        """A document was closed: its cache may be taken over, and nothing it wrote is drafted elsewhere."""
        if self._ahead is not None and self._ahead.task.request.document == document:
            self._abandon()
        self._slots.forget(document)
        self._prompts.forget(document)
        self._shadow.forget(document)
        for drafter in self._remembering():
            drafter.forget(document)

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
            "num_context_tokens": self._prompts.max_tokens,
            "num_weight_bytes": target.num_weight_bytes,
            "num_cache_bytes": self._slots.num_bytes + target.num_branch_bytes + self._shadow.num_bytes,
            "num_drafter_bytes": sum(drafter.num_bytes for drafter in self._drafters.values()),
        }

    def _abandon(self) -> None:
        """Nobody goes on with what is written ahead: the drafters keep of it what they may."""
        if self._ahead is not None:
            self._ahead.end()
        self._ahead = None

    def _remembering(self) -> list[Remembering]:
        return [drafter for drafter in self._drafters.values() if isinstance(drafter, Remembering)]

    def _new_stats(self) -> CompletionStats:
        return CompletionStats(device=str(self._target.device), target=self.config.target)

    def _max_tokens_of(self, request: CompletionRequest) -> int:
        return min(request.max_tokens, self._max_new_tokens)

    def _budget_of(self, request: CompletionRequest) -> Budget:
        """What the prompt of somebody who waits may take."""
        return prompt_budget(request, self._target.prompt_token_ms)

    def _showing_all(self, task: Task) -> Task:
        """The same place with all of the text that a prompt may show, behind the request's context."""
        if task.shows_all:
            return task
        prompt = self._prompts.whole(task.request, task.cursor)
        slot = self._slots.acquire(task.request.document, prompt.tokens)
        return replace(task, prompt=prompt, slot=slot, shows_all=True)

    def _begin(
        self,
        request: CompletionRequest,
        stats: CompletionStats,
        prompt: Prompt | None = None,
        budget: Budget | None = None,
    ) -> tuple[Task, Decoding]:
        """The task and its writing, with `prompt`, or else with the largest that `budget` holds."""
        begin = time.perf_counter()
        self._abandon()
        cursor = cursor_of(request)
        chosen = ChosenPrompt(prompt) if prompt else self._prompts.choose(request, cursor, budget or Budget())
        slot = self._slots.acquire(request.document, chosen.prompt.tokens)
        sampler = Sampler(self.tokenizer.num_tokens, request.temperature, request.seed)
        ngram = self._drafters.get("ngram")
        if isinstance(ngram, NgramDrafter):
            ngram.index, ngram.document = request.index, request.indexed_as or request.document
        for drafter in self._remembering():
            drafter.enter(request.recent_scope or request.document, request.document)
        context = DecodingContext(
            self._target,
            sampler,
            tuple(self._drafters.values()),
            self._table,
            self.config.drafts_trees,
            self._device_decoder,
            RepositoryMemory.for_request(request, self.tokenizer.num_tokens, is_usual=self._remembers),
            weighs=self._target.device.type == "cpu" and request.eagerness < 1,
        )
        task = Task(request, cursor, chosen.prompt, slot, context, self.tokenizer, chosen.shows_all)
        decoding = task.decoding(stats)
        stats.is_provisional = not chosen.is_whole
        stats.ms["prompt"] = (time.perf_counter() - begin) * 1e3
        return task, decoding
