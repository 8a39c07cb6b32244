"""Picks the token after each row of a pass from its logits, the likeliest one, and returns its probability.

Among equally likely tokens the lowest id is picked. So if fewer tokens are allowed later, a pick that is
still allowed is still the best.

The repository bias mixes in what followed the same tokens in the index: p = (1 - w) p_target + w p_index,
with w = n / (n + 16) * c / (c + 0.9) for the longest match: n tokens that occur c times. Below 3 matching
tokens p is p_target. (Cache language models: Kuhn and De Mori 1990; for code: Tu, Su and Devanbu 2014;
longest matches: Liu et al. 2024, "Infini-gram".) A whole completion uses one view of the index, so the
mixture depends on that view, the tokens before and the logits, and drafts do not change it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.kernels.language import array_of
from completion_engine.cpu.kernels.top_k import largest, likeliest
from completion_engine.drafting.tree import child_rows
from completion_engine.probability import NUM_RANKED, RankedRow, TokenProbability
from completion_engine.prompting.prompt import HealingConstraint
from completion_engine.target_model.exactness import first_largest, lowest_best, rank_rows
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

    def raised(self, logits: Tensor, context: Sequence[int], log_sum: float) -> Mapping[int, Raised]:
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
        log_scale = log_sum + math.log(weight / (1 - weight) / sum(counts.values()))
        own = logits[torch.tensor(list(counts), device=logits.device)].tolist()
        return {
            token: Raised(logit, _log_add(logit, log_scale + math.log(count)))
            for (token, count), logit in zip(counts.items(), own, strict=True)
        }


@dataclass(frozen=True, slots=True)
class OpenRows:
    """The rows of a pass that need picks: row 0 is the last token of `path`, the others follow it.

    `tokens` and `parents` [num_rows] as in `LanguageModel.forward`. `healing` constrains the tokens after row
    0.
    """

    path: Sequence[int]
    tokens: Sequence[int]
    parents: Sequence[int]
    healing: HealingConstraint

    def healings(self) -> list[HealingConstraint]:
        """Return for each row the healing constraint of the token after it."""
        found = [self.healing]
        for token, parent in zip(self.tokens[1:], self.parents[1:], strict=True):
            above = found[parent]
            found.append(above.after(token) if above.bytes else above)
        return found


@dataclass(frozen=True, slots=True)
class Picks:
    """One token for each row, and the probabilities of the tokens after the accepted rows, in order."""

    tokens: list[int]
    probabilities: list[TokenProbability]


@dataclass(frozen=True, slots=True)
class Picker:
    """Picks the tokens of a pass, with the repository bias mixed in.

    `num_tokens` is the vocabulary without the padding of logits. Probabilities are computed with `scores` or
    a bias only.
    """

    num_tokens: int
    bias: RepositoryBias | None = None
    scores: bool = True

    def pick(self, rows: OpenRows, logits: Tensor) -> Picks:
        """Return the picks after each row of `logits` [num_rows, vocab_size].

        With a bias, only the accepted rows get picks from the mixture; the picks of other rows are not
        written.
        """
        healings = rows.healings()
        picked = likeliest_tokens(logits, self.num_tokens)
        for at, healing in enumerate(healings):
            if healing.bytes:
                picked[at] = likeliest_of(logits[at], healing.candidates())
        probabilities: list[TokenProbability] = []
        if self.bias is None and not self.scores:
            return Picks(picked, probabilities)
        ranked = self._ranked(logits)
        context = list(rows.path[-NUM_LOOKED_UP:])
        child_of = child_rows(rows.tokens, rows.parents)
        row: int | None = 0
        while row is not None:  # along the accepted rows
            if row:
                context.append(rows.tokens[row])
            scored = score(logits[row], ranked(row), picked[row], healings[row], self.bias, context)
            if self.bias is not None:
                # p = (1 - w) p_target + w p_index raises only the tokens that the index saw.
                # So the pick is a raised token or the target's own pick, and `scored` holds them all.
                numbers, tokens = (
                    torch.tensor(list(scored.logits.values())),
                    torch.tensor(list(scored.logits)),
                )
                picked[row] = int(lowest_best(numbers, tokens))
            probabilities.append(scored.probability_of(picked[row]))
            row = child_of.get((row, picked[row]))
        return Picks(picked, probabilities)

    def _ranked(self, logits: Tensor) -> Callable[[int], RankedRow]:
        """Return what ranks one row: on the CPU when it is asked, elsewhere all rows at once."""
        if logits.device.type == "cpu":
            return lambda row: _likeliest(logits[row, : self.num_tokens])
        return rank_rows(logits, self.num_tokens).__getitem__


def likeliest_tokens(logits: Tensor, num_tokens: int) -> list[int]:
    """Return the likeliest of the first `num_tokens` tokens for each row [vocab_size] of `logits`."""
    if logits.device.type == "cpu":
        found = np.empty(len(logits), np.int64)
        largest(array_of(logits), num_tokens, found)
        return [int(token) for token in found]
    return [int(token) for token in first_largest(logits[:, :num_tokens]).tolist()]


def likeliest_of(logits: Tensor, allowed: Sequence[int]) -> int:
    """Return the likeliest token of one row [vocab_size] when only those in `allowed` may be written."""
    choice = torch.tensor(allowed, device=logits.device)
    return int(lowest_best(logits[choice], choice))


def score(  # noqa: PLR0913 - what a pick depends on
    logits: Tensor,
    ranked: RankedRow,
    picked: int,
    healing: HealingConstraint,
    bias: RepositoryBias | None,
    context: Sequence[int],
) -> RankedRow:
    """Score the row `logits` [vocab_size] after `context`, where the target alone picks `picked`.

    The result holds the target's own pick, the tokens that the bias raises, and the likeliest others.
    """
    rivals, log_sum = dict(ranked.logits), ranked.log_sum
    raised = bias.raised(logits, context, log_sum) if bias else {}
    if healing.bytes:
        rivals, log_sum = _among(logits, healing.candidates())
        raised = {token: gain for token, gain in raised.items() if healing.allows(token)}
    if picked not in rivals:
        rivals[picked] = float(logits[picked])
    for token, gain in raised.items():
        rivals[token] = gain.mixed
    top = max(log_sum, *rivals.values())
    added = sum(math.exp(gain.mixed - top) - math.exp(gain.own - top) for gain in raised.values())
    return RankedRow(rivals, top + math.log(math.exp(log_sum - top) + added))


def _likeliest(row: Tensor) -> RankedRow:
    """Return the best tokens of a row [num_tokens] on the CPU."""
    found = np.empty((1, min(NUM_RANKED, len(row))), np.int64)
    values = np.empty(found.shape, np.float32)
    likeliest(array_of(row[None]), 1.0, found, values)
    tokens = found[0].tolist()
    rivals = dict(zip(tokens, row[tokens].tolist(), strict=True))
    return RankedRow(rivals, rivals[tokens[0]] - math.log(values[0, 0]))


def _among(logits: Tensor, allowed: Sequence[int]) -> tuple[dict[int, float], float]:
    """Return the best `allowed` tokens with their logits, and the logarithm of their sum of e**logit."""
    tokens = torch.tensor(allowed, device=logits.device)
    row = logits[tokens].float()
    best = row.topk(min(NUM_RANKED, len(allowed)))
    rivals = dict(zip(tokens[best.indices].tolist(), best.values.tolist(), strict=True))
    return rivals, float(torch.logsumexp(row, -1))


def _log_add(left: float, right: float) -> float:
    """Return the logarithm of e**left + e**right."""
    low, high = sorted((left, right))
    return high + math.log1p(math.exp(low - high))
