"""Renames that a person could make in a file: names that several near lines use. Pure and deterministic."""

from __future__ import annotations

import keyword
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

_NAME = re.compile(r"\b[a-z_][a-z0-9_]{3,}\b")
_MIN_LINES, _MAX_LINES = 4, 8  # that use a name within the span
_MAX_SPAN = 80
_PREFIX = "current_"


@dataclass(frozen=True, slots=True)
class Rename:
    """Type `new` in place of `old` at two places, (line, column) from 0; the second one as it is then."""

    text: str
    old: str
    new: str
    places: tuple[tuple[int, int], tuple[int, int]]


def renames_in(text: str, num_renames: int, numbers: random.Random) -> list[Rename]:
    """Choose names that a few lines of a span use, each line once."""
    found = list(_all_renames(text))
    return numbers.sample(found, min(num_renames, len(found)))


def _all_renames(text: str) -> Iterator[Rename]:
    uses: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for line, content in enumerate(text.split("\n")):
        for match in _NAME.finditer(content):
            uses[match[0]].append((line, match.start()))
    for name, places in uses.items():
        lines = {line for line, _ in places}
        is_near = places[-1][0] - places[0][0] <= _MAX_SPAN
        is_alone = len(lines) == len(places)
        if is_near and is_alone and _MIN_LINES <= len(lines) <= _MAX_LINES and not keyword.iskeyword(name):
            yield Rename(text, name, f"{_PREFIX}{name}", (places[0], places[1]))
