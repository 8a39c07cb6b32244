"""The target's probabilities of written tokens, and their calibration to the frequency of right tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

NUM_RIVALS = 8  # the likeliest tokens in a token's place that are kept beside it
NUM_RANKED = NUM_RIVALS  # the likeliest tokens of a row that are looked at, its pick among them
_NARROWEST = 1e-6  # probabilities closer to 0 and 1 count as this


@dataclass(frozen=True, slots=True)
class TokenProbability:
    """The target's probability of a written token among all that may be written there, and of its rivals.

    `is_scored` is False if the token has no probability; `value` is then 1. `unknown` is the share of
    tokens beyond the rivals, at most.
    """

    value: float
    rivals: tuple[tuple[int, float], ...] = ()
    is_scored: bool = True
    unknown: float = 0.0

    def among(self, allows: Callable[[int], bool]) -> TokenProbability:
        """Return the probability if only this token and the rivals that `allows` accepts can be written."""
        if not self.is_scored:
            return self
        kept = tuple((token, value) for token, value in self.rivals if allows(token))
        whole = self.value + sum(value for _, value in kept)
        rest = max(0.0, 1 - self.value - sum(value for _, value in self.rivals))
        narrowed = tuple((token, value / whole) for token, value in kept)
        return TokenProbability(self.value / whole, narrowed, unknown=rest / (whole + rest))


NOT_SCORED = TokenProbability(1.0, is_scored=False)
"""The value of a token without a probability."""


@dataclass(frozen=True, slots=True)
class RankedRow:
    """The logits of the candidates for one position, by token id.

    `log_sum` is the logarithm of the sum of e**logit over all tokens that may be written there, so a
    probability is e**(logit - log_sum).
    """

    logits: Mapping[int, float]
    log_sum: float

    def probability_of(self, picked: int) -> TokenProbability:
        """Return the probability of the picked token, which is a candidate, and of its likeliest rivals."""
        values = {token: math.exp(min(0.0, logit - self.log_sum)) for token, logit in self.logits.items()}
        others = sorted((-value, token) for token, value in values.items() if token != picked)
        return TokenProbability(
            values[picked], tuple((token, -value) for value, token in others[:NUM_RIVALS])
        )


def num_scored(probabilities: Sequence[TokenProbability]) -> int:
    """Return the number of tokens before the first one that was not scored."""
    return next((at for at, one in enumerate(probabilities) if not one.is_scored), len(probabilities))


@dataclass(frozen=True, slots=True)
class Calibration:
    """The log odds of being right are `offset` + `slope` * log odds of the probability (Platt 1999)."""

    offset: float
    slope: float

    def of(self, probability: float) -> float:
        """Return how often a token of this probability is what a person writes after text that was right."""
        return 1 / (1 + math.exp(-(self.offset + self.slope * log_odds(probability))))


SHIPPED = Calibration(0.4, 0.64)
"""Measured on real positions; see docs/experiments.md."""


def log_odds(probability: float) -> float:
    """Return the logarithm of probability / (1 - probability), between -14 and 14."""
    bounded = min(max(probability, _NARROWEST), 1 - _NARROWEST)
    return math.log(bounded) - math.log1p(-bounded)
