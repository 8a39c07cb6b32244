"""Launching the kernels of a distilled drafter on the device, and their static buffers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from completion_engine.gpu.kernels import draft
from completion_engine.gpu.launch import EXACT, HEAD_OPTIONS
from completion_engine.gpu.passes import PassInputs

FIND_OPTIONS = EXACT | {"num_warps": 16}  # a program holds a whole row of logits in its registers


@dataclass(frozen=True, slots=True)
class Beams:
    """Paths that go on at the next depth, each [num_beams]: tokens, rows before them, probabilities."""

    tokens: Tensor
    sources: Tensor
    survivals: Tensor

    @classmethod
    def empty(cls, num_beams: int, device: torch.device) -> Beams:
        """Tokens 0 after row 0."""
        tokens, sources = (torch.zeros(num_beams, dtype=torch.int64, device=device) for _ in range(2))
        return cls(tokens, sources, torch.zeros(num_beams, device=device))


@dataclass(frozen=True, slots=True)
class Found:
    """The likeliest tokens of each beam at one depth, or at all depths.

    tokens and shares [num_beams, breadth], and the places of those that go on, `chosen` [num_beams]; for all
    depths each is [num_depths, ..].
    """

    tokens: Tensor
    shares: Tensor
    chosen: Tensor


def run_join_inputs(  # noqa: PLR0913 - every buffer by itself
    inputs: PassInputs,
    beams: Beams,
    embedding: tuple[Tensor, Tensor],
    states: tuple[Tensor, Tensor],
    eps: float,
    result: Tensor,
    *,
    is_first: bool,
) -> None:
    """Embeddings and states, each with its norm, into result [num_rows, 2 * hidden_size]."""
    size = states[0].shape[1]
    draft.join_inputs[(inputs.num_rows,)](
        inputs.numbers, beams.tokens, beams.sources, *embedding, *states, result, eps,
        size, triton.next_power_of_2(size), is_first, **EXACT,
    )  # fmt: skip


def run_turn_queries(  # noqa: PLR0913 - as above
    inputs: PassInputs, parts: Tensor, bias: Tensor, cos: Tensor, sin: Tensor, queries: Tensor, depth: int
) -> None:
    """Turn the product `parts` into queries [num_rows, num_heads, head_size] at this depth."""
    num_parts, num_rows, _ = parts.shape
    _, num_heads, head_size = queries.shape
    draft.turn_queries[(num_rows, num_heads)](
        inputs.numbers, parts, bias, cos, sin, queries, num_rows, depth,
        num_parts, num_heads, head_size, **HEAD_OPTIONS,
    )  # fmt: skip


def run_find_best(logits: Tensor, ids: Tensor, temperature: float, found: Found) -> None:
    """The likeliest of logits [num_beams, num_tokens] float32, by their ids [num_tokens]."""
    num_rows, num_tokens = logits.shape
    draft.find_best[(num_rows,)](
        logits, ids, found.tokens, found.shares, temperature,
        num_tokens, found.tokens.shape[1], triton.next_power_of_2(num_tokens), **FIND_OPTIONS,
    )  # fmt: skip


def run_choose_beams(found: Found, beams: Beams, *, is_first: bool) -> None:
    """Which of `found` go on, into `beams`."""
    num_beams, breadth = found.tokens.shape
    draft.choose_beams[(1,)](
        found.tokens, found.shares, found.chosen, beams.tokens, beams.sources, beams.survivals,
        num_beams, breadth, triton.next_power_of_2(num_beams * breadth), is_first, **HEAD_OPTIONS,
    )  # fmt: skip
