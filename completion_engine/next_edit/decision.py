"""Whether to propose an edit: the target's log odds and simple evidence, as one probability.

Pure functions of numbers and text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from completion_engine.next_edit.candidates import Candidate
from completion_engine.next_edit.edits import Hunk
from completion_engine.next_edit.occurrences import OldName
from completion_engine.next_edit.substitutions import changed_cores, exchanged_names

_THRESHOLD = 0.65
_AFTER_MORE = 0.8  # the threshold after two examples or more, unless the user asks
_NEXT = 0.2  # the threshold where the user goes from one occurrence to the next
_MAX_LOG_ODDS = 20.0  # larger values mean the same: a removed long text can have any number


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for an edit. `log_odds` is the target's, `num_examples` counts recent hunks alike.

    An edit that `is_name_change` exchanges names alone; one that `moves_lines` changes the number of lines.
    `old_name` is the state of the exchanged name. `part`, from 0 to 1, is how much of the repeated hunk's
    change the edit makes. An edit `repeats_lines` if its old lines are old lines of that hunk, apart from
    their indentation. It `is_next` if the user goes from one occurrence to the next, see `Candidate`.
    """

    log_odds: float
    num_examples: int
    is_name_change: bool = False
    moves_lines: bool = False
    old_name: OldName = OldName.UNKNOWN
    part: float = 1.0
    repeats_lines: bool = False
    is_next: bool = False

    @classmethod
    def of_text(cls, candidate: Candidate, all_made: frozenset[tuple[str, str]]) -> Evidence:
        """Collect the evidence of the text of a candidate; `all_made` is what the repeated hunk changed."""
        edit, hunk = candidate.edit, candidate.repeats
        lines = {line.strip() for line in hunk.old}
        return cls(
            0.0,
            candidate.num_examples,
            is_name_change=bool(exchanged_names(edit)),
            moves_lines=len(edit.old) != len(edit.new),
            part=len(all_made.intersection(changed_cores(edit))) / max(1, len(all_made)),
            repeats_lines=all(line.strip() in lines for line in edit.old),
            is_next=candidate.is_next,
        )


@dataclass(frozen=True, slots=True)
class Weights:
    """A logistic model of the evidence. The defaults decide after two examples or more."""

    bias: float = -3.696
    log_odds: float = 1.757
    has_two_examples: float = 0.794
    is_name_change: float = 1.385
    moves_lines: float = -0.734
    old_name: float = 1.97
    part: float = 2.426
    repeats_lines: float = 2.185


@dataclass(frozen=True, slots=True)
class Decision:
    """The weights after `one` example, and after `more`; `tests.benchmarks.edits` fits them."""

    one: Weights = Weights(
        bias=-3.565,
        log_odds=1.486,
        has_two_examples=0.0,
        is_name_change=0.212,
        moves_lines=-1.082,
        old_name=1.771,
        part=2.091,
        repeats_lines=1.33,
    )
    more: Weights = Weights()


SHIPPED = Decision()


def features(evidence: Evidence) -> tuple[float, ...]:
    """Return the numbers that the weights multiply, in their order, each about as large as 1."""
    return (
        1.0,
        max(-_MAX_LOG_ODDS, min(_MAX_LOG_ODDS, evidence.log_odds)) / 10,
        float(evidence.num_examples > 1),
        float(evidence.is_name_change),
        float(evidence.moves_lines),
        float(evidence.old_name),
        evidence.part,
        float(evidence.repeats_lines),
    )


def threshold_of(evidence: Evidence, *, is_invoked: bool = False) -> float:
    """Return the probability that an edit needs to be proposed; see docs/experiments/next_edit.md."""
    if evidence.is_next:
        return _NEXT
    return _AFTER_MORE if evidence.num_examples > 1 and not is_invoked else _THRESHOLD


def probability(evidence: Evidence, decision: Decision = SHIPPED) -> float:
    """Return the probability that the user wants an edit.

    It is 0 after two examples if the file still binds the old name: the user exchanges some uses of two
    names, and which ones is not known.
    """
    if evidence.num_examples > 1 and evidence.old_name is OldName.BOUND:
        return 0.0
    weights = decision.one if evidence.num_examples == 1 else decision.more
    score = sum(weight * number for weight, number in zip(astuple(weights), features(evidence), strict=True))
    return 1 / (1 + math.exp(-score))


def most_promising_first(candidates: Iterable[Candidate]) -> list[tuple[Candidate, Evidence]]:
    """Order candidates by the evidence of their text, which is returned too, and equal ones by distance."""
    made: dict[Hunk, frozenset[tuple[str, str]]] = {}
    found: list[tuple[Candidate, Evidence]] = []
    for candidate in candidates:
        hunk = candidate.repeats
        if hunk not in made:
            made[hunk] = frozenset(changed_cores(hunk))
        found.append((candidate, Evidence.of_text(candidate, made[hunk])))
    return sorted(found, key=lambda it: (-probability(it[1]), it[0].distance))
