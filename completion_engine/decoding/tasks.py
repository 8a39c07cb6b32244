"""Requests become tasks: each gets a prompt, the cache that shares most of it, and who writes there.

Owns the prompts and caches of all documents, and what the drafters are told of a request. Must not know what
is written, nor when.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from completion_engine.config import EngineConfig
from completion_engine.decoding.context import DecodingContext
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.place import cursor_of
from completion_engine.decoding.repository_memory import RepositoryMemory
from completion_engine.decoding.run import MAX_NEW_TOKENS
from completion_engine.decoding.sampling import Sampler
from completion_engine.decoding.slots import SlotPool
from completion_engine.decoding.task import Task
from completion_engine.drafting.device_step import DeviceDecoder
from completion_engine.drafting.draft import Drafter, Remembering
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.drafting.policy import SurvivalTable
from completion_engine.models.catalogue import anchor_lines_of, remembers_repository
from completion_engine.prompting.prompt import Prompt, RepositoryFormat
from completion_engine.prompting.prompt_choice import (
    ChosenPrompt,
    PromptBudget,
    PromptChooser,
    PromptLadder,
    affordable_context,
)
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import CompletionRequest
from completion_engine.stats import CompletionStats
from completion_engine.target_model.costs import Costs
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.rows import ROWS
from completion_engine.text_window import TextWindow


def longest_context(config: EngineConfig, target: LanguageModel) -> int:
    """Return the tokens of the longest context: as many as pay here, and a quarter of the cache at most."""
    wanted = config.context_tokens
    if wanted < 0:
        wanted = affordable_context(Costs(target.pass_ms).row_ms(ROWS))
    return min(wanted, target.capacity // 4)


class Tasks:
    """What one engine's requests are worked on with. Used on its thread.

    At most `max_new_tokens` are written after a prompt, which shows at most `window` of a document.
    """

    def __init__(
        self,
        config: EngineConfig,
        target: LanguageModel,
        tokenizer: Tokenizer,
        drafters: Mapping[str, Drafter],
        device_decoder: DeviceDecoder | None,
    ) -> None:
        """On loaded parts; `device_decoder` is as in `DecodingContext`."""
        kind = target.device.type
        self._target, self._tokenizer = target, tokenizer
        self._drafters, self._device_decoder = drafters, device_decoder
        self._drafts_trees = config.drafts_trees
        self._table = SurvivalTable()
        # A GPU takes whole steps by itself where nothing is mixed in.
        self._remembers = kind == "cpu" and remembers_repository(config.target)
        self.max_new_tokens = min(MAX_NEW_TOKENS, target.capacity // 4)
        self._slots = SlotPool(target.cache_shape, config.num_slots)
        form = RepositoryFormat(tokenizer, longest_context(config, target))
        self.window = TextWindow.for_device(kind, config.prefix_chars, config.suffix_chars)
        ladder = PromptLadder(
            tokenizer,
            self.window,
            max_prompt=target.capacity - self.max_new_tokens - 2 * max(target.widths) - form.max_tokens,
            anchor_lines=anchor_lines_of(config.target),
        )
        self._prompts = PromptChooser(ladder, form, self._slots)

    @property
    def max_context_tokens(self) -> int:
        """The longest context that stands in front of a prompt."""
        return self._prompts.max_context_tokens

    @property
    def num_cache_bytes(self) -> int:
        """Memory of the caches when they are full."""
        return self._slots.num_bytes

    def begin(
        self,
        request: CompletionRequest,
        stats: CompletionStats,
        prompt: Prompt | None = None,
        budget: PromptBudget | None = None,
    ) -> tuple[Task, Decoding]:
        """The task and its writing, with `prompt`, or else with the largest that `budget` holds."""
        cursor = cursor_of(request)
        text = cursor.prefix, cursor.suffix
        chosen = (
            ChosenPrompt(prompt) if prompt else self._prompts.choose(request, *text, budget or PromptBudget())
        )
        slot = self._slots.acquire(request.document, chosen.prompt.tokens)
        self._tell_drafters(request)
        context = self._context(request)
        task = Task(request, cursor, chosen.prompt, slot, context, self._tokenizer, chosen.shows_all)
        decoding = task.decoding(stats)
        stats.is_provisional = not chosen.is_whole
        return task, decoding

    def showing_all(self, task: Task) -> Task:
        """The same place with all of the text that a prompt may show, behind the request's context."""
        if task.shows_all:
            return task
        prompt = self._prompts.whole(task.request, task.cursor.prefix, task.cursor.suffix)
        slot = self._slots.acquire(task.request.document, prompt.tokens)
        return replace(task, prompt=prompt, slot=slot, shows_all=True)

    def settle(self, request: CompletionRequest) -> Prompt:
        """The whole prompt behind the request's context, which the document has from now on."""
        cursor = cursor_of(request)
        return self._prompts.commit_context(request, cursor.prefix, cursor.suffix)

    def take_over(self, other: Tasks, document: str, prompt: Prompt) -> None:
        """Hold a copy of what `other`, on the same target, has computed of a prompt."""
        self._slots.take_over(other._slots, document, prompt.tokens)

    def num_missing(self, request: CompletionRequest) -> int:
        """Tokens to compute before somebody is answered with all of the text that a prompt may show."""
        cursor = cursor_of(request)
        return self._prompts.num_missing(request, cursor.prefix, cursor.suffix)

    def forget(self, document: str) -> None:
        """A document was closed: its cache may be taken over, and nothing it wrote is drafted elsewhere."""
        self._slots.forget(document)
        self._prompts.forget(document)
        for drafter in self._remembering():
            drafter.forget(document)

    def _tell_drafters(self, request: CompletionRequest) -> None:
        """Which repository is drafted from, and whose text is begun."""
        ngram = self._drafters.get("ngram")
        if isinstance(ngram, NgramDrafter):
            ngram.index, ngram.document = request.index, request.indexed_as or request.document
        for drafter in self._remembering():
            drafter.enter(request.recent_scope or request.document, request.document)

    def _context(self, request: CompletionRequest) -> DecodingContext:
        """What writes as the request asks."""
        num_tokens = self._tokenizer.num_tokens
        return DecodingContext(
            self._target,
            Sampler(num_tokens, request.temperature, request.seed),
            tuple(self._drafters.values()),
            self._table,
            self._drafts_trees,
            self._device_decoder,
            RepositoryMemory.for_request(request, num_tokens, is_usual=self._remembers),
            weighs=self._target.device.type == "cpu" and request.eagerness < 1,
        )

    def _remembering(self) -> list[Remembering]:
        return [drafter for drafter in self._drafters.values() if isinstance(drafter, Remembering)]
