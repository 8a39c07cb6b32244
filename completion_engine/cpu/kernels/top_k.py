"""Kernels that look for the best of many tokens. Arrays of numbers are float32 or bf16 (see `language`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from completion_engine.cpu.kernels.language import (
    LOWEST_RANK,
    Array,
    Floats,
    exponential,
    highest_rank,
    inlined,
    kernel,
    rank_of,
    widened,
)
from completion_engine.cpu.kernels.vectors import sum_of, sum_of_products

_F32, _I32 = np.float32, np.int32
_BLOCK = 256  # logits whose largest is found in vectors; then only promising blocks are searched
_WIDE_BLOCK = 4096  # logits whose exponentials are summed up at once
_SMALL_BLOCK = 16  # the same where many of them are wanted


@kernel
def largest(logits: Array, num_tokens: int, places: Array) -> None:
    """The place of the largest of each row's first `num_tokens`, of equal ones the first.

    logits are [num_rows, vocab_size], places [num_rows].
    """
    for row in range(logits.shape[0]):
        numbers = logits[row]
        top, place = LOWEST_RANK, 0
        for first in range(0, num_tokens, _BLOCK):
            end = min(first + _BLOCK, num_tokens)
            if highest_rank(numbers[first:end]) > top:
                for at in range(first, end):
                    rank = rank_of(numbers[at])
                    if rank > top:
                        top, place = rank, at
        places[row] = place


@kernel
def likeliest(logits: Array, temperature: float, places: Array, shares: Floats) -> None:
    """The best few tokens of each row, best first, and their shares of its softmax at a temperature.

    logits [num_rows, num_tokens]; places (integers) and shares [num_rows, num_best].
    """
    num_tokens, num_best = logits.shape[1], places.shape[1]
    ranks = np.empty(num_best, np.int32)
    raised = np.empty(_WIDE_BLOCK, np.float32)
    inverse = _F32(1) / _F32(temperature)
    for row in range(logits.shape[0]):
        numbers, best_places = logits[row], places[row]
        ranks[:] = LOWEST_RANK
        for first in range(0, num_tokens, _BLOCK):
            end = min(first + _BLOCK, num_tokens)
            if highest_rank(numbers[first:end]) > ranks[num_best - 1]:
                for at in range(first, end):
                    rank = rank_of(numbers[at])
                    if rank > ranks[num_best - 1]:
                        _enter(rank, at, ranks, best_places)
        top = widened(numbers[places[row, 0]])
        total = _F32(0)
        for first in range(0, num_tokens, _WIDE_BLOCK):
            part = numbers[first : min(first + _WIDE_BLOCK, num_tokens)]
            for at in range(part.shape[0]):
                raised[at] = exponential((widened(part[at]) - top) * inverse)
            total += sum_of(raised[: part.shape[0]])
        for best in range(num_best):
            shares[row, best] = exponential((widened(numbers[places[row, best]]) - top) * inverse) / total


@kernel
def score_promising(logits: Floats, states: Array, levels: Array, scales: Floats, num_best: int) -> None:
    """Replace the best `num_best` logits of each row, and some more, by the exact products.

    logits [num_rows, num_tokens]; states [num_rows, hidden_size]; the weights are levels [num_tokens,
    hidden_size], int8, times scales [num_tokens].
    """
    num_tokens, hidden_size = levels.shape
    num_blocks = (num_tokens + _SMALL_BLOCK - 1) // _SMALL_BLOCK
    tops = np.empty(num_blocks, np.int32)
    state = np.empty(hidden_size, np.float32)
    for row in range(logits.shape[0]):
        numbers = logits[row]
        for at in range(hidden_size):
            state[at] = widened(states[row, at])
        for block in range(num_blocks):
            tops[block] = highest_rank(numbers[block * _SMALL_BLOCK : (block + 1) * _SMALL_BLOCK])
        bound = _bound(tops, num_best)
        for block in range(num_blocks):
            if tops[block] >= bound:
                for at in range(block * _SMALL_BLOCK, min((block + 1) * _SMALL_BLOCK, num_tokens)):
                    if rank_of(numbers[at]) >= bound:
                        numbers[at] = sum_of_products(state, levels[at]) * scales[at]


@inlined
def _bound(tops: Any, num_best: Any) -> Any:
    """What the best `num_best` of all reach: as many blocks hold at least one each that does.

    Found by halving what it may be: numba takes seconds to compile numpy's partition.
    """
    low, high = np.int64(LOWEST_RANK), np.int64(-LOWEST_RANK)
    while low < high:
        middle = (low + high + 1) >> 1
        num_reaching = _I32(0)
        for at in range(tops.shape[0]):
            num_reaching += _I32(tops[at] >= _I32(middle))
        if num_reaching >= num_best:
            low = middle
        else:
            high = middle - 1
    return _I32(low)


@inlined
def _enter(rank: Any, place: Any, ranks: Any, places: Any) -> None:
    """Take a place among the best instead of the last of them; equal ones stay in front."""
    at = ranks.shape[0] - 1
    while at > 0 and rank > ranks[at - 1]:
        ranks[at], places[at] = ranks[at - 1], places[at - 1]
        at -= 1
    ranks[at], places[at] = rank, place
