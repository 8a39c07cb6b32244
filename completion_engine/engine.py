"""The engine: one target, its caches and drafters, answering completion requests on one thread.

Text and limits in, verified text out. Knows nothing of LSP or editors.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from completion_engine.config import EngineConfig
from completion_engine.decoding import Decoding, Finish, Limits, Means, TextRules, run
from completion_engine.drafting.draft import Drafter, DraftToken
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.drafting.policy import SurvivalTable
from completion_engine.language_model import LanguageModel, load_language_model
from completion_engine.models import CATALOGUE, ModelStore
from completion_engine.models.catalogue import DEFAULT_ANCHOR_LINES
from completion_engine.prompt import Prompt, PromptBuilder
from completion_engine.request import Cancellation, CompletionRequest
from completion_engine.sampling import Sampler
from completion_engine.slots import SlotPool
from completion_engine.sources import Report, ShouldStop, build_drafters
from completion_engine.stats import Completion, CompletionStats, Piece
from completion_engine.stopping import StopRules
from completion_engine.suggestion import polish
from completion_engine.suggestions.place import Place
from completion_engine.tokenizer import Tokenizer, load_tokenizer
from completion_engine.written import Written
from ngram_cache import NgramIndex

PREFIX_CHARS = {"cpu": 2400, "cuda": 12_000}
SUFFIX_CHARS = {"cpu": 800, "cuda": 3000}
MAX_NEW_TOKENS = 256
_PASS_MARGIN = 1.2  # a pass takes this much longer than measured in quiet, in the deadline's view


@dataclass(slots=True)
class _Unfinished:
    """Writing that a deadline cut short; continued when there is nothing else to do."""

    decoding: Decoding
    rules: StopRules
    max_tokens: int


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
        self._unfinished: _Unfinished | None = None

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
    ) -> CompletionEngine:
        """An engine on the model in `folder`."""
        tell = report or (lambda *_: None)
        tell("Loading the tokenizer", 0, 2)
        tokenizer = load_tokenizer(folder)
        tokenizer.tokens_towards(b"x")  # builds its tables now, not under the first keystroke
        tell("Loading the model", 1, 2)
        target = load_language_model(folder, config.device, config.dtype)
        drafters = build_drafters(config, target, tokenizer, report, should_stop)
        tell("Model ready", 2, 2)
        return cls(config, target, tokenizer, drafters)

    @property
    def target(self) -> LanguageModel:
        """The model that verifies."""
        return self._target

    def complete(self, request: CompletionRequest) -> Completion:
        """The verified completion at the request's cursor; empty text when nothing is worth showing.

        Raises CancelledError as soon as the step under way when the request is cancelled is over.
        """
        begin = time.perf_counter()
        self._unfinished = None
        stats = CompletionStats(device=str(self._target.device), target=self.config.target)
        place = _place_of(request)
        rules = StopRules(place)
        decoding = self._begin(request, place, stats)
        limits = Limits(
            min(request.max_tokens, self._max_new_tokens),
            self._target.pass_ms[self._target.widths[0]] * _PASS_MARGIN,
            begin + request.deadline_ms / 1e3 if request.deadline_ms > 0 else float("inf"),
            begin + max(request.patience_ms, request.deadline_ms) / 1e3,
        )
        try:
            finish = run(decoding, rules, limits, request.cancellation)
        finally:
            decoding.end()
        if finish.reason == "deadline":
            self._unfinished = _Unfinished(decoding, rules, limits.max_tokens)
        return self._answer(request, place, decoding, finish, begin)

    def prepare(self, request: CompletionRequest, prompt: Prompt | None = None) -> None:
        """Compute the keys and values of the request's prompt and write nothing; `prompt` as in `write`."""
        stats = CompletionStats(device=str(self._target.device), target=self.config.target)
        self._begin(request, _place_of(request), stats, prompt).prepare()

    def write(
        self, request: CompletionRequest, rules: TextRules, max_tokens: int, prompt: Prompt | None = None
    ) -> Decoding:
        """The bare tokens at the request's cursor under other rules and no deadline, for measurements.

        `prompt` takes the place of the one that would be built.
        """
        stats = CompletionStats(device=str(self._target.device), target=self.config.target)
        decoding = self._begin(request, _place_of(request), stats, prompt)
        run(decoding, rules, Limits(min(max_tokens, self._max_new_tokens)), request.cancellation)
        decoding.end()
        return decoding

    def idle(self, cancellation: Cancellation) -> bool:
        """One step of background work: write on where a deadline cut. False when nothing is left."""
        work = self._unfinished
        if work is None or cancellation.is_cancelled:
            return False
        if work.decoding.finish(work.rules, work.max_tokens) is not None:
            work.decoding.end()
            self._unfinished = None
            return False
        work.decoding.step()
        return True

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
            "pass_ms": {str(width): round(cost, 2) for width, cost in target.pass_ms.items()},
            "capacity": target.capacity,
            "num_weight_bytes": target.num_weight_bytes,
            "num_cache_bytes": self._slots.num_bytes,
            "num_drafter_bytes": sum(drafter.num_bytes for drafter in self._drafters.values()),
        }

    def _begin(
        self, request: CompletionRequest, place: Place, stats: CompletionStats, prompt: Prompt | None = None
    ) -> Decoding:
        begin = time.perf_counter()
        prompt = prompt or self._prompts.build(request.document, place.prefix, place.suffix)
        slot = self._slots.acquire(request.document, prompt.tokens)
        sampler = Sampler(self.tokenizer.num_tokens, request.temperature, request.seed)
        ngram = self._drafters.get("ngram")
        if isinstance(ngram, NgramDrafter):
            ngram.index, ngram.document = request.index, request.document
        written = Written(self.tokenizer, prompt.healed)
        means = Means(
            self._target, sampler, tuple(self._drafters.values()), self._table, self.config.drafts_trees
        )
        decoding = Decoding(means, slot, prompt, written, stats)
        stats.ms["prompt"] = (time.perf_counter() - begin) * 1e3
        return decoding

    def _answer(
        self, request: CompletionRequest, place: Place, decoding: Decoding, finish: Finish, begin: float
    ) -> Completion:
        polishing = time.perf_counter()
        stats = decoding.stats
        generated = decoding.written.text[: finish.num_chars]
        suggestion = polish(place, generated, is_complete=True)  # `num_chars` is a sensible end already
        stats.num_tokens = sum(end <= finish.num_chars for end in decoding.written.ends)
        stats.finish_reason = finish.reason
        pieces = self._pieces(request.index, decoding, suggestion.text)
        now = time.perf_counter()
        stats.ms["postprocess"] = (now - polishing) * 1e3
        stats.ms["total"] = (now - begin) * 1e3
        # A blank text was blank because something ended it at once: that is the reason worth telling.
        rule = finish.rule or suggestion.rule if suggestion.rule in {"", "blank"} else suggestion.rule
        return Completion(suggestion.text, suggestion.num_replaced, stats, pieces, rule)

    def _pieces(self, index: NgramIndex | None, decoding: Decoding, text: str) -> tuple[Piece, ...]:
        """The shown text cut where its origin changes. Rules may have cut it, so it is read along."""
        pieces: list[Piece] = []
        start = 0
        for end, origin in zip(decoding.written.ends, decoding.origins, strict=True):
            chunk = text[start:end]
            start = end
            if not chunk:
                continue
            source = origin.source if origin else "target"
            evidence = self._evidence(index, origin)
            if pieces and (pieces[-1].source, pieces[-1].evidence) == (source, evidence):
                pieces[-1] = Piece(pieces[-1].text + chunk, source, evidence)
            else:
                pieces.append(Piece(chunk, source, evidence))
        return tuple(pieces)

    def _evidence(self, index: NgramIndex | None, origin: DraftToken | None) -> str:
        """Where a drafted token was read: `path:line`, or the kind of place."""
        if origin is None:
            return ""
        if origin.document < 0 or index is None:
            return {"prompt": "this file", "recent": "recent suggestions"}.get(origin.origin, "")
        before = self.tokenizer.spell(index.tokens_before(origin.document, origin.offset).tolist())
        return f"{index.path_of(origin.document)}:{before.count(10) + 1}"


def _anchor_lines(target: str) -> int:
    """The best anchor is a property of the model; one that is not catalogued gets the usual."""
    spec = CATALOGUE.get(target)
    return spec.anchor_lines if spec else DEFAULT_ANCHOR_LINES


def _place_of(request: CompletionRequest) -> Place:
    """The cursor's place, in text that any tokenizer takes: lone surrogates become U+FFFD."""

    def clean(text: str) -> str:
        return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    return Place(clean(request.prefix), clean(request.suffix), request.language, request.multiline)
