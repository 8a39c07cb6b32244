"""Launching the kernels that rank the tokens of each row of logits, and their buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import triton
from torch import Tensor

from completion_engine.gpu.kernels import rows
from completion_engine.gpu.launch import EXACT
from completion_engine.probability import NUM_RANKED, RankedRow

BEST_BLOCK = 2048  # logits of a program
BEST_OPTIONS = EXACT | {"num_warps": 8}


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best `num_best` of the first `num_tokens` logits of each row; `record` as in `kernels.rows`.

    The others are work space: the best of each block.
    """

    record: Tensor
    tops: Tensor
    totals: Tensor
    values: Tensor
    tokens: Tensor
    num_tokens: int
    num_best: int
    num_rows: int

    @classmethod
    def empty(cls, logits: Tensor, num_tokens: int) -> Ranking:
        """Buffers for logits of this shape, [num_rows, vocab_size]."""
        (num_rows, vocab_size), device = logits.shape, logits.device
        num_best, num_blocks = min(NUM_RANKED, num_tokens), triton.cdiv(vocab_size, BEST_BLOCK)
        record = torch.zeros((2 * num_best + 1) * num_rows, dtype=torch.int64, device=device)
        tops, totals = (torch.zeros(num_rows * num_blocks, device=device) for _ in range(2))
        values = torch.zeros(num_rows * num_blocks * num_best, device=device)
        tokens = torch.zeros(len(values), dtype=torch.int64, device=device)
        return cls(record, tops, totals, values, tokens, num_tokens, num_best, num_rows)

    @property
    def picked(self) -> Tensor:
        """The best token of each row, [num_rows]."""
        return self.record[: self.num_rows]

    def rows_of(self, numbers: Sequence[int]) -> list[RankedRow]:
        """The rows of a copy of `record`."""
        by_rank = np.array(numbers, np.int64).reshape(-1, self.num_rows)
        tokens = by_rank[: self.num_best].T.tolist()
        floats = by_rank[self.num_best :].astype(np.int32).view(np.float32).T.tolist()
        return [
            RankedRow(dict(zip(ids, logits, strict=True)), log_sum)
            for ids, (*logits, log_sum) in zip(tokens, floats, strict=True)
        ]


def run_rank(logits: Tensor, at: Ranking) -> None:
    """Rank the rows of logits [num_rows, vocab_size]."""
    vocab_size, num_blocks = logits.shape[1], triton.cdiv(logits.shape[1], BEST_BLOCK)
    rows.best_of_blocks[(num_blocks, at.num_rows)](
        logits, at.tops, at.totals, at.values, at.tokens, at.num_tokens,
        vocab_size, at.num_best, BEST_BLOCK, **BEST_OPTIONS,
    )  # fmt: skip
    rows.best_of_rows[(at.num_rows,)](
        at.tops, at.totals, at.values, at.tokens, at.record, at.num_tokens, at.num_rows,
        at.num_best, num_blocks, triton.next_power_of_2(num_blocks),
        triton.next_power_of_2(num_blocks * at.num_best), **BEST_OPTIONS,
    )  # fmt: skip
