"""Acceptance probabilities: the probability that the target accepts guesses of a kind, and the gain of costly
drafts.

The probability of a guess is a conditional logit (McFadden 1974) over the tokens guessed for one position:
the weight of a token is exp(score), that of any other token 1. Scores start from weights that were fitted
once on recorded completions, and are corrected online for each kind. Plain numbers. Does not depend on costs
and clocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from completion_engine.drafting.drafts import DraftToken

_MAX_MATCH = 32
_LOG_MATCH = tuple(math.log(length + 1.0) for length in range(_MAX_MATCH + 1))
_NUM_STEPS = 100
_LOGIT = tuple(
    math.log(step / (_NUM_STEPS - step))
    for step in (min(max(at, 1), _NUM_STEPS - 1) for at in range(_NUM_STEPS + 1))
)
_MAX_SCORE = 9.0
_RATE = 0.05  # rate of the online correction, per guess that is tested
_KEEP = 0.999  # a correction fades unless it is renewed
_KEEP_GAIN = 0.97  # per pass, asked or not: a drafter that gained nothing is tried again
_GAIN_TRUST = 4.0  # passes that the prior of a gain counts for
_PRIOR_GAIN, _PRIOR_STEPS = 0.8, 3.0  # high, so that a drafter is tried


# Fitted by maximum likelihood (ridge 0.3) on 23,864 positions in 92 completions of qwen2.5-coder-0.5b in
# five repositories that are newer than it, as `tests.benchmarks.drafting` records them. More terms (number
# of occurrences, probability by source, probability times match length) gained at most 0.008 nats a position,
# cross-validated on 52 of the completions. Only the last was replayed: less than half a percent of time, more
# or less by machine. The terms of models were fitted with all others fixed: `distilled` on 28 completions
# with an early drafter, `model` on 8 of qwen2.5-coder-1.5b with its smaller sibling.
_BASE = -3.46
_BY_EVIDENCE = {
    "prompt": 1.57,
    "successors": 0.91,
    "lookahead": 1.0,
    "index": 0.59,
    "recent": -0.11,
    "model": 5.0,
    "distilled": 3.0,
}
_PER_LOG_MATCH = 1.23
_PER_LOGIT = 0.36
_PER_NEURAL_LOGIT = 0.6  # a model's probability says all that a match would
_FIRST_CHOICE = 0.57
_AGREED = -0.37
_DEEPER = -0.11

EvidenceKind = tuple[str, int, int]


@dataclass(slots=True)
class _Gain:
    """Tokens that costly drafts added and milliseconds that they took, over `num_passes`; old ones fade."""

    tokens: float = 0.0
    ms: float = 0.0
    num_passes: float = 0.0

    def fade(self) -> None:
        self.tokens *= _KEEP_GAIN
        self.ms *= _KEEP_GAIN
        self.num_passes *= _KEEP_GAIN


@dataclass(slots=True)
class AcceptanceTable:
    """All that is learnt online about guesses and costly drafters."""

    _corrections: dict[EvidenceKind, float] = field(default_factory=dict)
    _gains: dict[int, _Gain] = field(default_factory=dict)

    def odds(self, guesses: Sequence[DraftToken], depth: int, *, is_first: bool) -> float:
        """Return the `odds` of `guesses` against any token that was not guessed.

        The path above counts as true; `depth` is 0 right after the written text. `is_first` marks the first
        choice of a source.
        """
        score, best_match, best = _BASE, 0, 0.0
        for guess in guesses:
            score += _BY_EVIDENCE.get(guess.read_from, 0.0) + self._corrections.get(_kind(guess), 0.0)
            if guess.source == "neural":
                score += _PER_NEURAL_LOGIT * _LOGIT[int(guess.probability * _NUM_STEPS)]
            else:
                best_match, best = max(best_match, guess.match_length), max(best, guess.probability)
        score += _PER_LOG_MATCH * _LOG_MATCH[min(best_match, _MAX_MATCH)]
        if best:
            score += _PER_LOGIT * _LOGIT[int(best * _NUM_STEPS)]
        if is_first:
            score += _FIRST_CHOICE
        if len(guesses) > 1:
            score += _AGREED
        if depth:
            score += _DEEPER
        return math.exp(min(score, _MAX_SCORE))

    def learn(self, guesses: Sequence[DraftToken], probability: float, *, is_right: bool) -> None:
        """Learn from a tested token of this `probability`: one step along the likelihood's gradient."""
        error = _RATE * (is_right - probability)
        for guess in guesses:
            kind = _kind(guess)
            self._corrections[kind] = self._corrections.get(kind, 0.0) * _KEEP + error

    def gain(self, num_expected: float, step_ms: float) -> tuple[float, float]:
        """Return the tokens that a costly drafter adds to those expected, and the milliseconds it takes."""
        seen = self._gains.get(_situation(num_expected), _Gain())
        weight = seen.num_passes + _GAIN_TRUST
        tokens = seen.tokens + _GAIN_TRUST * _PRIOR_GAIN
        return tokens / weight, (seen.ms + _GAIN_TRUST * _PRIOR_STEPS * step_ms) / weight

    def learn_gain(self, num_expected: float, tokens: float, ms: float) -> None:
        """Learn from a costly drafter that added `tokens` to a pass and took `ms`."""
        seen = self._gains.setdefault(_situation(num_expected), _Gain())
        seen.fade()
        seen.tokens += tokens
        seen.ms += ms
        seen.num_passes += 1.0

    def forget_gain(self, num_expected: float) -> None:
        """Let what was learnt fade, because the drafter was not asked: it is tried again one day."""
        if (seen := self._gains.get(_situation(num_expected))) is not None:
            seen.fade()


def _kind(guess: DraftToken) -> EvidenceKind:
    return guess.read_from, min(guess.match_length, 12) // 2, int(guess.probability * 4)


def _situation(num_expected: float) -> int:
    """Return one number for passes that promise about as much."""
    return int(2.0 * math.log2(max(1.0, num_expected)))
