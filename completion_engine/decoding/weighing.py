"""One row of logits as shares of what may be written: the likeliest tokens, and what a memory raises."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.kernels.language import array_of
from completion_engine.cpu.kernels.top_k import likeliest
from completion_engine.decoding.chances import NUM_RIVALS, Chance
from completion_engine.decoding.repository_memory import RepositoryMemory
from completion_engine.prompting.written import HealingConstraint


@dataclass(frozen=True, slots=True)
class Weighed:
    """The logits of the tokens that count in a row; `log_sum` is that of all which may be written there.

    Each is the logarithm of a sum of e**logit; `rivals` holds what was picked by the target alone, what is
    raised, and the likeliest of the others.
    """

    rivals: Mapping[int, float]
    log_sum: float

    def chance_of(self, picked: int) -> Chance:
        """The share of what is picked, and of the likeliest others."""
        shares = {token: math.exp(min(0.0, logit - self.log_sum)) for token, logit in self.rivals.items()}
        others = sorted((-share, token) for token, share in shares.items() if token != picked)
        return Chance(shares[picked], tuple((token, -share) for share, token in others[:NUM_RIVALS]))

    def share_of(self, token: int, logits: Tensor) -> float:
        """The share of any token that may be written there; `logits` [vocab_size] as for `weigh`."""
        logit = self.rivals.get(token, float(logits[token]))
        return math.exp(min(0.0, logit - self.log_sum))


def weigh(  # noqa: PLR0913 - what a pick depends on
    logits: Tensor,
    num_tokens: int,
    picked: int,
    healing: HealingConstraint,
    memory: RepositoryMemory | None,
    context: Sequence[int],
) -> Weighed:
    """The row `logits` [vocab_size] behind `context`, out of which the target alone has `picked`."""
    rivals, whole = _likeliest(logits, num_tokens)
    raised = memory.raised(logits, context, whole) if memory else {}
    if healing.bytes:
        rivals, whole = _among(logits, healing.candidates())
        raised = {token: gain for token, gain in raised.items() if healing.allows(token)}
    rivals.setdefault(picked, float(logits[picked]))
    for token, gain in raised.items():
        rivals[token] = gain.mixed
    top = max(whole, *rivals.values())
    added = sum(math.exp(gain.mixed - top) - math.exp(gain.own - top) for gain in raised.values())
    return Weighed(rivals, top + math.log(math.exp(whole - top) + added))


def _likeliest(logits: Tensor, num_tokens: int) -> tuple[dict[int, float], float]:
    """The best few of a row with their logits, and the logarithm of the sum of all e**logit."""
    row = logits[:num_tokens]
    if row.device.type != "cpu":
        best = row.float().topk(min(NUM_RIVALS, num_tokens))
        rivals = dict(zip(best.indices.tolist(), best.values.tolist(), strict=True))
        return rivals, float(torch.logsumexp(row.float(), -1))
    places = np.empty((1, min(NUM_RIVALS, num_tokens)), np.int64)
    shares = np.empty(places.shape, np.float32)
    likeliest(array_of(row[None]), 1.0, places, shares)
    tokens = places[0].tolist()
    rivals = dict(zip(tokens, row[tokens].tolist(), strict=True))
    return rivals, rivals[tokens[0]] - math.log(shares[0, 0])


def _among(logits: Tensor, allowed: Sequence[int]) -> tuple[dict[int, float], float]:
    """The same of some tokens alone."""
    tokens = torch.tensor(allowed, device=logits.device)
    row = logits[tokens].float()
    best = row.topk(min(NUM_RIVALS, len(allowed)))
    rivals = dict(zip(tokens[best.indices].tolist(), best.values.tolist(), strict=True))
    return rivals, float(torch.logsumexp(row, -1))
