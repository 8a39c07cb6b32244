"""Weights of the decision, fitted on recorded questions, and what they give on packages they never saw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields

import numpy as np

from completion_engine.next_edit.decision import Decision, Weights, features
from tests.benchmarks.edits.curves import Point, Tally, by_margin, places_of, point
from tests.benchmarks.edits.questions import Question, Scored

# Questions of some packages and the decision for them, which saw no other package's questions.
Part = tuple[Sequence[Question], Decision]
Packages = Mapping[str, Sequence[Question]]
Train = Callable[[Sequence[Question]], Decision]

_AIMS = 0.75, 0.85  # precision after one example, and after more
_CHOICES = tuple(round(0.4 + 0.025 * step, 3) for step in range(19))
_RIDGE = 0.3  # pulls weights toward 0: the recordings hold a few hundred places
_MAX_STEPS = 40


def fit(questions: Sequence[Question], *, without: str = "") -> Decision:
    """The weights after one example, fitted on its places alone, and those after more, fitted on all places.

    The weight of the evidence `without` is 0.
    """
    places = places_of(questions)
    one = [scored for scored in places if scored.evidence.num_examples == 1]
    return Decision(_fit(one, without), _fit(places, without))


def _fit(places: Sequence[Scored], without: str) -> Weights:
    """Weights of a logistic model by Newton's method."""
    names = [field.name for field in fields(Weights)]
    rows = np.array([features(scored.evidence) for scored in places])
    rows[:, [name == without for name in names]] = 0.0
    is_right = np.array([float(scored.hunk >= 0) for scored in places])
    ridge = np.array([0.0, *[_RIDGE] * (len(names) - 1)])
    weights = np.zeros(len(names))
    for _ in range(_MAX_STEPS):
        likely = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (likely - is_right) + ridge * weights
        curvature = (rows.T * (likely * (1 - likely))) @ rows + np.diag(ridge + 1e-9)
        step = np.linalg.solve(curvature, slope)
        weights -= step
        if abs(step).max() < 1e-6:
            break
    return Weights(*(round(float(weight), 3) for weight in weights))


def by_package(questions: Sequence[Question]) -> dict[str, list[Question]]:
    """The questions of each package."""
    packages = defaultdict[str, list[Question]](list)
    for question in questions:
        packages[question.package].append(question)
    return packages


def held_out(packages: Packages, train: Train) -> list[Part]:
    """The questions of each package, with the decision that is trained on all others."""
    return [(own, train(others)) for own, others in _divided(packages)]


def at(parts: Sequence[Part], thresholds: tuple[float, float]) -> Point:
    """The proposals of all parts, each by its own decision."""
    return sum((point(own, by_margin(decision, thresholds), 0.0) for own, decision in parts), Point())


def with_chosen_thresholds(packages: Packages, train: Train) -> Point:
    """The proposals of each package, by weights and thresholds that never saw it.

    Each threshold is the lowest one that reaches the aim of precision in the other packages, by weights that
    are trained without each of them.
    """
    found = Point()
    for name, own in packages.items():
        others = {other: questions for other, questions in packages.items() if other != name}
        parts = held_out(others, train)
        points = [at(parts, (threshold, threshold)) for threshold in _CHOICES]
        thresholds = (
            _lowest([it.one for it in points], _AIMS[0]),
            _lowest([it.more for it in points], _AIMS[1]),
        )
        decision = train([question for questions in others.values() for question in questions])
        found += point(own, by_margin(decision, thresholds), 0.0)
    return found


def _divided(packages: Packages) -> Iterator[tuple[Sequence[Question], list[Question]]]:
    for name, own in packages.items():
        yield (
            own,
            [question for other, questions in packages.items() if other != name for question in questions],
        )


def _lowest(tallies: Sequence[Tally], aim: float) -> float:
    """The lowest threshold that reaches an aim, or the one that comes nearest to it."""
    precisions = [tally.precision for tally in tallies]
    reached = min(aim, max(precisions))
    return next(threshold for threshold, it in zip(_CHOICES, precisions, strict=True) if it >= reached)
