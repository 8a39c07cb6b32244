"""Repository bias: the target's distribution mixed with what followed the same tokens in the index.

p = (1 - w) p_target + w p_index, with w = n / (n + 16) * c / (c + 0.9) for the longest match: n tokens that
occur c times. Below 3 matching tokens p is p_target. (Cache language models: Kuhn and De Mori 1990; for code:
Tu, Su and Devanbu 2014; longest matches: Liu et al. 2024, "Infini-gram".) The whole completion uses one view
of the index, so the mixture depends on that view, the tokens before and the logits, and drafts do not change
it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ngram_cache import IndexView

NUM_LOOKED_UP = 32  # tokens of context
_MIN_MATCH = 3
_DOUBT = 16.0  # number of matching tokens at which the first factor of w is 1 / 2
_ESCAPE = 0.9  # the c at which the second factor of w is 1 / 2, as for tokens not seen yet


class Raised(NamedTuple):
    """A token's logit from the target, and its logit in the mixture."""

    own: float
    mixed: float


@dataclass(frozen=True, slots=True, eq=False)
class RepositoryBias:
    """Mixes a view of the index into the target's distribution over `num_tokens` tokens."""

    view: IndexView
    num_tokens: int

    @property
    def source(self) -> Hashable:
        """The identity of the index, which does not change when files change."""
        return self.view.source

    def raised(
        self, logits: Tensor, context: Sequence[int], log_sum: float | None = None
    ) -> Mapping[int, Raised]:
        """Return the logits of the tokens that the index saw after `context`.

        `logits` [vocab_size] are the target's, `log_sum` the logarithm of their sum of e**logit. The mixture
        is divided by 1 - w, which does not change its softmax: so tokens that the index did not see keep
        their logit, and the others become log(e**logit + e**log_sum * w / (1 - w) * p_index).
        """
        seen = self.view.successors(context[-NUM_LOOKED_UP:], _MIN_MATCH)
        counts = {token: count for token, count in seen.counts.items() if token < self.num_tokens}
        if not counts:
            return {}
        match_weight = seen.match_length / (seen.match_length + _DOUBT)
        weight = match_weight * seen.num_occurrences / (seen.num_occurrences + _ESCAPE)
        if log_sum is None:
            log_sum = float(torch.logsumexp(logits[: self.num_tokens].float(), -1))
        log_scale = log_sum + math.log(weight / (1 - weight) / sum(counts.values()))
        own = logits[torch.tensor(list(counts), device=logits.device)].tolist()
        return {
            token: Raised(logit, _log_add(logit, log_scale + math.log(count)))
            for (token, count), logit in zip(counts.items(), own, strict=True)
        }

    def mixed(self, logits: Tensor, context: Sequence[int]) -> Tensor:
        """Return the mixture's logits [num_tokens]; `raised` describes them."""
        logits = logits[: self.num_tokens]
        raised = self.raised(logits, context)
        if not raised:
            return logits
        tokens = torch.tensor(list(raised), device=logits.device)
        numbers = torch.tensor([gain.mixed for gain in raised.values()], device=logits.device)
        return logits.float().index_put((tokens,), numbers)


def _log_add(left: float, right: float) -> float:
    """Return the logarithm of e**left + e**right."""
    low, high = sorted((left, right))
    return high + math.log1p(math.exp(low - high))
