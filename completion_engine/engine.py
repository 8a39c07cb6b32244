"""The engine: one target, its caches and drafters, answering completion requests on one thread.

Text and limits in, verified text out. Knows nothing of LSP or editors.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from completion_engine.config import EngineConfig
from completion_engine.decoding.answers import answer, other_answers, with_alternatives
from completion_engine.decoding.background import Expected, NextLine, Unfinished
from completion_engine.decoding.context import DecodingContext, TextRules
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.run import Limits, run
from completion_engine.decoding.sampling import Sampler
from completion_engine.decoding.shadow import Answer, ShadowChecks
from completion_engine.decoding.slots import SlotPool
from completion_engine.decoding.task import Task, cursor_of
from completion_engine.drafting.draft import Drafter, Remembering
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.drafting.policy import SurvivalTable
from completion_engine.energy import find_meter
from completion_engine.loading.drafters import build_drafters
from completion_engine.loading.model import load_language_model
from completion_engine.loading.trained_drafter import device_decoder_of
from completion_engine.memory import give_back
from completion_engine.models import ModelStore
from completion_engine.models.catalogue import anchor_lines_of
from completion_engine.prompting.prompt import Prompt, PromptBuilder
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.request import Cancellation, CompletionRequest, Progress, ShouldStop
from completion_engine.stats import Completion, CompletionStats
from completion_engine.suggestions.stopping import StopRules, load_grammar
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.rows import ROWS

PREFIX_CHARS = {"cpu": 2400, "cuda": 12_000}
SUFFIX_CHARS = {"cpu": 800, "cuda": 3000}
MAX_NEW_TOKENS = 256
_MAX_TOKENS_AHEAD = 32  # behind a suggestion
_REHEARSED = ("def add(first, second):\n    return first + second\n\n\nadd(", "\n")
_LANGUAGE, _NUM_REHEARSED = "python", 8
# A completion that takes longer ends with what it has, if somebody else waits for the engine.
MAX_TURN_S = 1.0
_PASS_MARGIN = 1.2  # a pass takes this much longer than measured in quiet, in the deadline's view


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
        self._prompts = PromptBuilder(
            tokenizer,
            prefix_chars=config.prefix_chars or PREFIX_CHARS[kind],
            suffix_chars=config.suffix_chars or SUFFIX_CHARS[kind],
            max_prompt=target.capacity - self._max_new_tokens - 2 * max(target.widths),
            anchor_lines=anchor_lines_of(config.target),
        )
        self._table = SurvivalTable()
        self._drafters = build_drafters(config, target, tokenizer) if drafters is None else drafters
        may_step_on_device = config.drafts_trees and not config.plans_on_host
        self._device_decoder = (
            device_decoder_of(self._drafters, target, tokenizer.num_tokens) if may_step_on_device else None
        )
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
    def from_folder(
        cls,
        folder: Path,
        config: EngineConfig,
        report: Progress | None = None,
        should_stop: ShouldStop | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> CompletionEngine:
        """An engine on the model in `folder`; `tokenizer` is its own, where that is loaded already."""
        tell = report or (lambda *_: None)
        tell("Loading the tokenizer", 0, 2)
        tokenizer = tokenizer or load_tokenizer(folder)
        tokenizer.tokens_towards(b"x")  # builds its tables now, not under the first keystroke
        tell("Loading the model", 1, 2)
        target = load_language_model(folder, config.device, config.dtype)
        drafters = build_drafters(config, target, tokenizer, report, should_stop)
        engine = cls(config, target, tokenizer, drafters)
        engine._rehearse()
        give_back()
        tell("Model ready", 2, 2)
        return engine

    def _rehearse(self) -> None:
        """Write a few tokens that nobody sees, lest a kernel is compiled under the first keystroke."""
        request = CompletionRequest(*_REHEARSED, _LANGUAGE, deadline_ms=0)
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
        task, decoding = self._begin(request, stats)
        rules = StopRules(task.cursor)
        limits = Limits(
            min(request.max_tokens, self._max_new_tokens),
            self._target.ms_of(ROWS) * _PASS_MARGIN,
            begin + request.deadline_ms / 1e3 if request.deadline_ms > 0 else float("inf"),
            begin + max(request.patience_ms, request.deadline_ms) / 1e3,
            begin + MAX_TURN_S,
        )
        with self.energy.measured() as count:
            finish = run(decoding, rules, limits, request.cancellation)
            count(len(decoding.tokens))
        self._shadow.take(Answer.of(request, task.prompt, decoding.tokens), request.shadow)
        completion = answer(task, rules, decoding, finish, begin)
        if request.num_candidates > 1:
            others = other_answers(task, rules, decoding, finish, limits)
            completion = with_alternatives(completion, others, request.num_candidates)
        if finish.reason == "deadline":
            self._ahead = Unfinished(task, rules, limits.max_tokens)
        elif completion.text:
            num_tokens = completion.stats.num_tokens + _MAX_TOKENS_AHEAD
            self._ahead = Unfinished(task, NextLine(completion.text), num_tokens)
        return completion

    def prepare(self, request: CompletionRequest, prompt: Prompt | None = None) -> None:
        """Compute the keys and values of the request's prompt and write nothing; `prompt` as in `write`."""
        _, decoding = self._begin(request, self._new_stats(), prompt)
        while decoding.prepare():
            pass

    def expect(self, request: CompletionRequest) -> None:
        """The request may come soon: `idle` computes its prompt, in place of other work ahead."""
        _, decoding = self._begin(request, self._new_stats())
        self._ahead = Expected(decoding)

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

        False when nothing is left.
        """
        if cancellation.is_cancelled:
            return False
        if self._ahead is None:
            return self._shadow.step()
        if not self._ahead.step(self._new_stats()):
            self._ahead = None
        return self._ahead is not None or self._shadow.is_waiting

    def open(self, language: str) -> None:
        """A document of a language is open: its grammar is loaded, lest the first keystroke waits for it."""
        load_grammar(language)

    def forget(self, document: str) -> None:
        """A document was closed: its cache may be taken over, and nothing it wrote is drafted elsewhere."""
        if isinstance(self._ahead, Unfinished) and self._ahead.task.request.document == document:
            self._ahead = None
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
            "num_weight_bytes": target.num_weight_bytes,
            "num_cache_bytes": self._slots.num_bytes + target.num_branch_bytes + self._shadow.num_bytes,
            "num_drafter_bytes": sum(drafter.num_bytes for drafter in self._drafters.values()),
        }

    def _remembering(self) -> list[Remembering]:
        return [drafter for drafter in self._drafters.values() if isinstance(drafter, Remembering)]

    def _new_stats(self) -> CompletionStats:
        return CompletionStats(device=str(self._target.device), target=self.config.target)

    def _begin(
        self, request: CompletionRequest, stats: CompletionStats, prompt: Prompt | None = None
    ) -> tuple[Task, Decoding]:
        begin = time.perf_counter()
        self._ahead = None
        cursor = cursor_of(request)
        prompt = prompt or self._prompts.build(request.document, cursor.prefix, cursor.suffix)
        slot = self._slots.acquire(request.document, prompt.tokens)
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
        )
        task = Task(request, cursor, prompt, slot, context, self.tokenizer)
        decoding = task.decoding(stats)
        stats.ms["prompt"] = (time.perf_counter() - begin) * 1e3
        return task, decoding
