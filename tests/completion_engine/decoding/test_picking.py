"""Picks are the largest that are allowed, and never padding."""

from __future__ import annotations

import torch

from completion_engine.decoding.picking import likeliest_of, likeliest_tokens


def test_the_largest_is_picked_and_never_the_padding() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0, 0, 0, 0, 99.0], [5.0, 2.0, 1.0, 0, 0, 0, 99.0]])
    assert likeliest_tokens(logits, 6) == [1, 0]


def test_a_bound_pick_is_the_best_that_is_allowed() -> None:
    logits = torch.tensor([0.0, 9.0, 1.0, 3.0, 0.0, 0.0])
    assert likeliest_of(logits, [0, 2, 3]) == 3
