"""How likely the target found each token that it wrote, among all that may be written there.

Knows no text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

NUM_RIVALS = 8  # of the likeliest in a token's place, so many are kept


@dataclass(frozen=True, slots=True)
class Chance:
    """The share of a written token, and those of its likeliest rivals in its place.

    One that nobody weighed is not known.
    """

    share: float
    rivals: tuple[tuple[int, float], ...] = ()
    is_known: bool = True

    def among(self, allows: Callable[[int], bool]) -> Chance:
        """The same where of the rivals, as far as they are known, only those that `allows` takes are left."""
        if not self.is_known:
            return self
        kept = tuple((token, share) for token, share in self.rivals if allows(token))
        whole = self.share + sum(share for _, share in kept)
        return Chance(self.share / whole, tuple((token, share / whole) for token, share in kept))


UNKNOWN = Chance(1.0, is_known=False)
"""Of a token that nothing is known of: nothing speaks against it."""


def num_known(chances: Sequence[Chance]) -> int:
    """How many of the first chances are known."""
    return next((at for at, chance in enumerate(chances) if not chance.is_known), len(chances))
