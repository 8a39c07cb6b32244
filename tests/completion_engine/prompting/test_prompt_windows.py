"""Which window a prompt has: the largest whose missing tokens are computed in time."""

from __future__ import annotations

from typing import Any

import pytest

from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.prompt_choice import SHARES, PromptBudget, PromptWindows
from completion_engine.text_window import TextWindow
from tests.completion_engine.letters import Letters

SIZE = 320  # characters before the cursor that the whole window has
LINES = "line\n" * 200


def windows() -> PromptWindows:
    tokenizer: Any = Letters()
    return PromptWindows(tokenizer, TextWindow(SIZE, SIZE // 4), max_prompt=1000)


def size_of(prompt: Prompt) -> int:
    return len(prompt.tokens)


@pytest.mark.parametrize(
    ("ms", "place"), [(1000, 0), (450, 0), (390, 1), (205, 2), (190, 3), (55, 6), (10, 6), (0, 6)]
)
def test_the_largest_window_is_taken_whose_tokens_are_computed_in_time(ms: float, place: int) -> None:
    chosen = windows().choose("a", LINES, LINES, PromptBudget(ms, 1.0, 0), size_of)
    wanted = SHARES[place] * SIZE * 1.25
    assert wanted * 0.85 <= size_of(chosen.prompt) <= wanted + 5
    assert chosen.shows_window == (place == 0)


def test_what_is_cached_costs_nothing() -> None:
    known = windows()
    whole = known.whole("a", LINES, LINES)

    def num_missing(prompt: Prompt) -> int:
        return 1 if prompt == whole else size_of(prompt)

    assert known.choose("a", LINES, LINES, PromptBudget(5, 1.0, 0), num_missing).prompt == whole


@pytest.mark.parametrize(("num_of_whole", "is_whole"), [(50, True), (51, False), (90, False)])
def test_a_warm_small_window_is_kept_until_a_larger_one_delays_nobody(
    num_of_whole: int, is_whole: bool
) -> None:
    known = windows()
    whole = known.whole("a", LINES, LINES)
    small = known.choose("a", LINES, LINES, PromptBudget(0, 1.0, 0), size_of).prompt
    missing = {whole: num_of_whole, small: 1}
    chosen = known.choose(
        "a", LINES, LINES, PromptBudget(300, 1.0, 50), lambda prompt: missing.get(prompt, size_of(prompt))
    )
    assert chosen.prompt == (whole if is_whole else small)


def test_without_a_budget_the_whole_window_is_taken() -> None:
    chosen = windows().choose("a", LINES, LINES, PromptBudget(), size_of)
    assert (chosen.prompt, chosen.shows_window) == (windows().whole("a", LINES, LINES), True)


def test_a_text_that_any_window_shows_is_shown_whole() -> None:
    assert windows().choose("a", "x = ", "\n", PromptBudget(0, 1.0, 0), size_of).shows_window


def test_a_small_window_stays_while_much_is_typed() -> None:
    known = windows()
    before = "line\n" * 60
    first, second = (
        known.choose("a", before + typed, LINES, PromptBudget(0, 1.0, 0), size_of).prompt
        for typed in ("", "x" * 300)
    )
    assert second.tokens[: size_of(first) - 1] == first.tokens[:-1]


def test_a_key_typed_later_meets_the_same_window() -> None:
    known = windows()
    first, second = (
        known.choose("a", LINES + typed, LINES, PromptBudget(90, 1.0, 0), size_of).prompt
        for typed in ("x", "xy")
    )
    assert second.tokens[: size_of(first)] == first.tokens
