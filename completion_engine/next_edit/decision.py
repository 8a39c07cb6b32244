"""Whether to propose an edit: the target's log odds and simple evidence, as one probability.

Pure functions of numbers and text.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

from completion_engine.next_edit.candidates import Candidate
from completion_engine.next_edit.edits import LineEdit
from completion_engine.next_edit.substitutions import is_name, tokens_of

DEFAULT_THRESHOLD = 0.65
_MAX_LOG_ODDS = 20.0  # larger values mean the same: a removed long text can have any number


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for an edit. `log_odds` is the target's, `num_examples` counts recent hunks alike.

    An edit that `is_name_change` exchanges names alone; one that `moves_lines` changes the number of lines.
    """

    log_odds: float
    num_examples: int
    is_name_change: bool = False
    moves_lines: bool = False

    @classmethod
    def of(cls, candidate: Candidate, log_odds: float) -> Evidence:
        """Collect the evidence for a candidate that the target has scored."""
        edit = candidate.edit
        return cls(
            log_odds,
            candidate.num_examples,
            is_name_change=is_name_change(edit),
            moves_lines=len(edit.old) != len(edit.new),
        )


@dataclass(frozen=True, slots=True)
class Weights:
    """A logistic model of the evidence, fitted on held-out edits by `tests.benchmarks.edits`."""

    bias: float = -1.671
    log_odds: float = 1.855
    has_two_examples: float = 1.201
    is_name_change: float = 0.949
    moves_lines: float = -1.967


SHIPPED = Weights()


def features(evidence: Evidence) -> tuple[float, ...]:
    """Return the numbers that the weights multiply, in their order, each about as large as 1."""
    return (
        1.0,
        max(-_MAX_LOG_ODDS, min(_MAX_LOG_ODDS, evidence.log_odds)) / 10,
        float(evidence.num_examples > 1),
        float(evidence.is_name_change),
        float(evidence.moves_lines),
    )


def probability(evidence: Evidence, weights: Weights = SHIPPED) -> float:
    """Return the probability that the user wants an edit."""
    score = sum(weight * number for weight, number in zip(astuple(weights), features(evidence), strict=True))
    return 1 / (1 + math.exp(-score))


def is_name_change(edit: LineEdit) -> bool:
    """Return whether an edit exchanges names alone."""
    old, new = _tokens(edit.old), _tokens(edit.new)
    pairs = [(one, other) for one, other in zip(old, new, strict=False) if one != other]
    return len(old) == len(new) and all(is_name(one) and is_name(other) for one, other in pairs)


def _tokens(lines: tuple[str, ...]) -> list[str]:
    return tokens_of("\n".join(lines))
