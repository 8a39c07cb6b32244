"""Fits the preview of a drafter's head to the states that the drafter makes of the collected windows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor

from completion_engine.distillation.trained_network import Batch, DrafterNetwork
from completion_engine.drafting.distilled.token_head import Preview

_RANK = 96
_DEPTHS = 3
_RIDGE = 1e-2  # relative to the states' mean square


@torch.no_grad()
def fit_preview(
    network: DrafterNetwork, batches: Iterable[Batch], head: Tensor, rank: int = _RANK
) -> Preview:
    """The projection of this rank that changes logits least, in squares over states and tokens.

    `head` [num_tokens, hidden_size] are the rows of the tokens that can be guessed.
    """
    size = network.shape.hidden_size
    squares = torch.zeros(size, size, device=head.device)
    for batch in batches:
        for at, states in network.drafted(replace(batch, hidden=batch.hidden.float()), _DEPTHS):
            real = states[batch.is_real[:, at]]
            squares += real.T @ real
    squares /= squares.diagonal().mean()
    squares += torch.eye(size, device=head.device) * _RIDGE
    root = torch.linalg.cholesky(squares)
    importance = root.T @ (head.float().T @ head.float()) @ root
    main = torch.linalg.eigh(importance).eigenvectors[:, -rank:]  # eigenvalues come in rising order
    narrow = torch.linalg.solve_triangular(root.T, main, upper=True).T
    return Preview(narrow.contiguous(), root @ main)
