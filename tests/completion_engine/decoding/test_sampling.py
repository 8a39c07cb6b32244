"""Greedy picks are the largest; sampled picks follow the softmax and depend on seed and position alone."""

from __future__ import annotations

import torch

from completion_engine.decoding.sampling import Sampler

NUM_TOKENS = 6


def test_greedy_takes_the_largest_and_never_the_padding() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0, 0, 0, 0, 99.0], [5.0, 2.0, 1.0, 0, 0, 0, 99.0]])
    assert Sampler(NUM_TOKENS).pick(logits, [0, 1]) == [1, 0]


def test_a_bound_pick_is_the_best_that_is_allowed() -> None:
    logits = torch.tensor([0.0, 9.0, 1.0, 3.0, 0.0, 0.0])
    assert Sampler(NUM_TOKENS).pick_out_of(logits, [0, 2, 3], 0) == 3


def test_a_sampled_token_depends_on_its_position_and_not_on_its_row() -> None:
    sampler = Sampler(NUM_TOKENS, temperature=1.0, seed=5)
    logits = torch.zeros(8, NUM_TOKENS)
    places = [100, 101, 101, 102, 103, 102, 104, 105]
    together = sampler.pick(logits, places)
    apart = [sampler.pick(logits[:1], [place])[0] for place in places]
    assert together == apart
    assert len(set(together)) > 1


def test_a_bound_pick_agrees_with_a_free_one_that_was_allowed() -> None:
    sampler = Sampler(NUM_TOKENS, temperature=0.7, seed=1)
    logits = torch.randn(40, NUM_TOKENS, generator=torch.Generator().manual_seed(0))
    for position, token in enumerate(sampler.pick(logits, range(40))):
        others = [token, (token + 1) % NUM_TOKENS]
        assert sampler.pick_out_of(logits[position], others, position) == token


def test_sampled_tokens_follow_the_softmax() -> None:
    """Chi-squared over 4,000 positions; 20.5 is the 0.999 quantile for 5 degrees of freedom."""
    logits = torch.tensor([0.0, 1.0, 0.5, -1.0, 0.2, -0.3])
    temperature, count = 0.8, 4000
    sampler = Sampler(NUM_TOKENS, temperature, seed=11)
    picked = torch.tensor(sampler.pick(logits.expand(count, -1), range(count)))
    expected = torch.softmax(logits / temperature, -1) * count
    observed = torch.bincount(picked, minlength=NUM_TOKENS)
    assert float(((observed - expected) ** 2 / expected).sum()) < 20.5
