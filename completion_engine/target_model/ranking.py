"""The one order of tokens: the largest number first, of equal ones the lowest id.

Kernels keep the same order by themselves (`cpu.kernels.top_k`, `gpu.kernels.draft`). It is written out here
because a library's own choice among equals is not promised on every device.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from completion_engine.probability import NUM_RANKED, RankedRow

Rank = Callable[[Tensor, int], list[RankedRow]]
"""Ranks the first `num_tokens` logits of each row of logits [num_rows, vocab_size]; see `rank_rows`."""

_SIGN = -0x80000000  # the lowest int32


def first_largest(numbers: Tensor) -> Tensor:
    """The place [...] of the largest of `numbers` [..., num_tokens], of equal ones the first."""
    return lowest_best(numbers, torch.arange(numbers.shape[-1], device=numbers.device))


def lowest_best(numbers: Tensor, tokens: Tensor) -> Tensor:
    """Return the token of `tokens` [num_tokens], in any order, with the largest of `numbers` [...,
    num_tokens].

    Among equal numbers, the lowest token wins.
    """
    is_best = numbers == numbers.amax(-1, keepdim=True)
    return torch.where(is_best, tokens, tokens.max()).amin(-1)


def best_few(numbers: Tensor, num_best: int) -> list[int]:
    """The places of the largest `num_best` of `numbers` [num_tokens], in this order."""
    numbers, found = numbers.clone(), list[int]()
    for _ in range(min(num_best, len(numbers))):
        found.append(int(first_largest(numbers)))
        numbers[found[-1]] = float("-inf")
    return found


def rank_rows(logits: Tensor, num_tokens: int) -> list[RankedRow]:
    """Return the likeliest tokens of each row of `logits` [num_rows, vocab_size], by plain torch.

    Only the first `num_tokens` of a row count. The numbers are read from the device at once.
    """
    numbers = logits[:, :num_tokens].float() + 0.0  # -0.0 becomes 0.0, which equals it
    bits = numbers.contiguous().view(torch.int32).long()
    ordered = torch.where(bits < 0, _SIGN - bits, bits)  # ordered as the numbers are
    ids = torch.arange(num_tokens, device=logits.device)
    keys = (ordered << 32) + (num_tokens - 1 - ids)  # no two are equal
    best = keys.topk(min(NUM_RANKED, num_tokens)).indices
    # Row by row, because a library's sum may depend on the number of rows, and a row's bits must not.
    sums = torch.stack([torch.logsumexp(row, 0, keepdim=True) for row in numbers])
    rows = torch.cat([part.double() for part in (best, numbers.gather(1, best), sums)], 1).tolist()
    num_best = best.shape[1]
    return [
        RankedRow(dict(zip(map(int, row[:num_best]), row[num_best:-1], strict=True)), row[-1]) for row in rows
    ]
