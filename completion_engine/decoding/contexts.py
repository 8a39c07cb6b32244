"""Which repository context stands in front of a document's prompt: the one whose keys and values are there.

A request says which context it would have. It gets it once that costs no more passes than going on without;
until then its prompt is as before, and the engine computes the wanted one in idle time. Knows no repository.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Protocol

from completion_engine.config import EngineConfig
from completion_engine.prompting.context_budget import context_tokens
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.repository_format import RepositoryFormat
from completion_engine.prompting.windows import Budget, ChosenPrompt, PromptWindows
from completion_engine.request import CompletionRequest
from completion_engine.suggestions.cursor_context import CursorContext
from completion_engine.target_model.costs import Costs
from completion_engine.target_model.rows import ROWS

if TYPE_CHECKING:  # brings torch
    from completion_engine.target_model.language_model import LanguageModel

_MAX_STANDING = 64
Context = tuple[int, ...]  # the tokens in front of a document; empty for none


def longest_context(config: EngineConfig, target: LanguageModel) -> int:
    """The tokens of the longest context: as many as pay here, and a quarter of the cache at most."""
    wanted = config.context_tokens
    if wanted < 0:
        wanted = context_tokens(Costs(target.pass_ms).row_ms(ROWS))
    return min(wanted, target.capacity // 4)


class Slots(Protocol):
    """What is cached of prompts, and known of what follows them."""

    def num_missing(self, prompt: Sequence[int]) -> int:
        """Tokens of a prompt that are yet to be computed."""
        ...

    def known_after(self, prompt: Sequence[int]) -> list[int]:
        """What is known to follow a prompt."""
        ...


class Contexts:
    """The prompts of one engine's documents, with the contexts in front. Used on its thread."""

    def __init__(self, windows: PromptWindows, form: RepositoryFormat, slots: Slots) -> None:
        self._windows, self._form, self._slots = windows, form, slots
        self._standing: OrderedDict[str, Context] = OrderedDict()

    @property
    def max_tokens(self) -> int:
        """The longest context."""
        return self._form.max_tokens

    def choose(self, request: CompletionRequest, cursor: CursorContext, budget: Budget) -> ChosenPrompt:
        """The prompt for a request, with its own context where that is computed, and what `budget` holds.

        Else with the one that stood there before, or with none, whatever takes the least new work. A document
        that is to have none has none at once.
        """
        contexts = self._contexts(request)
        place = request.document, cursor.prefix, cursor.suffix

        def prompt_behind(context: Context) -> ChosenPrompt:
            chosen = self._windows.choose(*place, budget, self._num_missing, context)
            return replace(chosen, has_context=context == contexts[0])

        context, chosen = self._choose(request.document, contexts, prompt_behind, budget)
        self._stand(request.document, context)
        return chosen

    def whole(self, request: CompletionRequest, cursor: CursorContext) -> Prompt:
        """The prompt with all of the text that it may show, behind the request's own context."""
        return self._whole(request, cursor, self._contexts(request)[0])

    def settle(self, request: CompletionRequest, cursor: CursorContext) -> Prompt:
        """As `whole`; the request's own context stands in front of its document from now on."""
        self._stand(request.document, self._contexts(request)[0])
        return self.whole(request, cursor)

    def num_missing(self, request: CompletionRequest, cursor: CursorContext) -> int:
        """Tokens to compute before somebody is answered with all of the text, behind whatever context."""
        prompts = (self._whole(request, cursor, context) for context in self._contexts(request))
        return min(map(self._num_missing, prompts))

    def forget(self, document: str) -> None:
        """A document is closed."""
        self._windows.forget(document)
        self._standing.pop(document, None)

    def _contexts(self, request: CompletionRequest) -> list[Context]:
        """What may stand in front: the request's own context first, then others that may stand in for it."""
        wanted = self._form.tokens(request.context, request.indexed_as or request.document)
        standing = self._standing.get(request.document, ())
        return list(dict.fromkeys((wanted, standing, ()))) if wanted else [()]

    def _choose(
        self,
        document: str,
        contexts: list[Context],
        prompt_behind: Callable[[Context], ChosenPrompt],
        budget: Budget,
    ) -> tuple[Context, ChosenPrompt]:
        """Along a suggestion the one it was made of; else the first that takes about as little as any.

        One behind which all of the text is there soon goes before others, which are not looked at then.
        """
        standing = self._standing.get(document, ())
        first = standing if standing in contexts else contexts[0]
        prompts = {first: prompt_behind(first)}
        if len(contexts) == 1 or self._is_typed_along(prompts[first].prompt):
            return first, prompts[first]
        work: list[int] = []
        for context in contexts:
            chosen = prompts[context] if context in prompts else prompt_behind(context)
            prompts[context] = chosen
            work.append(self._num_missing(chosen.prompt))
            if chosen.is_whole and isfinite(budget.soon_ms) and budget.is_soon(work[-1]):
                return context, chosen
        at = next(at for at, num_new in enumerate(work) if num_new <= min(work) + ROWS)
        return contexts[at], prompts[contexts[at]]

    def _whole(self, request: CompletionRequest, cursor: CursorContext, context: Context) -> Prompt:
        return self._windows.whole(request.document, cursor.prefix, cursor.suffix, context)

    def _num_missing(self, prompt: Prompt) -> int:
        return self._slots.num_missing(prompt.tokens)

    def _is_typed_along(self, prompt: Prompt) -> bool:
        """Whether what follows a prompt is known, so that no pass is needed."""
        known = self._slots.known_after(prompt.tokens)
        return bool(known) and self._form.spell(known).startswith(prompt.healed)

    def _stand(self, document: str, context: Context) -> None:
        self._standing.pop(document, None)
        if context:
            self._standing[document] = context
        while len(self._standing) > _MAX_STANDING:
            self._standing.popitem(last=False)
