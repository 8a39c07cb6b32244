"""How much text around the cursor a prompt shows: all of it where that is computed in time, else less.

Owns the ladder of windows and the choice among them, a pure function of prompts, of how much of each is
cached, and of the price of a prompt's token. Knows no cache and no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from completion_engine.prompting.prompt import GROWTH, Prompt, PromptBuilder
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.text_window import TextWindow

SHARES = (1.0, 0.71, 0.5, 0.35, 0.25, 0.18, 0.125)
"""Windows as shares of the whole one, the largest first. They have fixed sizes, so that a key typed later
meets the same one."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a prompt may take: `ms` for all of its tokens that are missing, each of which takes `token_ms`.

    In `soon_ms` it delays nobody.
    """

    ms: float = float("inf")
    token_ms: float = 0.0
    soon_ms: float = float("inf")

    def holds(self, num_missing: int) -> bool:
        """Whether so many tokens are computed in time."""
        return num_missing * self.token_ms <= self.ms

    def is_soon(self, num_missing: int) -> bool:
        """Whether so many tokens delay nobody."""
        return num_missing * self.token_ms <= self.soon_ms


@dataclass(frozen=True, slots=True)
class ChosenPrompt:
    """A prompt for now; whether it shows all of the text that it may, and behind the wanted context."""

    prompt: Prompt
    is_whole: bool = True
    has_context: bool = True

    @property
    def shows_all(self) -> bool:
        """Whether no better prompt is to be computed for the place."""
        return self.is_whole and self.has_context


class PromptWindows:
    """The prompts of each place, one for each window."""

    def __init__(self, tokenizer: Tokenizer, window: TextWindow, **more: Any) -> None:
        """The whole window, and what else `PromptBuilder` takes.

        A smaller window stays as long as the whole one would: to slide is to compute it anew.
        """
        self._builders = [
            PromptBuilder(
                tokenizer, window.scaled(share), max_chars=round(GROWTH * window.num_before), **more
            )
            for share in SHARES
        ]

    def whole(self, document: str, prefix: str, suffix: str, context: tuple[int, ...] = ()) -> Prompt:
        """The prompt with the whole window, behind the tokens of a context."""
        return self._builders[0].build(document, prefix, suffix, context)

    def choose(  # noqa: PLR0913 - a place, what it may take, and what stands in front
        self,
        document: str,
        prefix: str,
        suffix: str,
        budget: Budget,
        num_missing: Callable[[Prompt], int],
        context: tuple[int, ...] = (),
    ) -> ChosenPrompt:
        """The largest window that is there soon, else the largest in the budget, else the smallest."""
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
        return ChosenPrompt(chosen, is_whole=chosen == whole)

    def forget(self, document: str) -> None:
        """Drop what is known of a closed document."""
        for builder in self._builders:
            builder.forget(document)
