"""Prepares a request for decoding: its prompt, the KV cache that holds most of it, and the setup.

Owns the prompts and caches of all documents of one engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from completion_engine.config import EngineConfig
from completion_engine.decoding.ending import MAX_NEW_TOKENS
from completion_engine.decoding.loop import Decoding, DecodingSetup
from completion_engine.decoding.picking import RepositoryBias
from completion_engine.decoding.reuse import Slot, SlotPool
from completion_engine.drafting.drafts import Drafter, DraftScope
from completion_engine.drafting.policy import AcceptanceTable
from completion_engine.models.catalogue import remembers_repository
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.prompt_choice import (
    MAX_CONTEXT_TOKENS,
    ChosenPrompt,
    PromptBudget,
    PromptChooser,
    PromptWindows,
    affordable_context,
)
from completion_engine.prompting.repository_format import RepositoryFormat
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import CompletionRequest, CompletionStats
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.text_window import TextWindow


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request with its prompt, slot and setup; `decode` can be called several times."""

    request: CompletionRequest
    prompt: Prompt
    slot: Slot
    setup: DecodingSetup
    tokenizer: Tokenizer
    shows_window: bool = True  # the prompt shows the full text window
    shows_all: bool = True  # it also has the wanted context in front

    def decode(self, stats: CompletionStats, slot: Slot | None = None) -> Decoding:
        """Begin a completion. Its first tokens are reused from the past completion of `slot`, by default the
        own.
        """
        written = Written(self.tokenizer, self.prompt.healed)
        return Decoding(self.setup, slot or self.slot, self.prompt, written, stats)


class RequestPreparation:
    """The prompts, caches and drafters of one engine's requests. Used on its thread.

    At most `max_new_tokens` are written after a prompt, which shows at most `text_window` of a document.
    """

    def __init__(
        self,
        config: EngineConfig,
        target: LanguageModel,
        tokenizer: Tokenizer,
        drafters: Mapping[str, Drafter],
    ) -> None:
        kind = target.device.type
        self._target, self._tokenizer = target, tokenizer
        self._drafters, self._drafts_trees = tuple(drafters.values()), config.drafts_trees
        self._has_fixed_context = config.context_tokens >= 0
        self._table = AcceptanceTable()
        # On a GPU the bias is off by default: it needs the logits of all tokens on the host.
        self._is_bias_usual = kind == "cpu" and remembers_repository(config.target)
        self.max_new_tokens = min(MAX_NEW_TOKENS, target.capacity // 4)
        self.text_window = TextWindow.for_device(kind, config.prefix_chars, config.suffix_chars)
        self._slots = SlotPool(target.cache_shape, config.num_slots)
        form = RepositoryFormat(tokenizer, _longest_context(config, target))
        windows = PromptWindows(
            tokenizer,
            self.text_window,
            max_prompt=target.capacity - self.max_new_tokens - 2 * max(target.widths) - form.max_front_tokens,
        )
        self._prompts = PromptChooser(windows, form, self._slots)

    @property
    def context_space(self) -> int:
        """The tokens of context that fit in front of a prompt."""
        return self._prompts.max_context_tokens

    @property
    def max_context_tokens(self) -> int:
        """The most tokens of context that pay; more when the machine turns out to be quicker than at load."""
        if self._has_fixed_context:
            return self.context_space
        return min(self.context_space, affordable_context(self._target.least_prompt_token_ms))

    @property
    def num_cache_bytes(self) -> int:
        """Memory of the caches when they are full."""
        return self._slots.num_bytes

    def prepare_request(
        self, request: CompletionRequest, prompt: Prompt | None = None, *, waits: bool = False
    ) -> PreparedRequest:
        """Return a request prepared with `prompt`, by default with the full one.

        If the request `waits` for an answer, its prompt is the largest that can be computed in time.
        """
        if prompt is None:
            budget = PromptBudget.of(request, self._target.prompt_token_ms) if waits else PromptBudget()
            chosen = self._prompts.choose(request, request.text_before, request.text_after, budget)
        else:
            chosen = ChosenPrompt(prompt)
        return self._prepared(request, chosen, self._setup(request))

    def with_larger_prompt(self, prepared: PreparedRequest) -> PreparedRequest:
        """Return the same request with the largest prompt that can be computed within its patience."""
        request = prepared.request
        patience = PromptBudget(request.patience_ms, self._target.prompt_token_ms, request.patience_ms)
        chosen = self._prompts.choose(request, request.text_before, request.text_after, patience)
        return self._prepared(request, chosen, prepared.setup)

    def with_whole_prompt(self, prepared: PreparedRequest) -> PreparedRequest:
        """Return the same request with the full text window and its own context in the prompt."""
        request = prepared.request
        whole = self._prompts.whole(request, request.text_before, request.text_after)
        return self._prepared(request, ChosenPrompt(whole), prepared.setup)

    def _prepared(
        self, request: CompletionRequest, chosen: ChosenPrompt, setup: DecodingSetup
    ) -> PreparedRequest:
        slot = self._slots.acquire(request.document, chosen.prompt.tokens)
        return PreparedRequest(
            request, chosen.prompt, slot, setup, self._tokenizer, chosen.shows_window, chosen.shows_all
        )

    def commit_context(self, request: CompletionRequest) -> Prompt:
        """Put the request's context in front of its document from now on; return the full prompt with it."""
        return self._prompts.commit_context(request, request.text_before, request.text_after)

    def copy_prompt_from(self, other: RequestPreparation, document: str, prompt: Prompt) -> None:
        """Copy the cached part of a prompt from `other`, which has the same target."""
        self._slots.copy_from(other._slots, document, prompt.tokens)

    def is_in_time(self, request: CompletionRequest) -> bool:
        """Return whether the full prompt can be computed without delaying an answer."""
        num_missing = self._prompts.num_missing(request, request.text_before, request.text_after)
        return PromptBudget.of(request, self._target.prompt_token_ms).is_soon(num_missing)

    def forget(self, document: str) -> None:
        """Release the cache of a closed document, and drop its text from all drafters."""
        self._slots.forget(document)
        self._prompts.forget(document)
        for drafter in self._drafters:
            drafter.forget(document)

    def _setup(self, request: CompletionRequest) -> DecodingSetup:
        num_tokens, document = self._tokenizer.num_tokens, request.document
        return DecodingSetup(
            self._target,
            num_tokens,
            self._drafters,
            self._table,
            self._drafts_trees,
            bias_for(request, num_tokens, is_usual=self._is_bias_usual),
            scores=request.filters_by_confidence or request.num_candidates > 1,
            scope=DraftScope(
                request.recent_scope or document, document, request.index, request.indexed_as or document
            ),
        )


def bias_for(request: CompletionRequest, num_tokens: int, *, is_usual: bool) -> RepositoryBias | None:
    """Return the bias for a request, with a view of its index now; None if it is off.

    The setting `auto` means on where the bias `is_usual`.
    """
    is_wanted = request.repository_memory == "on" or (request.repository_memory == "auto" and is_usual)
    if request.index is None or not is_wanted:
        return None
    view = request.index.view(exclude=request.indexed_as or request.document)
    return RepositoryBias(view, num_tokens) if view.parts else None


def _longest_context(config: EngineConfig, target: LanguageModel) -> int:
    """Return the tokens of context for which prompts leave space, at most a quarter of the cache."""
    wanted = config.context_tokens
    if wanted < 0:  # a machine that is too slow now may have been busy at load
        wanted = max(MAX_CONTEXT_TOKENS, affordable_context(target.prompt_token_ms))
    return min(wanted, target.capacity // 4)
