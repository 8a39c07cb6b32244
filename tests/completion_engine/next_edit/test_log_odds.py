"""Two texts as branches of one tree are scored as each is by itself, bit for bit."""

from __future__ import annotations

import math

import pytest
import torch

from completion_engine.next_edit import log_odds
from completion_engine.next_edit.log_odds import Branches, BranchScorer
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Cancellation, CancelledError
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

PROMPT = "def parse(arguments):\n    result = []\n    for argument in arguments:\n"
OLD = "        result.append(argument)\n"
NEWS = (
    "        result.append(argument.strip())\n",
    "        yield argument\n",
    "x\n",
    "        result.append(argument)\n".replace(")", ", argument" * 8 + ")"),
)


@pytest.mark.parametrize("new", NEWS)
@pytest.mark.parametrize("name", ["modules", "int8"])
def test_a_tree_gives_the_same_number_as_two_chains(
    free_targets: dict[str, LanguageModel],
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    new: str,
) -> None:
    if name not in free_targets:
        pytest.skip("this machine does not multiply bytes")
    scorer = BranchScorer(free_targets[name], tokenizer)
    prompt, cancellation = tokenizer.encode(PROMPT), Cancellation()
    both = Branches.of(*encoded(tokenizer, new))
    tree = scorer.log_odds(prompt, both, cancellation)
    with monkeypatch.context() as patch:
        patch.setattr(log_odds, "_MAX_TREE_ROWS", 0)
        assert scorer.log_odds(prompt, both, cancellation) == tree
    assert scorer.log_odds(prompt, both, cancellation) == tree


def encoded(tokenizer: Tokenizer, new: str) -> tuple[list[int], list[int]]:
    return tokenizer.encode(OLD), tokenizer.encode(new)


def test_the_number_is_what_plain_passes_give(target: LanguageModel, tokenizer: Tokenizer) -> None:
    prompt = tokenizer.encode(PROMPT)
    old, new = encoded(tokenizer, NEWS[0])

    def log_probability(text: list[int]) -> float:
        cache = KVCache(target.cache_shape)
        logits = target.forward([*prompt, *text[:-1]], cache, len(text))
        numbers = torch.log_softmax(logits[:, : tokenizer.num_tokens].double(), -1)
        return sum(float(row[token]) for row, token in zip(numbers, text, strict=True))

    scored = BranchScorer(target, tokenizer).log_odds(prompt, Branches.of(old, new), Cancellation())
    assert math.isclose(scored, log_probability(new) - log_probability(old), abs_tol=1e-2)


def test_a_decision_takes_one_pass_and_leaves_the_prompt_cached(
    target: LanguageModel, tokenizer: Tokenizer, passes: list[int]
) -> None:
    scorer = BranchScorer(target, tokenizer)
    prompt = tokenizer.encode(PROMPT)
    for number, new in enumerate(NEWS[:3]):
        both = Branches.of(*encoded(tokenizer, new))
        passes.clear()
        scorer.log_odds(prompt, both, Cancellation())
        assert passes[-1] == both.num_rows
        assert number == 0 or len(passes) == 1


def test_a_cancelled_request_runs_no_pass(
    target: LanguageModel, tokenizer: Tokenizer, passes: list[int]
) -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    scorer = BranchScorer(target, tokenizer)
    with pytest.raises(CancelledError):
        scorer.log_odds(tokenizer.encode(PROMPT), Branches.of(*encoded(tokenizer, NEWS[0])), cancellation)
    assert passes == []


def test_a_text_that_is_the_beginning_of_the_other_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="beginning"):
        Branches.of([1, 2], [1, 2, 3])


def test_places_keep_their_prompts_while_the_end_of_each_changes(
    target: LanguageModel, tokenizer: Tokenizer, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_odds, "_MAX_READ_AGAIN", 8)
    scorer = BranchScorer(target, tokenizer)
    both = Branches.of(*encoded(tokenizer, NEWS[0]))
    places = [tokenizer.encode(PROMPT + f"# {word}\n" * 9) for word in ("alpha", "beta", "gamma", "delta")]

    def num_rows_of(prompt: list[int]) -> int:
        passes.clear()
        scorer.log_odds(prompt, both, Cancellation())
        return sum(passes) - both.num_rows

    for prompt in places[:3]:
        assert num_rows_of(prompt) > 20
    for prompt in places[:3]:
        assert num_rows_of([*prompt, places[0][0]]) <= 2
    assert num_rows_of(places[3]) > 20
    assert num_rows_of(places[0]) > 20  # its slot was the one that was used longest ago
    scorer.forget()
    assert scorer.num_cache_bytes == 0
