"""When writing ends for reasons outside the text: what a request's times come to."""

from __future__ import annotations

import pytest

from completion_engine.cutting.cutter import Cutter
from completion_engine.decoding.ending import Ending, Finish, Limits
from completion_engine.probability import NOT_SCORED
from completion_engine.prompting.prompt import Written
from completion_engine.prompting.prompt_choice import PromptBudget
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import CompletionRequest
from completion_engine.text_window import CursorContext

NEVER = float("inf")


@pytest.mark.parametrize(
    ("deadline_ms", "patience_ms", "prompt_ms", "deadline_at", "patience_at"),
    [
        pytest.param(100, 1500, 5, 10.1, 11.5, id="warm"),
        pytest.param(100, 1500, 75, 10.1, 11.5, id="little of the patience for the prompt"),
        pytest.param(400, 1500, 200, 10.4, 11.5, id="half of a long deadline for the prompt"),
        pytest.param(100, 1500, 300, 10.6, 11.5, id="cold: late anyway, so time to become whole"),
        pytest.param(100, 50, 300, 10.1, 10.1, id="who is not patient waits for the deadline alone"),
        pytest.param(0, 1500, 300, NEVER, 11.5, id="no deadline"),
    ],
)
def test_an_answer_that_waits_for_its_prompt_may_become_whole(
    deadline_ms: float, patience_ms: float, prompt_ms: float, deadline_at: float, patience_at: float
) -> None:
    request = CompletionRequest("", "", deadline_ms=deadline_ms, patience_ms=patience_ms)
    limits = Limits.of(request, 8, 10.0, prompt_ms)
    assert (limits.deadline_at, limits.patience_at) == pytest.approx((deadline_at, patience_at))


@pytest.mark.parametrize(
    ("waited_ms", "prompt_ms", "deadline_at"),
    [
        pytest.param(30, 5, 10.07, id="warm"),
        pytest.param(150, 5, 10.001, id="all of the deadline"),
        pytest.param(99, 75, 10.001, id="little of the patience for the prompt"),
        pytest.param(30, 300, 10.6, id="cold"),
    ],
)
def test_who_waited_has_less_time_left_and_the_same_prompt(
    waited_ms: float, prompt_ms: float, deadline_at: float
) -> None:
    request = CompletionRequest("", "", waited_ms=waited_ms)
    assert Limits.of(request, 8, 10.0, prompt_ms).deadline_at == pytest.approx(deadline_at)
    assert PromptBudget.of(request, 3.0) == PromptBudget.of(CompletionRequest("", ""), 3.0)


@pytest.mark.parametrize(
    ("deadline_ms", "patience_ms", "budget_ms", "soon_ms"),
    [(100, 1500, 300, 50), (100, 0, 50, 50), (2000, 1500, 1000, 1000), (0, 1500, NEVER, NEVER)],
)
def test_a_prompt_may_take_a_share_of_what_somebody_waits(
    deadline_ms: float, patience_ms: float, budget_ms: float, soon_ms: float
) -> None:
    request = CompletionRequest("", "", deadline_ms=deadline_ms, patience_ms=patience_ms)
    budget = PromptBudget.of(request, 1.0)
    assert (budget.ms, budget.soon_ms) == (budget_ms, soon_ms)


@pytest.mark.parametrize(
    ("language", "text", "num_spare", "shown", "looked_at"),
    [
        pytest.param("python", "f(|a,\n  b)\ng()\n", 64, "f(a,\n  b)", "f(a,\n  b)\n", id="completed"),
        pytest.param("python", "f(|a,\n  b)\ng()\n", 0, "f", "f(", id="no spare tokens"),
        pytest.param("python", "f(|a,\n  b,\n  c)\n", 1, "f", "f(a", id="too few spare tokens"),
        pytest.param("python", "x = 1\nf(|a)\n", 64, "x = 1", "x = 1\nf(", id="a complete one before it"),
        pytest.param("plaintext", "one (|two\nthree\n", 64, "one", "one (", id="prose"),
    ],
)
def test_a_statement_may_take_more_tokens_than_the_limit_to_become_complete(
    tokenizer: Tokenizer, language: str, text: str, num_spare: int, shown: str, looked_at: str
) -> None:
    head, _, more = text.partition("|")
    tokens = [token for part in (head, *more) for token in tokenizer.encode(part)]
    written, rules = Written(tokenizer, b""), Cutter(CursorContext("", "", language))
    for token in tokens:
        written.add(token)
    ending, limits = Ending(written), Limits(len(tokenizer.encode(head)), num_spare)
    finish = ending.finish(tokens, [NOT_SCORED] * len(tokens), rules, limits)
    assert finish == Finish("length", len(shown))
    assert written.ends[ending.num_checked - 1] == len(looked_at)


@pytest.mark.parametrize(("max_tokens", "most", "found"), [(8, 256, 12), (200, 256, 256), (300, 256, 256)])
def test_a_completion_has_at_most_half_more_tokens_than_the_setting(
    max_tokens: int, most: int, found: int
) -> None:
    request = CompletionRequest("", "", max_tokens=max_tokens)
    assert Limits.of(request, most, 0.0, 0.0).most_tokens == found
