"""From a token's share to how often such a token is right. Knows no text.

A share is the target's probability of a token among all that may be written there. A share of p is right,
behind right tokens, as often as `Calibration.of` says (Platt 1999).
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
_NUM_STEPS, _NEAR_ZERO = 40, 1e-8


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
    """The likeliest calibration after `evidence` of those no further from `prior` than bounds allow.

    Logistic regression with a normal prior around `prior`: with little evidence it stays there. The log
    posterior is concave, and so is the highest that an offset makes of it at each slope.
    """
    low, high = prior.offset - _MAX_SHIFTS[0], prior.offset + _MAX_SHIFTS[0]

    def offset_at(slope: float) -> float:
        return _zero(lambda offset: _gradient(evidence, prior, Calibration(offset, slope))[0], low, high)

    def gradient_at(slope: float) -> float:
        return _gradient(evidence, prior, Calibration(offset_at(slope), slope))[1]

    slope = _zero(gradient_at, prior.slope - _MAX_SHIFTS[1], prior.slope + _MAX_SHIFTS[1])
    return Calibration(offset_at(slope), slope)


def _gradient(evidence: Evidence, prior: Calibration, at: Calibration) -> tuple[float, float]:
    """The log posterior's derivatives by offset and slope."""
    by_offset = -(at.offset - prior.offset) / _OFFSET_SPREAD**2
    by_slope = -(at.slope - prior.slope) / _SLOPE_SPREAD**2
    for n, (right, wrong) in enumerate(zip(evidence.right, evidence.wrong, strict=True)):
        if right or wrong:
            x = _FIRST + n
            excess = _WEIGHT * (right - (right + wrong) / (1 + math.exp(-(at.offset + at.slope * x))))
            by_offset, by_slope = by_offset + excess, by_slope + excess * x
    return by_offset, by_slope


def _zero(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is zero, or the nearer of two bounds (regula falsi, Illinois)."""
    at_low, at_high = falling(low), falling(high)
    if at_low <= 0 or at_high >= 0:
        return low if at_low <= 0 else high
    middle, side = low, 0
    for _ in range(_NUM_STEPS):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        value = falling(middle)
        if abs(value) < _NEAR_ZERO:
            break
        if value > 0:
            low, at_low, at_high = middle, value, at_high / 2 if side > 0 else at_high
        else:
            high, at_high, at_low = middle, value, at_low / 2 if side < 0 else at_low
        side = 1 if value > 0 else -1
    return middle
