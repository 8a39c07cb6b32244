"""The engine: one target, its caches and drafters, answering completion requests on one thread.

Text and limits in, verified text out. Knows nothing of LSP or editors.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from completion_engine.ahead import Expected, NextLine, Unfinished
from completion_engine.alternatives import decoding_of, rank_branches
from completion_engine.attention import ROWS
from completion_engine.config import EngineConfig
from completion_engine.decoding import Decoding, Finish, Means, TextRules
from completion_engine.drafting.draft import Drafter
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.drafting.policy import SurvivalTable
from completion_engine.drafting.trained import strider_of
from completion_engine.language_model import LanguageModel
from completion_engine.loading import load_language_model
from completion_engine.models import CATALOGUE, ModelStore
from completion_engine.models.catalogue import DEFAULT_ANCHOR_LINES
from completion_engine.prompt import Prompt, PromptBuilder
from completion_engine.provenance import Origins
from completion_engine.request import Cancellation, CompletionRequest
from completion_engine.running import Limits, run
from completion_engine.sampling import Sampler
from completion_engine.slots import SlotPool
from completion_engine.sources import Report, ShouldStop, build_drafters
from completion_engine.stats import Completion, CompletionStats
from completion_engine.stopping import StopRules
from completion_engine.suggestion import polish
from completion_engine.suggestions.place import Place
from completion_engine.task import Task
from completion_engine.tokenizer import Tokenizer, load_tokenizer

PREFIX_CHARS = {"cpu": 2400, "cuda": 12_000}
SUFFIX_CHARS = {"cpu": 800, "cuda": 3000}
MAX_NEW_TOKENS = 256
_MAX_TOKENS_AHEAD = 32  # behind a suggestion
_REHEARSED = ("def add(first, second):\n    return first + second\n\n\nadd(", "\n")
_NUM_REHEARSED = 8
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
            anchor_lines=_anchor_lines(config.target),
        )
        self._table = SurvivalTable()
        self._drafters = build_drafters(config, target, tokenizer) if drafters is None else drafters
        may_stride = config.drafts_trees and not config.plans_on_host
        self._strider = strider_of(self._drafters, target, tokenizer.num_tokens) if may_stride else None
        self._ahead: Unfinished | Expected | None = None

    @classmethod
    def load(
        cls,
        config: EngineConfig,
        report: Report | None = None,
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
        report: Report | None = None,
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
        tell("Model ready", 2, 2)
        return engine

    def _rehearse(self) -> None:
        """Write a few tokens that nobody sees, lest a kernel is compiled under the first keystroke."""
        request = CompletionRequest(*_REHEARSED, "python", deadline_ms=0)
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
        rules = StopRules(task.place)
        limits = Limits(
            min(request.max_tokens, self._max_new_tokens),
            self._target.ms_of(ROWS) * _PASS_MARGIN,
            begin + request.deadline_ms / 1e3 if request.deadline_ms > 0 else float("inf"),
            begin + max(request.patience_ms, request.deadline_ms) / 1e3,
        )
        finish = _run(decoding, rules, limits, request)
        completion = self._answer(task, decoding, finish, begin)
        if request.num_candidates > 1:
            others = self._alternatives(task, decoding, finish, limits)
            completion = replace(
                completion, alternatives=_distinct(others, completion, request.num_candidates)
            )
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
        _run(decoding, rules, Limits(min(max_tokens, self._max_new_tokens)), request)
        return decoding

    def idle(self, cancellation: Cancellation) -> bool:
        """One step of background work: write on where an answer ended, or prepare what is expected.

        False when nothing is left.
        """
        if self._ahead is None or cancellation.is_cancelled:
            return False
        if not self._ahead.step(self._new_stats()):
            self._ahead = None
        return self._ahead is not None

    def forget(self, document: str) -> None:
        """A document was closed: its cache may be taken over."""
        self._slots.forget(document)
        self._prompts.forget(document)

    def describe(self) -> dict[str, Any]:
        """What runs here, for `stats` and `doctor`."""
        target = self._target
        return {
            "state": "ready",
            "target": self.config.target,
            "device": str(target.device),
            "dtype": target.precision.name,
            "drafters": list(self._drafters),
            "exactness": "row-invariant" if target.is_row_invariant else "fixed width",
            "plans": "on the device" if self._strider else "on the host",
            "pass_ms": {str(width): round(cost, 2) for width, cost in target.pass_ms.items()},
            "capacity": target.capacity,
            "num_weight_bytes": target.num_weight_bytes,
            "num_cache_bytes": self._slots.num_bytes,
            "num_drafter_bytes": sum(drafter.num_bytes for drafter in self._drafters.values()),
        }

    def _new_stats(self) -> CompletionStats:
        return CompletionStats(device=str(self._target.device), target=self.config.target)

    def _begin(
        self, request: CompletionRequest, stats: CompletionStats, prompt: Prompt | None = None
    ) -> tuple[Task, Decoding]:
        begin = time.perf_counter()
        self._ahead = None
        place = _place_of(request)
        prompt = prompt or self._prompts.build(request.document, place.prefix, place.suffix)
        slot = self._slots.acquire(request.document, prompt.tokens)
        sampler = Sampler(self.tokenizer.num_tokens, request.temperature, request.seed)
        ngram = self._drafters.get("ngram")
        if isinstance(ngram, NgramDrafter):
            ngram.index, ngram.document = request.index, request.indexed_as or request.document
        means = Means(
            self._target,
            sampler,
            tuple(self._drafters.values()),
            self._table,
            self.config.drafts_trees,
            self._strider,
        )
        task = Task(request, place, prompt, slot, means, self.tokenizer)
        decoding = task.decoding(stats)
        stats.ms["prompt"] = (time.perf_counter() - begin) * 1e3
        return task, decoding

    def _alternatives(
        self, task: Task, first: Decoding, finish: Finish, limits: Limits
    ) -> Iterator[Completion]:
        """Other texts at the same place, the likeliest first, until patience ends; not all differ."""
        patient = replace(limits, deadline_at=limits.patience_at)
        if finish.reason == "deadline":  # what the deadline cut off is the likeliest of all
            begin, first = time.perf_counter(), task.decoding(self._new_stats())
            finish = _run(first, StopRules(task.place), patient, task.request)
            yield self._answer(task, first, finish, begin)
        for branch in rank_branches(task, first, finish.num_chars):
            begin = time.perf_counter()
            if begin > limits.patience_at:
                return
            decoding = decoding_of(task, first, branch, self._new_stats())
            end = _run(decoding, StopRules(task.place), patient, task.request)
            if end.reason != "deadline" or end.num_chars >= decoding.written.ends[branch.num_shared]:
                yield self._answer(task, decoding, end, begin)

    def _answer(self, task: Task, decoding: Decoding, finish: Finish, begin: float) -> Completion:
        polishing = time.perf_counter()
        stats = decoding.stats
        generated = decoding.written.text[: finish.num_chars]
        suggestion = polish(task.place, generated, is_complete=True)  # `num_chars` is a sensible end already
        stats.num_tokens = sum(end <= finish.num_chars for end in decoding.written.ends)
        stats.finish_reason = finish.reason
        written = zip(decoding.written.ends, decoding.origins, strict=True)
        pieces = Origins(self.tokenizer, task.request.index).pieces(suggestion.text, written)
        now = time.perf_counter()
        stats.ms["postprocess"] = (now - polishing) * 1e3
        stats.ms["total"] = (now - begin) * 1e3
        # A blank text was blank because something ended it at once: that is the reason worth telling.
        rule = finish.rule or suggestion.rule if suggestion.rule in {"", "blank"} else suggestion.rule
        return Completion(suggestion.text, suggestion.num_replaced, stats, pieces, rule)


def _run(decoding: Decoding, rules: TextRules, limits: Limits, request: CompletionRequest) -> Finish:
    """`run` for a request; the drafters learn from what was written, whatever ends it."""
    try:
        return run(decoding, rules, limits, request.cancellation)
    finally:
        decoding.end()


def _distinct(others: Iterable[Completion], shown: Completion, num_candidates: int) -> tuple[Completion, ...]:
    """The first texts that differ from what is shown and from each other, as many as are wanted beside it."""
    known = {"", shown.text}
    found: list[Completion] = []
    for other in others:
        if other.text not in known:
            known.add(other.text)
            found.append(other)
        if len(found) + 1 >= num_candidates:
            break
    return tuple(found)


def _anchor_lines(target: str) -> int:
    """The best anchor is a property of the model; one that is not catalogued gets the usual."""
    spec = CATALOGUE.get(target)
    return spec.anchor_lines if spec else DEFAULT_ANCHOR_LINES


def _place_of(request: CompletionRequest) -> Place:
    """The cursor's place, in text that any tokenizer takes: lone surrogates become U+FFFD."""

    def clean(text: str) -> str:
        return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    return Place(clean(request.prefix), clean(request.suffix), request.language, request.multiline)
