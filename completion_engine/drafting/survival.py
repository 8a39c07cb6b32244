"""What the policy has learnt: how often guesses of a kind are right, and what costly drafts gain.

The chance of a guess is a conditional logit (McFadden 1974) over the tokens guessed for one place: the odds
of a token are exp(score), those of anything else 1. Scores start from weights that were fitted once on
recorded completions and are corrected online, kind by kind. Plain numbers; knows no costs and no clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from completion_engine.drafting.draft import DraftToken

_MAX_MATCH = 32
_LOG_MATCH = tuple(math.log(length + 1.0) for length in range(_MAX_MATCH + 1))
_NUM_SHARES = 100
_LOGIT = tuple(
    math.log(share / (_NUM_SHARES - share))
    for share in (min(max(at, 1), _NUM_SHARES - 1) for at in range(_NUM_SHARES + 1))
)
_MAX_SCORE = 9.0
_STEP = 0.05  # of the online correction, per guess put to the test
_KEEP = 0.999  # a correction fades unless it goes on being needed
_KEEP_GAIN = 0.97  # per pass, asked or not: a verdict against asking is put to the test again
_GAIN_TRUST = 4.0  # passes that the prior of a gain counts for
_PRIOR_GAIN, _PRIOR_STEPS = 0.8, 3.0  # hopeful, so that it is tried


# Fitted by maximum likelihood (ridge 0.3) on 23,864 places in 92 completions of qwen2.5-coder-0.5b in five
# repositories that are newer than it, as `tests.benchmarks.drafting` records them. More terms (numbers
# of occurrences, share by source, share times match length) gained 0.008 nats a place at most,
# on 52 of the completions cross-validated. Only the last was replayed: under half a percent of
# time, more or less by machine.
# What models say was fitted with all else held fast: `distilled` on 28 completions with an early drafter,
# `model` on 8 of qwen2.5-coder-1.5b with its smaller sibling.
_NOBODY_ELSE = -3.46
_BY_ORIGIN = {
    "prompt": 1.57,
    "successors": 0.91,
    "lookahead": 1.0,
    "index": 0.59,
    "recent": -0.11,
    "model": 5.0,
    "distilled": 3.0,
}
_PER_LOG_MATCH = 1.23
_PER_LOGIT_SHARE = 0.36
_PER_NEURAL_LOGIT = 0.6  # a model's share is a probability, and says all that a match would
_FIRST_CHOICE = 0.57
_AGREED = -0.37
_DEEPER = -0.11

EvidenceKind = tuple[str, int, int]


@dataclass(slots=True)
class _Gain:
    """Tokens that costly drafts added, milliseconds that they took, over so many passes; older ones fade."""

    tokens: float = 0.0
    ms: float = 0.0
    num_passes: float = 0.0

    def fade(self) -> None:
        self.tokens *= _KEEP_GAIN
        self.ms *= _KEEP_GAIN
        self.num_passes *= _KEEP_GAIN


@dataclass(slots=True)
class SurvivalTable:
    """Everything that is learnt online."""

    _corrections: dict[EvidenceKind, float] = field(default_factory=dict)
    _gains: dict[int, _Gain] = field(default_factory=dict)

    def odds(self, guesses: Sequence[DraftToken], depth: int, *, is_first: bool) -> float:
        """Odds that the target writes the token for which `guesses` stand, against all that nobody guessed.

        The path above is taken for true; `depth` is 0 behind what is written. `is_first` tells whether it
        is the first choice of any source.
        """
        score, best_match, best_share = _NOBODY_ELSE, 0, 0.0
        for guess in guesses:
            score += _BY_ORIGIN.get(guess.origin, 0.0) + self._corrections.get(_kind(guess), 0.0)
            if guess.source == "neural":
                score += _PER_NEURAL_LOGIT * _LOGIT[int(guess.share * _NUM_SHARES)]
            else:
                best_match, best_share = max(best_match, guess.match_length), max(best_share, guess.share)
        score += _PER_LOG_MATCH * _LOG_MATCH[min(best_match, _MAX_MATCH)]
        if best_share:
            score += _PER_LOGIT_SHARE * _LOGIT[int(best_share * _NUM_SHARES)]
        if is_first:
            score += _FIRST_CHOICE
        if len(guesses) > 1:
            score += _AGREED
        if depth:
            score += _DEEPER
        return math.exp(min(score, _MAX_SCORE))

    def learn(self, guesses: Sequence[DraftToken], chance: float, *, is_right: bool) -> None:
        """A token that had this `chance` was put to the test: one step along the likelihood's gradient."""
        error = _STEP * (is_right - chance)
        for guess in guesses:
            kind = _kind(guess)
            self._corrections[kind] = self._corrections.get(kind, 0.0) * _KEEP + error

    def gain(self, num_expected: float, step_ms: float) -> tuple[float, float]:
        """Tokens that a costly drafter adds where so many are expected, and the milliseconds it takes."""
        seen = self._gains.get(_situation(num_expected), _Gain())
        weight = seen.num_passes + _GAIN_TRUST
        tokens = seen.tokens + _GAIN_TRUST * _PRIOR_GAIN
        return tokens / weight, (seen.ms + _GAIN_TRUST * _PRIOR_STEPS * step_ms) / weight

    def learn_gain(self, num_expected: float, tokens: float, ms: float) -> None:
        """A costly drafter was asked: it added so many tokens to the pass, and took so long."""
        seen = self._gains.setdefault(_situation(num_expected), _Gain())
        seen.fade()
        seen.tokens += tokens
        seen.ms += ms
        seen.num_passes += 1.0

    def forget_gain(self, num_expected: float) -> None:
        """It was not asked: what was learnt fades, so that it is tried again some time."""
        if (seen := self._gains.get(_situation(num_expected))) is not None:
            seen.fade()


def _kind(guess: DraftToken) -> EvidenceKind:
    return guess.origin, min(guess.match_length, 12) // 2, int(guess.share * 4)


def _situation(num_expected: float) -> int:
    """Passes that promise about as much."""
    return int(2.0 * math.log2(max(1.0, num_expected)))
