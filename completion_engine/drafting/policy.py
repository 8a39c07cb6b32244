"""How much to draft: a pure function over survival estimates and measured costs.

Learns online how often a guess of a kind (who made it, match length, share) is right when all before it
were, and spends what raises the expected tokens per millisecond most. Drafts nothing when that is best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from completion_engine.costs import Costs
from completion_engine.drafting.draft import Draft, DraftToken
from completion_engine.drafting.tree import Candidate, grow, in_lane_order, merge

_PRIOR_WEIGHT = 8.0
_DECAY = 0.995
_PRIOR_BY_MATCH = (0.1, 0.35, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88)

Kind = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass will verify: `rows` in lane order, each with the place of its parent in `rows`.

    `considered` is everything that was guessed; what the target picks judges all of it.
    """

    rows: tuple[Candidate, ...]
    parents: tuple[int, ...]
    considered: tuple[Candidate, ...]
    width: int


@dataclass(slots=True)
class _Tally:
    accepted: float = 0.0
    tried: float = 0.0


@dataclass(slots=True)
class SurvivalTable:
    """Online estimates of the chance that a guess is right, given that its parent was."""

    _tallies: dict[Kind, _Tally] = field(default_factory=dict)

    def estimate(self, guesses: Sequence[DraftToken]) -> float:
        """Chance that the target writes the token for which all `guesses` stand."""
        if len(guesses) == 1:
            return self._of((_kind(guesses[0]),), _prior(guesses[0]))
        wrong = 1.0
        for guess in guesses:
            wrong *= 1.0 - self._of((_kind(guess),), _prior(guess))
        return self._of(tuple(sorted({_kind(guess) for guess in guesses})), 1.0 - wrong)

    def observe(self, guesses: Sequence[DraftToken], *, is_right: bool) -> None:
        """A guess was put to the test."""
        kinds = sorted({_kind(guess) for guess in guesses})
        for kind in {tuple(kinds), *((kind,) for kind in kinds)}:
            tally = self._tallies.setdefault(kind, _Tally())
            tally.accepted = tally.accepted * _DECAY + is_right
            tally.tried = tally.tried * _DECAY + 1

    def _of(self, kind: Kind, prior: float) -> float:
        tally = self._tallies.get(kind)
        if tally is None:
            return prior
        return (tally.accepted + _PRIOR_WEIGHT * prior) / (tally.tried + _PRIOR_WEIGHT)


def choose(drafts: Sequence[Draft], table: SurvivalTable, num_pending: int, costs: Costs) -> Plan:
    """The tree that promises most tokens per millisecond; possibly none.

    A pass of width w holds `num_pending` known rows and w - num_pending guessed ones. Rows up to the width
    are paid for whether they are used or not.
    """
    room = max(0, max(costs.pass_ms) - num_pending)
    considered = merge(drafts, table.estimate, room)
    best: tuple[float, int, list[int]] = (0.0, min(costs.pass_ms), [])
    for max_lanes in sorted({1, costs.max_lanes}):
        order = grow(considered, room, max_lanes)
        best = max(best, _best_width(considered, order, num_pending, costs), key=lambda found: found[0])
    rows = in_lane_order(considered, best[2])
    place = {at: row for row, at in enumerate(rows)} | {-1: -1}
    return Plan(
        tuple(considered[at] for at in rows),
        tuple(place[considered[at].parent] for at in rows),
        tuple(considered),
        best[1],
    )


def judge(plan: Plan, picked: Mapping[int, int], table: SurvivalTable) -> None:
    """Learn from a pass. `picked` is the target's pick after each true row of the plan; -1: before them.

    What was guessed behind a true row is judged, also where it was not verified.
    """
    true_at = {-1: picked[-1]}
    rows = {id(candidate): row for row, candidate in enumerate(plan.rows)}
    for at, candidate in enumerate(plan.considered):
        if candidate.parent not in true_at:
            continue
        is_right = candidate.token == true_at[candidate.parent]
        table.observe(candidate.guesses, is_right=is_right)
        row = rows.get(id(candidate), -1)
        if is_right and row >= 0 and row in picked:
            true_at[at] = picked[row]


def _best_width(
    considered: Sequence[Candidate], order: list[int], num_pending: int, costs: Costs
) -> tuple[float, int, list[int]]:
    """Tokens per millisecond of the best width, that width, and what it verifies."""
    best: tuple[float, int, list[int]] = (0.0, 0, [])
    for width, pass_ms in costs.pass_ms.items():
        if width < num_pending:
            continue
        chosen = order[: width - num_pending]
        num_leaves = max(1, len(chosen) - len({considered[at].parent for at in chosen} - {-1}))
        cost = pass_ms + (num_leaves - 1) * costs.lane_ms
        rate = (1.0 + sum(considered[at].survival for at in chosen)) / cost
        if rate > best[0]:
            best = rate, width, chosen
    return best


def _kind(guess: DraftToken) -> tuple[str, int, int]:
    return guess.origin, min(guess.match_length, 16), int(guess.share * 8)


def _prior(guess: DraftToken) -> float:
    if guess.source == "neural":
        return guess.share
    by_match = _PRIOR_BY_MATCH[min(guess.match_length, len(_PRIOR_BY_MATCH) - 1)]
    return by_match * (0.3 + 0.7 * guess.share)
