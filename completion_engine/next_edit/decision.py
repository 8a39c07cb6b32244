"""Whether to propose an edit: the target's log odds and simple evidence, as one probability.

Pure functions of numbers and text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from completion_engine.next_edit.candidates import Candidate

DEFAULT_THRESHOLD = 0.75
_FAR = 1 << 24  # lines; a candidate of another document is at least this far


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for an edit. `log_odds` is the target's; `distance` counts lines from the cursor."""

    log_odds: float
    num_examples: int
    distance: int

    @classmethod
    def of(cls, candidate: Candidate, log_odds: float) -> Evidence:
        """Collect the evidence for a candidate that the target has scored."""
        return cls(log_odds, candidate.num_examples, candidate.distance)


@dataclass(frozen=True, slots=True)
class Weights:
    """A logistic model of the evidence, fitted on held-out edits by `tests.benchmarks.edits`."""

    bias: float = -1.0
    log_odds: float = 0.35
    has_two_examples: float = 1.0
    log_distance: float = -0.1
    is_far: float = -0.5


SHIPPED = Weights()


def probability(evidence: Evidence, weights: Weights = SHIPPED) -> float:
    """Return the probability that the user wants an edit."""
    is_far = evidence.distance >= _FAR
    score = weights.bias + weights.log_odds * max(-40.0, min(40.0, evidence.log_odds))
    score += weights.has_two_examples * (evidence.num_examples > 1)
    score += weights.is_far if is_far else weights.log_distance * math.log1p(evidence.distance)
    return 1 / (1 + math.exp(-score))
