"""At a temperature, tokens that were drafted follow the same law as tokens that were not."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
import torch

from completion_engine.decoding.sampling import Sampler
from completion_engine.drafting.tree import verify
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

Tree = list[tuple[int, int]]
Tokens = tuple[int, ...]

PROMPT = list(range(40, 60))
NUM_CHOICES = 8  # the law is over the first tokens of the vocabulary, so that all outcomes can be listed
NUM_TOKENS = 3
NUM_RUNS = 700
TEMPERATURE = 5.0
MIN_EXPECTED = 5.0  # rarer outcomes are counted together


def law(target: LanguageModel, tokenizer: Tokenizer) -> dict[Tokens, float]:
    """The probability of every outcome of `NUM_TOKENS` tokens, from the target's logits alone."""
    chances: dict[Tokens, float] = {(): 1.0}
    for _ in range(NUM_TOKENS):
        longer: dict[Tokens, float] = {}
        for written, chance in chances.items():
            if written and written[-1] in tokenizer.end_ids:
                longer[written] = chance
                continue
            logits = target.forward([*PROMPT, *written], KVCache(target.cache_shape), 1)
            shares = torch.softmax(logits[0, :NUM_CHOICES].double() / TEMPERATURE, -1).tolist()
            longer |= {(*written, token): chance * share for token, share in enumerate(shares)}
        chances = longer
    return chances


def deviation(observed: Counter[Tokens], chances: dict[Tokens, float]) -> float:
    """Chi-squared over its 0.9999 quantile (Wilson and Hilferty 1931): above 1, the law is another one."""
    count = observed.total()
    cells: list[tuple[float, float]] = []
    rare = [0.0, 0.0]
    for outcome, chance in chances.items():
        if chance * count < MIN_EXPECTED:
            rare[0] += observed[outcome]
            rare[1] += chance * count
        else:
            cells.append((observed[outcome], chance * count))
    cells.append((rare[0], max(rare[1], 1e-9)))
    found = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    freedom = len(cells) - 1
    spread = 2 / (9 * freedom)
    return float(found / (freedom * (1 - spread + 3.719 * math.sqrt(spread)) ** 3))


def guess(rng: random.Random) -> int:
    """Rather one of the higher tokens: drafts follow a law of their own."""
    return max(rng.randrange(NUM_CHOICES) for _ in range(3))


def chain_of(rng: random.Random) -> Tree:
    return [(guess(rng), at - 1) for at in range(4)]


def bush_of(rng: random.Random) -> Tree:
    tree = [(guess(rng), -1) for _ in range(3)]
    return tree + [(guess(rng), rng.randrange(len(tree))) for _ in range(6)]


def sibling_first(tokens: Sequence[int], parents: Sequence[int], picked: Sequence[int]) -> list[int]:
    """The planted bug: where no child carries the pick, the first child is taken for it."""
    row, path = 0, []
    while children := [at for at, parent in enumerate(parents) if parent == row]:
        right = [at for at in children if tokens[at] == picked[row]]
        row = (right or children)[0]
        path.append(row)
    return path


@pytest.mark.parametrize("shape", [chain_of, bush_of])
@pytest.mark.parametrize(("accept", "is_exact"), [(verify, True), (sibling_first, False)])
def test_drafted_tokens_follow_the_law_of_the_target(
    write: Callable[..., tuple],
    scripted: Callable[..., object],
    free_targets: dict[str, LanguageModel],
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
    shape: Callable[[random.Random], Tree],
    accept: Callable[..., list[int]],
    is_exact: bool,
) -> None:
    """The same check must see a rule that accepts what was not picked."""
    monkeypatch.setattr("completion_engine.decoding.loop.verify", accept)
    rng = random.Random(0)  # noqa: S311 - reproducible draws, no secrets
    drafter = scripted(lambda path: shape(rng))
    observed: Counter[Tokens] = Counter()
    num_accepted = 0
    for seed in range(NUM_RUNS):
        decoding, _ = write(
            PROMPT,
            [drafter],
            num_tokens=NUM_TOKENS,
            sampler=Sampler(NUM_CHOICES, TEMPERATURE, seed),
            by=free_targets["modules"],
        )
        observed[tuple(decoding.tokens[:NUM_TOKENS])] += 1
        num_accepted += decoding.stats.num_accepted
    assert num_accepted > NUM_RUNS // 20
    assert (deviation(observed, law(free_targets["modules"], tokenizer)) < 1.0) == is_exact
