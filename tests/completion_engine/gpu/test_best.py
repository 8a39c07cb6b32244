"""The likeliest tokens of a row are the same on every device; among equal ones the lowest id is first."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from completion_engine.cpu.kernels.language import array_of
from completion_engine.cpu.kernels.top_k import likeliest
from completion_engine.probability import NUM_RANKED, RankedRow
from completion_engine.target_model.exactness import rank_rows

NUM_ROWS = 3


def rows_with_ties(vocab_size: int, num_tokens: int, dtype: torch.dtype) -> torch.Tensor:
    """Few different logits, so that many are equal; both zeros; the padding is the largest."""
    generator = torch.Generator().manual_seed(vocab_size)
    logits = torch.randint(-6, 3, (NUM_ROWS, vocab_size), generator=generator).to(dtype)
    logits[0, : num_tokens // 2] *= 0.0  # both zeros, which are equal
    logits[0, num_tokens // 2 :] = -1.0
    logits[1, num_tokens - 1] = 9.0
    logits[:, num_tokens:] = 50.0
    return logits


def of_the_cpu(row: torch.Tensor) -> RankedRow:
    places, shares = np.empty((1, min(NUM_RANKED, len(row))), np.int64), np.empty((1, 8), np.float32)
    likeliest(array_of(row[None]), 1.0, places, shares[:, : places.shape[1]])
    tokens = places[0].tolist()
    return RankedRow({token: float(row[token]) for token in tokens}, float(torch.logsumexp(row.double(), 0)))


def assert_alike(found: RankedRow, wanted: RankedRow) -> None:
    assert list(found.logits.items()) == list(wanted.logits.items())
    assert math.isclose(found.log_sum, wanted.log_sum, rel_tol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("vocab_size", "num_tokens"), [(5, 5), (90, 80), (2048, 2048), (7000, 4096), (7000, 6999)]
)
def test_every_device_ranks_alike(
    vocab_size: int, num_tokens: int, dtype: torch.dtype, device: torch.device
) -> None:
    logits = rows_with_ties(vocab_size, num_tokens, dtype)
    wanted = [of_the_cpu(row[:num_tokens].contiguous()) for row in logits]
    for found, other in zip(rank_rows(logits.to(device), num_tokens), wanted, strict=True):
        assert_alike(found, other)


def test_a_row_is_ranked_alike_beside_any_others(device: torch.device) -> None:
    logits = torch.randn(16, 5000, generator=torch.Generator().manual_seed(1)).to(device)
    assert rank_rows(logits, 5000)[5] == rank_rows(logits[5:6], 5000)[0]


def test_a_row_of_nan_picks_a_token(device: torch.device) -> None:
    (row,) = rank_rows(torch.full((1, 300), float("nan"), device=device), 280)
    assert all(0 <= token < 280 for token in row.logits)
