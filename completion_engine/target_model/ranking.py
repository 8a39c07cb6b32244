"""The one order of tokens: the largest number first, of equal ones the lowest id.

Kernels keep the same order by themselves (`cpu.kernels.top_k`, `gpu.kernels.draft`). It is written out here
because a library's own choice among equals is not promised on every device.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
