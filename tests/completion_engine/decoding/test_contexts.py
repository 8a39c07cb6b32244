"""Which context stands in front: the wanted one as soon as all of the text is there behind it, too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import pytest

from completion_engine.decoding.contexts import Contexts
from completion_engine.decoding.place import cursor_of
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.windows import Budget, ChosenPrompt, PromptWindows
from completion_engine.request import CompletionRequest, ContextPiece, RepositoryContext
from completion_engine.text_window import TextWindow
from tests.completion_engine.letters import Letters

CONTEXT = tuple(range(200, 250))
ASKED = CompletionRequest(
    "line\n" * 200,
    "end\n" * 200,
    "python",
    "a.py",
    context=RepositoryContext("r", (ContextPiece("b.py", "b"),)),
)
HURRY = Budget(ms=300.0, token_ms=1.0, soon_ms=50.0)
PATIENCE = Budget()


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

    def known_after(self, prompt: Sequence[int]) -> list[int]:
        return []


def num_shared(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class Place:
    """A document with its contexts, and what is cached of it."""

    def __init__(self) -> None:
        parts: Any = Letters(), Form()
        windows = PromptWindows(parts[0], TextWindow(320, 80), max_prompt=1000)
        self.cached = Cached()
        self._contexts = Contexts(windows, parts[1], self.cached)
        self.whole = self._contexts.whole(ASKED, cursor_of(ASKED))

    def chosen(self, budget: Budget) -> ChosenPrompt:
        return self._contexts.choose(ASKED, cursor_of(ASKED), budget)

    def hold(self, prompt: Prompt, num_tokens: int | None = None) -> None:
        self.cached.held.append(prompt.tokens[:num_tokens])


@pytest.fixture
def place() -> Place:
    return Place()


def test_a_context_alone_brings_no_new_work_to_a_place_where_a_window_is_there(place: Place) -> None:
    small = place.chosen(HURRY)
    assert not (small.is_whole or small.has_context)
    place.hold(small.prompt)
    for num_tokens in (len(CONTEXT), len(CONTEXT) + 200, len(place.whole.tokens) - 60):
        place.hold(place.whole, num_tokens)
        assert place.chosen(HURRY) == small


def test_a_context_comes_with_all_of_the_text(place: Place) -> None:
    place.hold(place.chosen(HURRY).prompt)
    place.hold(place.whole, len(place.whole.tokens) - 40)
    assert place.chosen(HURRY) == ChosenPrompt(place.whole)


def test_who_waits_gets_the_context_that_takes_least(place: Place) -> None:
    assert not place.chosen(PATIENCE).has_context
    place.hold(place.whole, len(CONTEXT) + 1)
    assert place.chosen(PATIENCE) == ChosenPrompt(place.whole)
