"""The whole mixture of a target and a repository, which the engine computes for a few tokens alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from completion_engine.decoding.picking import RepositoryBias


def mixed(bias: RepositoryBias, logits: Tensor, context: Sequence[int]) -> Tensor:
    """Return the mixture's logits [num_tokens]."""
    logits = logits[: bias.num_tokens].clone()
    for token, gain in bias.raised(logits, context, float(torch.logsumexp(logits, -1))).items():
        logits[token] = gain.mixed
    return logits
