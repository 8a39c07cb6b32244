"""Acceptance probabilities of draft tokens, and what costly drafters gain and cost, both learned online.

The probability of a token is a conditional logit (McFadden 1974) over the tokens proposed for one position
and one more alternative, "another token". A proposed token has the weight exp(score), "another token" the
weight 1, and a probability is a weight divided by the sum of all. The weights in the score were fitted once
on recorded completions; a correction for each kind of evidence is learned online. Times are in milliseconds
and come from the caller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from completion_engine.drafting.drafts import DraftToken

_MAX_MATCH = 32
_LOG_MATCH = tuple(math.log(length + 1.0) for length in range(_MAX_MATCH + 1))
_LOGIT_RESOLUTION = 100
_LOGIT = tuple(
    math.log(step / (_LOGIT_RESOLUTION - step))
    for step in (min(max(at, 1), _LOGIT_RESOLUTION - 1) for at in range(_LOGIT_RESOLUTION + 1))
)
_MAX_SCORE = 9.0
_RATE = 0.05  # learning rate of the corrections, per verified token
_KEEP = 0.999  # decay of a correction per update
_KEEP_GAIN = 0.97  # decay of a gain per pass, drafted or not: so an unused drafter is tried again later
_GAIN_TRUST = 4.0  # the prior of a gain counts as much as this number of passes
_PRIOR_GAIN, _PRIOR_NUM_STEPS = (
    0.8,
    3.0,
)  # tokens, and drafting steps; optimistic, so that a new drafter is tried


# Fitted by maximum likelihood (ridge 0.3) on 23,864 positions in 92 completions of qwen2.5-coder-0.5b in
# five repositories that are newer than it, as `tests.benchmarks.drafting` records them. More terms (number
# of occurrences, probability by source, probability times match length) gained at most 0.008 nats a position,
# cross-validated on 52 of the completions. Only the last was replayed: less than half a percent of time, more
# or less by machine. `distilled` was fitted with all others fixed, on 28 completions with an early drafter.
_BASE = -3.46
_BY_EVIDENCE = {
    "prompt": 1.57,
    "index": 0.59,
    "recent": -0.11,
    "distilled": 3.0,
}
_PER_LOG_MATCH = 1.23
_PER_LOGIT = 0.36
_PER_NEURAL_LOGIT = 0.6  # networks have no match length; their probability replaces it
_FIRST_CHOICE = 0.57
_AGREED = -0.37
_DEEPER = -0.11

EvidenceKind = tuple[str, int, int]


@dataclass(slots=True)
class _Gain:
    """Decayed sums over `num_passes` passes: tokens that costly drafts added, milliseconds that they took."""

    tokens: float = 0.0
    ms: float = 0.0
    num_passes: float = 0.0

    def fade(self) -> None:
        self.tokens *= _KEEP_GAIN
        self.ms *= _KEEP_GAIN
        self.num_passes *= _KEEP_GAIN


@dataclass(slots=True)
class AcceptanceTable:
    """The corrections to acceptance probabilities, and the gains of costly drafters, learned online."""

    _corrections: dict[EvidenceKind, float] = field(default_factory=dict)
    _gains: dict[int, _Gain] = field(default_factory=dict)

    def weight(self, guesses: Sequence[DraftToken], depth: int, *, is_first: bool) -> float:
        """Return the weight, exp(score), of a token that all of `guesses` propose; "another token" has 1.

        It assumes that the tokens before it are accepted. `depth` is 0 right after the written text;
        `is_first` marks the first choice of a drafter.
        """
        score, best_match, best = _BASE, 0, 0.0
        for guess in guesses:
            score += _BY_EVIDENCE.get(guess.read_from, 0.0) + self._corrections.get(_kind(guess), 0.0)
            if guess.source == "neural":
                score += _PER_NEURAL_LOGIT * _LOGIT[int(guess.probability * _LOGIT_RESOLUTION)]
            else:
                best_match, best = max(best_match, guess.match_length), max(best, guess.probability)
        score += _PER_LOG_MATCH * _LOG_MATCH[min(best_match, _MAX_MATCH)]
        if best:
            score += _PER_LOGIT * _LOGIT[int(best * _LOGIT_RESOLUTION)]
        if is_first:
            score += _FIRST_CHOICE
        if len(guesses) > 1:
            score += _AGREED
        if depth:
            score += _DEEPER
        return math.exp(min(score, _MAX_SCORE))

    def learn(self, guesses: Sequence[DraftToken], probability: float, *, is_right: bool) -> None:
        """Learn whether a token of this `probability` was accepted, by one gradient step."""
        error = _RATE * (is_right - probability)
        for guess in guesses:
            kind = _kind(guess)
            self._corrections[kind] = self._corrections.get(kind, 0.0) * _KEEP + error

    def gain(self, num_expected: float, step_ms: float) -> tuple[float, float]:
        """Return the mean tokens that a costly drafter adds to `num_expected`, and the mean milliseconds it
        takes.
        """
        seen = self._gains.get(_situation(num_expected), _Gain())
        weight = seen.num_passes + _GAIN_TRUST
        tokens = seen.tokens + _GAIN_TRUST * _PRIOR_GAIN
        return tokens / weight, (seen.ms + _GAIN_TRUST * _PRIOR_NUM_STEPS * step_ms) / weight

    def learn_gain(self, num_expected: float, tokens: float, ms: float) -> None:
        """Learn that a costly drafter added `tokens` to a pass, which took `ms` longer for it."""
        seen = self._gains.setdefault(_situation(num_expected), _Gain())
        seen.fade()
        seen.tokens += tokens
        seen.ms += ms
        seen.num_passes += 1.0

    def forget_gain(self, num_expected: float) -> None:
        """Decay the gain after a pass without the drafter, so that the prior lets it draft again later."""
        if (seen := self._gains.get(_situation(num_expected))) is not None:
            seen.fade()


def _kind(guess: DraftToken) -> EvidenceKind:
    return guess.read_from, min(guess.match_length, 12) // 2, int(guess.probability * 4)


def _situation(num_expected: float) -> int:
    """Return the bucket of passes with about as many expected tokens."""
    return int(2.0 * math.log2(max(1.0, num_expected)))
