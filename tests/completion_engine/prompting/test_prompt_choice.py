"""The context in front of a prompt: the wanted one as soon as the whole text fits after it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import pytest

from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.prompt_choice import ChosenPrompt, PromptBudget, PromptChooser, PromptWindows
from completion_engine.request import CompletionRequest, RepositoryContext, Snippet
from completion_engine.text_window import TextWindow
from tests.completion_engine.letters import Letters

CONTEXT = tuple(range(200, 250))
ASKED = CompletionRequest(
    "line\n" * 200,
    "end\n" * 200,
    "python",
    "a.py",
    context=RepositoryContext("r", (Snippet("b.py", "b"),)),
)
HURRY = PromptBudget(ms=300.0, token_ms=1.0, soon_ms=50.0)
PATIENCE = PromptBudget()


class Form:
    """Always the same context."""

    max_tokens = len(CONTEXT)

    def tokens(self, context: RepositoryContext | None, path: str) -> tuple[int, ...]:
        return CONTEXT if context else ()


class Cached:
    """Slots that hold the beginnings of some prompts."""

    def __init__(self) -> None:
        self.held: list[Sequence[int]] = []

    def num_missing(self, prompt: Sequence[int]) -> int:
        return len(prompt) - max((num_shared(held, prompt) for held in self.held), default=0)

    def written_after(self, prompt: Sequence[int]) -> list[int]:
        return []


def num_shared(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class Document:
    """A document with its contexts, and what is cached of it."""

    def __init__(self) -> None:
        parts: Any = Letters(), Form()
        windows = PromptWindows(parts[0], TextWindow(320, 80), max_prompt=1000)
        self.cached = Cached()
        self._prompts = PromptChooser(windows, parts[1], self.cached)
        self.whole = self._prompts.whole(ASKED, ASKED.prefix, ASKED.suffix)

    def chosen(self, budget: PromptBudget) -> ChosenPrompt:
        return self._prompts.choose(ASKED, ASKED.prefix, ASKED.suffix, budget)

    def hold(self, prompt: Prompt, num_tokens: int | None = None) -> None:
        self.cached.held.append(prompt.tokens[:num_tokens])


@pytest.fixture
def document() -> Document:
    return Document()


def test_a_context_alone_brings_no_new_work_to_a_place_where_a_window_is_there(document: Document) -> None:
    small = document.chosen(HURRY)
    assert not (small.shows_window or small.has_context)
    document.hold(small.prompt)
    for num_tokens in (len(CONTEXT), len(CONTEXT) + 200, len(document.whole.tokens) - 60):
        document.hold(document.whole, num_tokens)
        assert document.chosen(HURRY) == small


def test_a_context_comes_with_all_of_the_text(document: Document) -> None:
    document.hold(document.chosen(HURRY).prompt)
    document.hold(document.whole, len(document.whole.tokens) - 40)
    assert document.chosen(HURRY) == ChosenPrompt(document.whole)


def test_who_waits_gets_the_context_that_takes_least(document: Document) -> None:
    assert not document.chosen(PATIENCE).has_context
    document.hold(document.whole, len(CONTEXT) + 1)
    assert document.chosen(PATIENCE) == ChosenPrompt(document.whole)
