"""From a token's share to how often such a token is right. Knows no text.

A share is the target's probability of a token among all that may be written there. A share of p is right,
behind right tokens, as often as `Calibration.of` says (Platt 1999).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_NARROWEST = 1e-6  # shares closer to 0 and 1 say no more


def log_odds(share: float) -> float:
    """The logarithm of share / (1 - share), between -14 and 14."""
    bounded = min(max(share, _NARROWEST), 1 - _NARROWEST)
    return math.log(bounded) - math.log1p(-bounded)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The log odds of being right are `offset` + `slope` * log odds of the share."""

    offset: float
    slope: float

    def of(self, share: float) -> float:
        """How often a token of that share is what a person writes, behind text that was."""
        return 1 / (1 + math.exp(-(self.offset + self.slope * log_odds(share))))


SHIPPED = Calibration(0.4, 0.64)
"""Measured on real positions; see docs/experiments.md."""


# Log odds of shares are counted in bins one wide, from the first one's middle on.
_FIRST, NUM_BINS = -5.0, 16
# What people and repositories differ by, as measured: standard deviations of offset and slope.
_OFFSET_SPREAD, _SLOPE_SPREAD = 0.3, 0.1
_MAX_SHIFTS = (0.6, 0.2)  # of offset and slope, however much is learned
_WEIGHT = 0.25  # of a token: those of one text are right or wrong together
_MAX_TOKENS = 4_000.0  # then older ones count half
_NUM_STEPS = 20


@dataclass(frozen=True, slots=True)
class Evidence:
    """How many tokens were right and wrong, by bins of their share's log odds [NUM_BINS]."""

    right: tuple[float, ...] = (0.0,) * NUM_BINS
    wrong: tuple[float, ...] = (0.0,) * NUM_BINS

    @property
    def num_tokens(self) -> float:
        """How many there are, those counted half as such."""
        return sum(self.right) + sum(self.wrong)

    def plus(self, share: float, *, is_right: bool) -> Evidence:
        """With one token more."""
        at = min(max(round(log_odds(share) - _FIRST), 0), NUM_BINS - 1)
        one = Evidence(
            *(tuple(float(n == at and side == is_right) for n in range(NUM_BINS)) for side in (True, False))
        )
        return self + one

    def __add__(self, other: Evidence) -> Evidence:
        right = tuple(map(float.__add__, self.right, other.right))
        wrong = tuple(map(float.__add__, self.wrong, other.wrong))
        half = 0.5 if sum(right) + sum(wrong) > _MAX_TOKENS else 1.0
        return Evidence(tuple(half * count for count in right), tuple(half * count for count in wrong))


def learned(evidence: Evidence, prior: Calibration = SHIPPED) -> Calibration:
    """The likeliest calibration after `evidence`, never further from `prior` than bounds allow.

    Logistic regression with a normal prior around `prior`, by Newton's method: with little evidence it stays
    there.
    """
    offset, slope = prior.offset, prior.slope
    for _ in range(_NUM_STEPS):
        # Gradient and (negative) second derivatives of the log posterior.
        g = [-(offset - prior.offset) / _OFFSET_SPREAD**2, -(slope - prior.slope) / _SLOPE_SPREAD**2]
        a, b, c = 1 / _OFFSET_SPREAD**2, 0.0, 1 / _SLOPE_SPREAD**2
        for at, (right, wrong) in enumerate(zip(evidence.right, evidence.wrong, strict=True)):
            x = _FIRST + at
            p = 1 / (1 + math.exp(-(offset + slope * x)))
            num, excess = _WEIGHT * (right + wrong), _WEIGHT * right - _WEIGHT * (right + wrong) * p
            g[0], g[1] = g[0] + excess, g[1] + excess * x
            spread = num * p * (1 - p)
            a, b, c = a + spread, b + spread * x, c + spread * x * x
        det = a * c - b * b
        offset, slope = offset + (c * g[0] - b * g[1]) / det, slope + (a * g[1] - b * g[0]) / det
        offset = _near(offset, prior.offset, _MAX_SHIFTS[0])
        slope = _near(slope, prior.slope, _MAX_SHIFTS[1])
    return Calibration(offset, slope)


def _near(value: float, middle: float, distance: float) -> float:
    return min(max(value, middle - distance), middle + distance)
