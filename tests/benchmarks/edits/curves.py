"""Precision and recall over thresholds, and the weights of the decision, from recorded asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from completion_engine.next_edit.decision import Decision, Weights, features, probability, threshold_of
from tests.benchmarks.edits.asking import Ask, Scored

Score = Callable[[Scored], float]

THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
LOG_ODDS = (-5.0, -2.0, 0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0)
_RIDGE = 0.3  # pulls weights toward 0: the recordings hold a few hundred places
_NUM_STEPS = 4_000
_STEP = 0.5


@dataclass
class Tally:
    """Proposals after one number of examples, and the hunks that repeat as many."""

    num_right: int = 0
    num_wrong: int = 0
    num_hunks: int = 0
    num_found: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.num_right + other.num_right,
            self.num_wrong + other.num_wrong,
            self.num_hunks + other.num_hunks,
            self.num_found + other.num_found,
        )

    @property
    def precision(self) -> float:
        """The share of proposals that were right; 1 without any."""
        num = self.num_right + self.num_wrong
        return self.num_right / num if num else 1.0

    @property
    def recall(self) -> float:
        """The share of hunks that repeat an earlier one and were proposed before their turn."""
        return self.num_found / self.num_hunks if self.num_hunks else 0.0


@dataclass
class Point:
    """One threshold: proposals after one example and after more, and after files' last hunks."""

    threshold: float
    one: Tally = field(default_factory=Tally)
    more: Tally = field(default_factory=Tally)
    num_last: int = 0
    num_last_proposed: int = 0
    num_restored: int = 0

    def __add__(self, other: Point) -> Point:
        return Point(
            self.threshold,
            self.one + other.one,
            self.more + other.more,
            self.num_last + other.num_last,
            self.num_last_proposed + other.num_last_proposed,
            self.num_restored + other.num_restored,
        )

    def as_row(self) -> dict[str, float]:
        """The numbers of a table."""
        return {
            "threshold": self.threshold,
            "precision_1": round(self.one.precision, 3),
            "recall_1": round(self.one.recall, 3),
            "proposals_1": self.one.num_right + self.one.num_wrong,
            "hunks_1": self.one.num_hunks,
            "precision_2": round(self.more.precision, 3),
            "recall_2": round(self.more.recall, 3),
            "proposals_2": self.more.num_right + self.more.num_wrong,
            "hunks_2": self.more.num_hunks,
            "false_asks": round(self.num_last_proposed / max(1, self.num_last), 4),
            "restored": self.num_restored,
        }


def by_probability(decision: Decision) -> Score:
    """The probability that a decision gives."""
    return lambda scored: probability(scored.evidence, decision)


def by_margin(decision: Decision) -> Score:
    """That probability less the threshold for the number of examples."""
    return lambda scored: probability(scored.evidence, decision) - threshold_of(scored.evidence)


def by_log_odds(scored: Scored) -> float:
    """The target's log odds without any evidence."""
    return scored.evidence.log_odds


def by_pattern(_scored: Scored) -> float:
    """Patterns alone: the first place is always proposed."""
    return 1.0


def point(asks: Sequence[Ask], score: Score, threshold: float) -> Point:
    """Propose at every ask as the proposer would: right edits are applied, wrong ones are rejected."""
    found = Point(threshold)
    done: set[tuple[str, str, int]] = set()
    rejected: set[tuple[str, str, str]] = set()
    examples: dict[tuple[str, str, int], int] = {}
    for ask in asks:
        examples |= {(ask.package, ask.file, hunk): num for hunk, num in ask.repeats.items()}
        found.num_last += ask.is_last
        chosen = _proposed(ask, score, threshold, done, rejected)
        if chosen is None:
            continue
        tally = found.one if chosen.evidence.num_examples == 1 else found.more
        found.num_restored += chosen.restores
        if chosen.hunk >= 0:
            tally.num_right += 1
            done.add((ask.package, ask.file, chosen.hunk))
        else:
            tally.num_wrong += 1
            rejected.add((ask.package, ask.file, chosen.key))
            found.num_last_proposed += ask.is_last
    for hunk, num in examples.items():
        tally = found.one if num == 1 else found.more
        tally.num_hunks += 1
        tally.num_found += hunk in done
    return found


def _proposed(
    ask: Ask,
    score: Score,
    threshold: float,
    done: set[tuple[str, str, int]],
    rejected: set[tuple[str, str, str]],
) -> Scored | None:
    for scored in ask.candidates:
        is_done = scored.hunk >= 0 and (ask.package, ask.file, scored.hunk) in done
        is_open = not is_done and (ask.package, ask.file, scored.key) not in rejected
        if is_open and score(scored) >= threshold:
            return scored
    return None


def fit(asks: Sequence[Ask]) -> Decision:
    """The weights after one example, fitted on its places alone, and those after more, fitted on all places.

    Each place counts once for each number of examples.
    """
    places: dict[tuple[str, str, str, int], Scored] = {}
    for ask in asks:
        for scored in ask.candidates:
            places[ask.package, ask.file, scored.key, scored.evidence.num_examples] = scored
    one = [scored for scored in places.values() if scored.evidence.num_examples == 1]
    return Decision(_fit(one), _fit(list(places.values())))


def _fit(places: Sequence[Scored]) -> Weights:
    """Weights of a logistic model by gradient descent."""
    rows = np.array([features(scored.evidence) for scored in places])
    is_right = np.array([float(scored.hunk >= 0) for scored in places])
    weights = np.zeros(rows.shape[1])
    ridge = np.full(rows.shape[1], _RIDGE)
    ridge[0] = 0.0
    for _ in range(_NUM_STEPS):
        error = 1 / (1 + np.exp(-rows @ weights)) - is_right
        weights -= _STEP * (rows.T @ error + ridge * weights) / len(rows)
    return Weights(*(round(float(weight), 3) for weight in weights))


def left_out(asks: Sequence[Ask]) -> dict[str, tuple[list[Ask], Decision]]:
    """The asks of each package, and the weights that are fitted on all others."""
    groups = defaultdict[str, list[Ask]](list)
    for ask in asks:
        groups[ask.package].append(ask)
    return {
        package: (own, fit([ask for other in groups if other != package for ask in groups[other]]))
        for package, own in groups.items()
    }
