"""How likely each written token was, and from that how likely a whole text is what a person wants to write.

A token's share is the target's probability of it among all that could be written there. Shares are calibrated
on real positions (Platt 1999): a share of p means that the token is right, behind right ones, as often as
`calibrated` says. Knows no text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# The log odds of being right are OFFSET + SLOPE * log odds of the share; see docs/experiments.md.
OFFSET, SLOPE = 0.4, 0.64
_NARROWEST = 1e-6  # shares closer to 0 and 1 say no more


@dataclass(frozen=True, slots=True)
class Chance:
    """The share of a written token, and those of its likeliest rivals in its place."""

    share: float
    rivals: tuple[tuple[int, float], ...] = ()

    def among(self, allows: Callable[[int], bool]) -> Chance:
        """The same where of the rivals, as far as they are known, only those that `allows` takes are left."""
        kept = tuple((token, share) for token, share in self.rivals if allows(token))
        whole = self.share + sum(share for _, share in kept)
        return Chance(self.share / whole, tuple((token, share / whole) for token, share in kept))


UNKNOWN = Chance(1.0)
"""Of a token that nothing is known of: nothing speaks against it."""


def calibrated(share: float) -> float:
    """How often a token of that share is what a person writes, behind text that was."""
    bounded = min(max(share, _NARROWEST), 1 - _NARROWEST)
    odds = OFFSET + SLOPE * (math.log(bounded) - math.log1p(-bounded))
    return 1 / (1 + math.exp(-odds))


def num_sure(chances: Sequence[Chance], min_survival: float) -> int:
    """How many tokens are right all together at least that likely."""
    survival = 1.0
    for at, chance in enumerate(chances):
        survival *= calibrated(chance.share)
        if survival < min_survival:
            return at
    return len(chances)
