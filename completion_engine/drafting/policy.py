"""How much to draft: a pure function over survival estimates and measured costs.

Learns online how often a drafted token of a kind (origin, match length, share, depth) is accepted, given
that all before it were, and spends what raises the expected tokens per millisecond most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from completion_engine.drafting.draft import Draft, DraftToken

_PRIOR_WEIGHT = 8.0
_DECAY = 0.995
_PRIOR_BY_MATCH = (0.1, 0.35, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88)

Kind = tuple[str, int, int]


@dataclass(slots=True)
class _Tally:
    accepted: float
    tried: float


@dataclass(slots=True)
class SurvivalTable:
    """Online estimates of the acceptance of one drafted token, given that its parent was accepted."""

    _tallies: dict[Kind, _Tally] = field(default_factory=dict)

    def estimate(self, token: DraftToken) -> float:
        """Probability that the target writes `token` where it stands."""
        tally = self._tallies.get(_kind(token))
        prior = _prior(token)
        if tally is None:
            return prior
        return (tally.accepted + _PRIOR_WEIGHT * prior) / (tally.tried + _PRIOR_WEIGHT)

    def observe(self, draft: Sequence[DraftToken], num_accepted: int) -> None:
        """Learn from one verification: all up to the first refused token were put to the test."""
        for depth, token in enumerate(draft[: num_accepted + 1]):
            tally = self._tallies.setdefault(_kind(token), _Tally(0.0, 0.0))
            tally.accepted = tally.accepted * _DECAY + (depth < num_accepted)
            tally.tried = tally.tried * _DECAY + 1


def choose(
    drafts: Sequence[Draft], table: SurvivalTable, num_pending: int, pass_ms: Mapping[int, float]
) -> Draft:
    """The draft, cut to length, that promises most tokens per millisecond; possibly none.

    A pass of width w holds `num_pending` known rows and w - num_pending drafted ones; `pass_ms` gives
    its cost by width. Rows up to the width are paid for whether they are used or not.
    """
    best: Draft = ()
    best_rate = 0.0
    for width, cost in pass_ms.items():
        room = width - num_pending
        if room < 0:
            continue
        for draft in (*drafts, ()):
            gain = 1.0 + _expected(draft[:room], table)
            if gain / cost > best_rate:
                best, best_rate = draft[:room], gain / cost
    return best


def _expected(draft: Sequence[DraftToken], table: SurvivalTable) -> float:
    """Expected number of accepted tokens of a chain."""
    total, alive = 0.0, 1.0
    for token in draft:
        alive *= table.estimate(token)
        total += alive
    return total


def _kind(token: DraftToken) -> Kind:
    return token.origin, min(token.match_length, 16), int(token.share * 4)


def _prior(token: DraftToken) -> float:
    by_match = _PRIOR_BY_MATCH[min(token.match_length, len(_PRIOR_BY_MATCH) - 1)]
    return by_match * (0.3 + 0.7 * token.share)
