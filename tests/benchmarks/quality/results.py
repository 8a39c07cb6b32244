"""Results of a quality measurement so far: one object per position and way, and the tables.

A measurement that takes hours resumes where it ended. Uses no engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from completion_engine.errors import UserError
from tests.benchmarks.json_lines import JsonLines
from tests.benchmarks.judging import Judgement, summary


class Asked(NamedTuple):
    """The key of one line of the file. `model` names the target, its precision and the longest context."""

    model: str
    language: str
    position: str
    way: str


class Pairs(NamedTuple):
    """Positions at which one of two ways alone was exact, and the probability of so uneven a split.

    Also the mean difference in bits of the original text's probability, with the standard error.
    """

    num_won: int
    num_lost: int
    chance: float
    bits_lost: float
    bits_error: float


class QualityResults:
    """Judgements by what was asked, kept in a file if there is one."""

    def __init__(self, path: Path | None = None) -> None:
        """Raises UserError where the file holds something else."""
        self._lines = JsonLines(path)
        try:
            self.found = {_asked(stored): Judgement(**stored["judged"]) for stored in self._lines.objects}
        except (KeyError, TypeError) as error:
            raise UserError(f"{path} holds other results: {error!r}.", advice="Name another file.") from error

    def add(
        self, asked: Asked, judged: Judgement, suggested: str, ended: Mapping[str, Any] | None = None
    ) -> None:
        """Keep one judgement, and by what the suggestion `ended`."""
        self.found[asked] = judged
        told = {"judged": asdict(judged), "suggested": suggested, "ended": dict(ended or {})}
        self._lines.add({**asked._asdict(), **told})

    def by_way(self, model: str, language: str) -> dict[str, dict[str, Judgement]]:
        """The judgements of each way, by position."""
        ways: dict[str, dict[str, Judgement]] = {}
        for asked, judged in self.found.items():
            if (asked.model, asked.language) == (model, language):
                ways.setdefault(asked.way, {})[asked.position] = judged
        return ways

    def rows(self, whole: str) -> Iterator[dict[str, Any]]:
        """A row for each model, language and way, and for all languages; with pairs of `whole` and it."""
        for model in sorted({asked.model for asked in self.found}):
            everywhere: dict[str, dict[str, Judgement]] = {}
            for language in sorted({asked.language for asked in self.found if asked.model == model}):
                ways = self.by_way(model, language)
                yield from _rows_of(model, language, ways, whole)
                for way, judged in ways.items():
                    named = {f"{language} {position}": found for position, found in judged.items()}
                    everywhere.setdefault(way, {}).update(named)
            yield from _rows_of(model, "all", everywhere, whole)


def _asked(stored: Mapping[str, Any]) -> Asked:
    return Asked(*(str(stored[name]) for name in Asked._fields))


def _rows_of(
    model: str, language: str, ways: Mapping[str, Mapping[str, Judgement]], whole: str
) -> Iterator[dict[str, Any]]:
    for way, judged in ways.items():
        row = {"model": model, "language": language, "way": way, **summary(list(judged.values()))}
        yield row | (pairs(ways[whole], judged)._asdict() if whole in ways and way != whole else {})


def pairs(first: Mapping[str, Judgement], second: Mapping[str, Judgement]) -> Pairs:
    """Where the first way was exact and the second was not, and the other way round; two-sided sign test."""
    both = [(first[position], second[position]) for position in first if position in second]
    num_won = sum(one.is_exact and not other.is_exact for one, other in both)
    num_lost = sum(other.is_exact and not one.is_exact for one, other in both)
    bits = [other.num_bits - one.num_bits for one, other in both] or [0.0]
    error = stdev(bits) / math.sqrt(len(bits)) if len(bits) > 1 else 0.0
    return Pairs(num_won, num_lost, sign_test(num_won, num_lost), round(mean(bits), 3), round(error, 3))


def sign_test(num_won: int, num_lost: int) -> float:
    """The probability of a split at least as uneven if both sides are equally likely."""
    count, fewer = num_won + num_lost, min(num_won, num_lost)
    tail = sum(math.comb(count, at) for at in range(fewer + 1)) / 2**count
    return float(round(min(1.0, 2 * tail), 4))
