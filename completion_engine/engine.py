"""The engine: completion requests answered by one target, which moves on where the way it runs fails.

Owns loading, and the rung that the target runs on; `TargetEngine` does the work. Does not depend on LSP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from completion_engine.config import EngineConfig
from completion_engine.cutting.tree import load_grammar
from completion_engine.decoding.background import NextLine
from completion_engine.decoding.ending import TextRules
from completion_engine.decoding.loop import Decoding
from completion_engine.drafting.drafts import Drafter
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.errors import SlipstreamError
from completion_engine.loading.drafters import build_drafters
from completion_engine.loading.gpu_target import LoadOptions
from completion_engine.loading.model import ladder_for
from completion_engine.loading.rungs import Ladder, forget_frames
from completion_engine.loading.stored_files import load_or_repair
from completion_engine.models import ModelStore
from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.request import (
    Cancellation,
    CancelledError,
    Completion,
    CompletionRequest,
    Progress,
    ShouldStop,
)
from completion_engine.runtime import give_back
from completion_engine.target_engine import TargetEngine
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
        note = self._ladder.note if self._ladder is not None else lambda _: None
        self.on_target = TargetEngine(self.config, target, self.tokenizer, drafters, note)

    @classmethod
    def load(
        cls,
        config: EngineConfig,
        report: Progress | None = None,
        should_stop: ShouldStop | None = None,
        *,
        warms_up: bool = True,
    ) -> CompletionEngine:
        """Fetch the target if it is not there, and make it ready: in minutes, or seconds if it is there.

        Damaged files are made anew. `warms_up` as in `from_folder`.

        Raises SlipstreamError with advice when that fails.
        """

        def load() -> CompletionEngine:
            folder = ModelStore().ensure(config.target, report, should_stop)
            return cls.from_folder(folder, config, report, should_stop, warms_up=warms_up)

        return load_or_repair(config.target, load)

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
        options = LoadOptions(folder, num_slots=config.num_slots, text=text)
        ladder = ladder_for(options, config.device, config.dtype)

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
        self.target.rehearse()
        request = CompletionRequest(*_WARM_UP_TEXT, _WARM_UP_LANGUAGE, deadline_ms=0)
        if self.target.device.type == "cpu":
            index = NgramIndex([("", self.tokenizer.encode(request.prefix * 2))])
            request = replace(request, index=index, indexed_as="-", repository_memory="on")
        self.open(request.language)
        self.on_target.write(request, NextLine(""), _NUM_WARM_UP_TOKENS)
        self.forget(request.document)

    @property
    def target(self) -> LanguageModel:
        """The model that verifies."""
        return self.on_target.target

    @property
    def rung(self) -> str:
        """The way the target runs, which its bits depend on."""
        return str(self._ladder.rung) if self._ladder else str(self.target.device)

    def beside(self, **changes: Any) -> CompletionEngine:
        """Return another engine on the same target, with `changes` of the configuration, to compare both.

        It has the same room for context, which otherwise follows from the pass times when it is made.
        """
        same = replace(self.config, context_tokens=self.on_target.preparation.context_room)
        return CompletionEngine(replace(same, **changes), self.target, self.tokenizer)

    def share_recent(self, other: CompletionEngine) -> None:
        """Draft from the recent completions of both engines from now on, if they have the same tokens."""
        mine, theirs = (engine.on_target.drafters.get("ngram") for engine in (self, other))
        is_same = self.tokenizer.fingerprint == other.tokenizer.fingerprint
        if is_same and isinstance(mine, NgramDrafter) and isinstance(theirs, NgramDrafter):
            mine.share_recent(theirs)

    def complete(self, request: CompletionRequest) -> Completion:
        """Return the verified completion at the request's cursor; empty text when nothing is worth showing.

        Raises CancelledError after the present step when the request is cancelled.
        """
        return self._on_any_rung(lambda on: on.complete(request))

    def prepare(self, request: CompletionRequest, prompt: Prompt | None = None) -> None:
        """Compute the keys and values of the request's prompt, write nothing; `prompt` is as in `write`."""
        self._on_any_rung(lambda on: on.prepare(request, prompt))

    def prepare_context(self, request: CompletionRequest, like: CompletionEngine | None = None) -> None:
        """Do what `prepare` does with the request's context in front, which its document has from now on.

        The prompt is copied as far as `like`, an engine on the same target, has computed it.
        """
        preparation = self.on_target.preparation
        prompt = preparation.commit_context(request)
        if like is not None and like.rung == self.rung:
            preparation.copy_prompt_from(like.on_target.preparation, request.document, prompt)
        self.prepare(request, prompt)

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """Prefetch for a request that is likely soon: `idle` computes the prompt that it would get.

        Where it `writes`, its completion is written next. The whole prompt comes last.
        """
        self._on_any_rung(lambda on: on.prefetch(request, writes=writes))

    def is_in_time(self, request: CompletionRequest) -> bool:
        """Return whether the request would be answered soon, by the whole prompt."""
        return self.on_target.preparation.is_in_time(request)

    def write(
        self, request: CompletionRequest, rules: TextRules, max_tokens: int, prompt: Prompt | None = None
    ) -> Decoding:
        """Write bare tokens at the request's cursor under other rules and no deadline, for measurements.

        `prompt` replaces the one that would be built.
        """
        return self._on_any_rung(lambda on: on.write(request, rules, max_tokens, prompt))

    def idle(self, cancellation: Cancellation, *, is_late: bool = False) -> bool:
        """Run one step of background work: write on after an answer, prefetch, or check an answer.

        A step stays short where several windows share the engine. A request ends its pass at once, unless it
        needs the result of that pass; where the work `is_late`, no request does. Return False when nothing is
        left.
        """
        if cancellation.is_cancelled:
            return False
        return self._on_any_rung(lambda on: on.idle(cancellation, is_late=is_late))

    def take_grown(self) -> CompletionRequest | None:
        """Return the request whose answer would show more by now, once; None without news."""
        return self.on_target.take_grown()

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        """Return the next edit that the user is likely to want, or none.

        Cached completions stay. Raises CancelledError within a step when the request is cancelled.
        """
        return self.on_target.propose_edit(request)

    def open(self, language: str) -> None:
        """Load the grammar of an open document's language before the first keystroke needs it."""
        load_grammar(language)

    def forget(self, document: str) -> None:
        """Release the cache of a closed document, and drop its text from all drafters."""
        self.on_target.forget(document)

    def describe(self) -> dict[str, Any]:
        """Describe what runs here, for `stats` and `doctor`."""
        rung = {"rung": self._ladder.rung.name, "rung_reason": self._ladder.reason} if self._ladder else {}
        return {**self.on_target.describe(), **rung}

    def _on_any_rung(self, work: Callable[[TargetEngine], R]) -> R:
        """Return what `work` returns; where a GPU fails under it, on the next rung, from the beginning."""
        while True:
            try:
                return work(self.on_target)
            except (CancelledError, SlipstreamError):
                raise
            except Exception as error:
                if self._ladder is None or not self._ladder.may_leave:
                    raise
                self._descend(self._ladder, error)

    def _descend(self, ladder: Ladder[LanguageModel], error: Exception) -> None:
        """Load the target on the next rung, once nothing holds what lies on the one that failed."""
        forget_frames(error)
        del self.on_target
        ladder.leave(error)

        def build(target: LanguageModel) -> None:
            self._take(target, build_drafters(self.config, target, self.tokenizer, note=ladder.note))

        ladder.climb(build)
