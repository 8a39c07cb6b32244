"""Precision and recall of recorded questions, for any score and threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from completion_engine.next_edit.decision import Decision, Evidence, probability, threshold_of
from tests.benchmarks.edits.questions import Question, Scored

Score = Callable[[Scored], float]
Row = dict[str, str | float]

THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
LOG_ODDS = (-5.0, -2.0, 0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0)
SHIPPED_THRESHOLDS = threshold_of(Evidence(0.0, 1)), threshold_of(Evidence(0.0, 2))


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

    def as_row(self, end: str) -> Row:
        """The numbers of a table; their names end alike."""
        return {
            f"precision_{end}": round(self.precision, 3),
            f"recall_{end}": round(self.recall, 3),
            f"right_{end}": self.num_right,
            f"proposals_{end}": self.num_right + self.num_wrong,
            f"hunks_{end}": self.num_hunks,
        }


@dataclass
class Point:
    """Proposals after one example and after more, and after files' last hunks."""

    one: Tally = field(default_factory=Tally)
    more: Tally = field(default_factory=Tally)
    num_last: int = 0
    num_last_proposed: int = 0
    num_restored: int = 0

    def __add__(self, other: Point) -> Point:
        return Point(
            self.one + other.one,
            self.more + other.more,
            self.num_last + other.num_last,
            self.num_last_proposed + other.num_last_proposed,
            self.num_restored + other.num_restored,
        )

    def as_row(self, name: str | float) -> Row:
        """The numbers of a table under a name; they end with 1 after one example, with 2 after more."""
        return {
            "": name,
            **self.one.as_row("1"),
            **self.more.as_row("2"),
            "false_questions": round(self.num_last_proposed / max(1, self.num_last), 4),
            "restored": self.num_restored,
        }


def by_probability(decision: Decision) -> Score:
    """The probability that a decision gives."""
    return lambda scored: probability(scored.evidence, decision)


def by_margin(decision: Decision, thresholds: tuple[float, float] = SHIPPED_THRESHOLDS) -> Score:
    """That probability less the threshold after one example, or after more; one that is next has its own."""

    def margin(scored: Scored) -> float:
        evidence = scored.evidence
        chosen = threshold_of(evidence) if evidence.is_next else thresholds[evidence.num_examples > 1]
        return probability(evidence, decision) - chosen

    return margin


def by_log_odds(scored: Scored) -> float:
    """The target's log odds without any evidence."""
    return scored.evidence.log_odds


def by_pattern(_scored: Scored) -> float:
    """Patterns alone: the first place is always proposed."""
    return 1.0


def point(questions: Sequence[Question], score: Score, threshold: float) -> Point:
    """Propose at every question as the proposer would: right edits are applied, wrong ones are rejected."""
    found = Point()
    done: set[tuple[str, str, int]] = set()
    rejected: set[tuple[str, str, str]] = set()
    examples: dict[tuple[str, str, int], int] = {}
    for question in questions:
        examples |= {(question.package, question.file, hunk): num for hunk, num in question.repeats.items()}
        found.num_last += question.is_last
        chosen = _proposed(question, score, threshold, done, rejected)
        if chosen is None:
            continue
        tally = found.one if chosen.evidence.num_examples == 1 else found.more
        found.num_restored += chosen.restores
        if chosen.hunk >= 0:
            tally.num_right += 1
            done.add((question.package, question.file, chosen.hunk))
        else:
            tally.num_wrong += 1
            rejected.add((question.package, question.file, chosen.key))
            found.num_last_proposed += question.is_last
    for hunk, num in examples.items():
        tally = found.one if num == 1 else found.more
        tally.num_hunks += 1
        tally.num_found += hunk in done
    return found


def _proposed(
    question: Question,
    score: Score,
    threshold: float,
    done: set[tuple[str, str, int]],
    rejected: set[tuple[str, str, str]],
) -> Scored | None:
    for scored in question.candidates:
        is_done = scored.hunk >= 0 and (question.package, question.file, scored.hunk) in done
        is_open = not is_done and (question.package, question.file, scored.key) not in rejected
        if is_open and score(scored) >= threshold:
            return scored
    return None


def places_of(questions: Sequence[Question]) -> list[Scored]:
    """The places of some questions, each once for each number of examples, as it was scored last."""
    places: dict[tuple[str, str, str, int], Scored] = {}
    for question in questions:
        for scored in question.candidates:
            places[question.package, question.file, scored.key, scored.evidence.num_examples] = scored
    return list(places.values())


def area_under_curve(questions: Sequence[Question], score: Score) -> float:
    """The probability that a right place has a higher score than a wrong one; nan without both kinds."""
    places = places_of(questions)
    right, wrong = (
        np.array([score(scored) for scored in places if (scored.hunk >= 0) is is_right])
        for is_right in (True, False)
    )
    above = right[:, None] > wrong
    return float(above.mean() + (right[:, None] == wrong).mean() / 2) if above.size else float("nan")
