"""Chooses the prompt of a request: the size of its text window, and the repository context in front.

The largest text window whose prompt can be computed in time wins. A new context is put in front once this
needs about as few passes as keeping the present one; until then the engine computes it in the background.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Protocol

from completion_engine.prompting.prompt import GROWTH, Prompt, PromptBuilder
from completion_engine.prompting.repository_format import RepositoryFormat, shown_path
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import CompletionRequest
from completion_engine.text_window import TextWindow

SHARES = (1.0, 0.71, 0.5, 0.35, 0.25, 0.18, 0.125)
"""Windows as shares of the whole one, the largest first. Their sizes are fixed, so that the next key meets
the same window.
"""

MAX_CONTEXT_TOKENS = 320  # every pass attends to them: 512 more keys make a pass 7 to 9 % longer
_MIN_CONTEXT_TOKENS = 128  # a shorter context holds no snippet
_CONTEXT_STEP = 64
_MAX_CONTEXT_MS = 2_000.0  # background work for each change of a context
_LONGEST_CONTEXT_TOKENS = 4_096  # even where a prompt costs next to nothing: every pass attends to them
_AT_ONCE_MS = 50.0  # a prompt that takes no longer is in time for the usual deadline of 100 ms
WARM_SHARE = 0.5  # share of the deadline that a prompt may take without delaying the answer
_PROMPT_SHARE = 0.2  # share of the patience that a prompt may take; a longer one is replaced by a smaller one
_MAX_DOCUMENTS = 64
_NEGLIGIBLE = 8  # tokens; one pass computes them all

ContextTokens = tuple[int, ...]  # the tokens in front of a document: snippets and its path, or its path alone


def affordable_context(token_ms: float) -> int:
    """Return the most tokens of context that pay at `token_ms` per token of a prompt.

    It is 0 on a machine that is too slow. More than `MAX_CONTEXT_TOKENS` pay only where a new context delays
    no answer, as on a GPU.
    """
    if token_ms <= 0:
        return MAX_CONTEXT_TOKENS
    in_background = min(MAX_CONTEXT_TOKENS, int(_MAX_CONTEXT_MS / token_ms))
    at_once = min(_LONGEST_CONTEXT_TOKENS, int(_AT_ONCE_MS / token_ms))
    affordable = max(in_background, at_once) // _CONTEXT_STEP * _CONTEXT_STEP
    return affordable if affordable >= _MIN_CONTEXT_TOKENS else 0


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """The time for a prompt: `ms` for all tokens that are not cached, at `token_ms` each.

    A prompt that takes at most `soon_ms` does not delay the answer.
    """

    ms: float = float("inf")
    token_ms: float = 0.0
    soon_ms: float = float("inf")

    @classmethod
    def of(cls, request: CompletionRequest, token_ms: float) -> PromptBudget:
        """Return the budget for the prompt of a request that waits for an answer; unlimited without a
        deadline.
        """
        if request.deadline_ms <= 0:
            return cls()
        soon_ms = WARM_SHARE * (request.patience_ms if request.is_explicit else request.deadline_ms)
        return cls(max(soon_ms, _PROMPT_SHARE * request.patience_ms), token_ms, soon_ms)

    def holds(self, num_missing: int) -> bool:
        """Return whether `num_missing` tokens can be computed within `ms`."""
        return num_missing * self.token_ms <= self.ms

    def is_soon(self, num_missing: int) -> bool:
        """Return whether `num_missing` tokens can be computed within `soon_ms`."""
        return num_missing * self.token_ms <= self.soon_ms


@dataclass(frozen=True, slots=True)
class ChosenPrompt:
    """A prompt, whether it shows the full text window, and whether it has the request's context in front."""

    prompt: Prompt
    shows_window: bool = True
    has_context: bool = True

    @property
    def shows_all(self) -> bool:
        """Whether this is the best prompt for the cursor, so that background work need not compute a better
        one.
        """
        return self.shows_window and self.has_context


class CachedPrompts(Protocol):
    """The cached beginnings of prompts, and the past completions after them."""

    def num_missing(self, prompt: Sequence[int]) -> int:
        """Return how many tokens of a prompt are not cached."""
        ...

    def written_after(self, prompt: Sequence[int]) -> list[int]:
        """Return the tokens after a prompt in a past completion; empty if there is none."""
        ...


class PromptWindows:
    """The prompts of one cursor for text windows of several sizes."""

    def __init__(self, tokenizer: Tokenizer, window: TextWindow, **more: Any) -> None:
        """`window` is the full text window; `more` are the other arguments of `PromptBuilder`.

        Smaller windows may grow to the same size as the full one, because a new anchor means a new prompt.
        """
        max_chars = round(GROWTH * window.num_before)
        self._builders = [
            PromptBuilder(tokenizer, window.scaled(share), max_chars=max_chars, **more) for share in SHARES
        ]

    def whole(self, document: str, prefix: str, suffix: str, context: ContextTokens = ()) -> Prompt:
        """Return the prompt with the full window, and `context` in front."""
        return self._builders[0].build(document, prefix, suffix, context)

    def choose(  # noqa: PLR0913 - a cursor, the time for it, and the context in front
        self,
        document: str,
        prefix: str,
        suffix: str,
        budget: PromptBudget,
        num_missing: Callable[[Prompt], int],
        context: ContextTokens = (),
    ) -> ChosenPrompt:
        """Return the prompt with the largest window that does not delay the answer.

        If every window does, the largest within the budget is taken, else the smallest.
        """
        whole = self.whole(document, prefix, suffix, context)
        if budget.is_soon(num_missing(whole)):
            return ChosenPrompt(whole)
        smaller = (builder.build(document, prefix, suffix, context) for builder in self._builders[1:])
        prompts = [whole, *smaller]
        missing = [num_missing(prompt) for prompt in prompts]
        fitting = [
            prompt
            for fits in (budget.is_soon, budget.holds)
            for prompt, num in zip(prompts, missing, strict=True)
            if fits(num)
        ]
        chosen = fitting[0] if fitting else prompts[-1]
        return ChosenPrompt(chosen, shows_window=chosen == whole)

    def forget(self, document: str) -> None:
        """Drop the anchors of a closed document."""
        for builder in self._builders:
            builder.forget(document)


class PromptChooser:
    """Chooses the prompts of all documents, and holds the context in front of each. Used on one thread."""

    def __init__(self, windows: PromptWindows, form: RepositoryFormat, cached: CachedPrompts) -> None:
        self._windows, self._form, self._cached = windows, form, cached
        self._contexts: OrderedDict[str, ContextTokens] = OrderedDict()  # by document

    @property
    def max_context_tokens(self) -> int:
        """The most tokens of a context."""
        return self._form.max_tokens

    def choose(
        self, request: CompletionRequest, prefix: str, suffix: str, budget: PromptBudget
    ) -> ChosenPrompt:
        """Return the largest prompt within `budget`, with the request's own context once that is cheap
        enough.

        Until then the prompt has the document's previous context or none, whichever needs fewer new tokens.
        If the request has no context, the prompt has none.
        """
        wanted = self._wanted(request)

        def prompt_after(context: ContextTokens) -> ChosenPrompt:
            cursor = request.document, prefix, suffix
            chosen = self._windows.choose(*cursor, budget, self._num_missing, context)
            return replace(chosen, has_context=context == wanted[0])

        context, chosen = self._choose_context(request, wanted, prompt_after, budget)
        self._commit(request.document, context)
        return chosen

    def whole(self, request: CompletionRequest, prefix: str, suffix: str) -> Prompt:
        """Return the prompt with the full window and the request's own context."""
        return self._windows.whole(request.document, prefix, suffix, self._wanted(request)[0])

    def commit_context(self, request: CompletionRequest, prefix: str, suffix: str) -> Prompt:
        """Put the request's own context in front of its document from now on; return the same as `whole`."""
        self._commit(request.document, self._wanted(request)[0])
        return self.whole(request, prefix, suffix)

    def num_missing(self, request: CompletionRequest, prefix: str, suffix: str) -> int:
        """Return the uncached tokens of the full window, with whichever wanted context has the fewest."""
        cursor = request.document, prefix, suffix
        prompts = (self._windows.whole(*cursor, context) for context in self._wanted(request))
        return min(map(self._num_missing, prompts))

    def forget(self, document: str) -> None:
        """Drop the state of a closed document."""
        self._windows.forget(document)
        self._form.forget()
        self._contexts.pop(document, None)

    def _wanted(self, request: CompletionRequest) -> list[ContextTokens]:
        """Return the contexts to try: the request's own, the document's present one, then the path alone."""
        path = shown_path(request.indexed_as or request.document, request.language)
        own, bare = (self._form.tokens(context, path) for context in (request.context, None))
        present = self._contexts.get(request.document, bare)
        return list(dict.fromkeys((own, present, bare))) if own != bare else [bare]

    def _choose_context(
        self,
        request: CompletionRequest,
        wanted: list[ContextTokens],
        prompt_after: Callable[[ContextTokens], ChosenPrompt],
        budget: PromptBudget,
    ) -> tuple[ContextTokens, ChosenPrompt]:
        """Return a context and its prompt: the first context in `wanted` with about the fewest uncached
        tokens.

        If the user is typing a past completion, the present context is kept. A context whose full window
        delays no answer is taken at once, without building the prompts of the contexts after it.
        """
        present = self._contexts.get(request.document, wanted[-1])
        first = present if present in wanted else wanted[0]
        prompts = {first: prompt_after(first)}
        # A past completion that follows the prompt is being typed, so that no pass is needed.
        known = self._cached.written_after(prompts[first].prompt.tokens)
        is_typed = bool(known) and self._form.spell(known).startswith(prompts[first].prompt.healed)
        if len(wanted) == 1 or (is_typed and not (request.is_explicit or request.is_repeated)):
            return first, prompts[first]
        work: list[int] = []
        for context in wanted:
            chosen = prompts[context] if context in prompts else prompt_after(context)
            prompts[context] = chosen
            work.append(self._num_missing(chosen.prompt))
            if chosen.shows_window and isfinite(budget.soon_ms) and budget.is_soon(work[-1]):
                return context, chosen
        at = next(at for at, num_new in enumerate(work) if num_new <= min(work) + _NEGLIGIBLE)
        return wanted[at], prompts[wanted[at]]

    def _num_missing(self, prompt: Prompt) -> int:
        return self._cached.num_missing(prompt.tokens)

    def _commit(self, document: str, context: ContextTokens) -> None:
        self._contexts.pop(document, None)
        if context:
            self._contexts[document] = context
        while len(self._contexts) > _MAX_DOCUMENTS:
            self._contexts.popitem(last=False)
