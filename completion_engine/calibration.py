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
"""Measured on real positions; see docs/experiments/suggestions.md."""
