"""A person's way of typing a stretch of text: a script of key presses, fixed before the first one.

A pure function of text and seed. Has no access to the protocol or the clock.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

_TYPO_RATE = 0.04
_SECOND_THOUGHT_RATE = 0.03
_MAX_PAIR_CHARS = 2000

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_KEY = re.compile(r"\n[ \t]*|(?s:.)")
_WORD = re.compile(r"[A-Za-z]{4,}")


class Stroke(NamedTuple):
    """One key press.

    `type` adds `text`, which is right; `typo` adds `text`, which is wrong; `erase` removes the character
    left of the cursor. `before` and `after` count the right characters of the file left of the cursor.
    `pause` is the time since the last stroke in units of the typing pace. `mood` in [0, 1) decides whether
    a suggestion is accepted before it.
    """

    kind: Literal["type", "typo", "erase"]
    text: str
    before: int
    after: int
    pause: float
    mood: float


class Span(NamedTuple):
    """The characters `start` up to `end` of the file."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TypingPlan:
    """The strokes that turn `text[:start]` into `text[:end]`, with `text[end:]` below all the time.

    `pairs` maps the offset of each bracket that the editor closes by itself to its closing bracket's.
    """

    text: str
    start: int
    end: int
    strokes: tuple[Stroke, ...]
    pairs: dict[int, int]

    @property
    def num_chars(self) -> int:
        """Number of characters that the plan adds to the file."""
        return self.end - self.start

    def closer_after_enter(self, opener: int) -> Span:
        """The closing bracket of `opener`, with its line break where it stands on a line of its own."""
        closer = self.pairs[opener]
        line_end = self.text.rfind("\n", 0, closer)
        alone = line_end > opener and not self.text[line_end:closer].strip()
        return Span(line_end if alone else closer, closer + 1)


def plan_typing(text: str, *, start: int, end: int, seed: int = 0) -> TypingPlan:
    """A person's way of typing `text[start:end]`. The same arguments give the same plan."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible script, not a secret
    strokes: list[Stroke] = []
    words = {match.start(): match.end() for match in _WORD.finditer(text, start, end)}
    word_ends = set(words.values())
    for key in _KEY.finditer(text, start, end):
        offset = key.start()
        if offset in words and rng.random() < _TYPO_RATE:
            strokes += _typo(rng, offset)
        if offset in word_ends and rng.random() < _SECOND_THOUGHT_RATE:
            strokes += _second_thoughts(rng, text, offset)
        strokes.append(_typed(rng, key.group(), offset, pause=_pause(rng, text, offset)))
    return TypingPlan(text, start, end, tuple(strokes), bracket_pairs(text, start, end))


def plan_stretch(text: str, line: int, num_chars: int, seed: int) -> TypingPlan | None:
    """A person's way of typing whole lines from `line` on, counted from 0; None if there are none."""
    start = line_start(text, line)
    end = stretch_end(text, start, max(1, num_chars))
    return plan_typing(text, start=start, end=end, seed=seed) if text[start:end].strip() else None


def stretch_end(text: str, start: int, num_chars: int) -> int:
    """The end of the last line that ends within `num_chars` after `start`; at least one line's."""
    if start + num_chars >= len(text):
        return len(text)
    end = text.rfind("\n", start + 1, start + num_chars + 1)
    if end < 0:
        end = text.find("\n", start + 1)
    return end if end >= 0 else len(text)


def bracket_pairs(text: str, start: int, end: int) -> dict[int, int]:
    """Opening to closing offsets of the well-nested brackets between `start` and `end`."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for offset in range(start, end):
        character = text[offset]
        if character in _CLOSERS:
            opened.append(offset)
        elif character in _CLOSERS.values() and opened:
            opener = opened.pop()
            if _CLOSERS[text[opener]] != character:
                opened.clear()
            elif offset - opener <= _MAX_PAIR_CHARS:
                pairs[opener] = offset
    return pairs


def line_start(text: str, line: int) -> int:
    """The offset at which line `line`, counted from 0, begins; the text's length after the last one."""
    return min(len(text), sum(len(one) + 1 for one in text.split("\n")[:line]))


def _typed(rng: random.Random, text: str, offset: int, *, pause: float = 1.0) -> Stroke:
    return Stroke("type", text, offset, offset + len(text), pause, rng.random())


def _typo(rng: random.Random, offset: int) -> list[Stroke]:
    """One to three wrong letters, noticed and erased."""
    wrong = [rng.choice("qxzjk") for _ in range(rng.randint(1, 3))]
    typed = [Stroke("typo", letter, offset, offset, 1.0, rng.random()) for letter in wrong]
    return typed + [Stroke("erase", "", offset, offset, 1.0, rng.random()) for _ in wrong]


def _second_thoughts(rng: random.Random, text: str, offset: int) -> list[Stroke]:
    """The last letters of a word erased and typed again."""
    num_letters = rng.randint(1, 3)
    erased = [Stroke("erase", "", offset - n, offset - n - 1, 1.0, rng.random()) for n in range(num_letters)]
    return erased + [_typed(rng, text[at], at) for at in range(offset - num_letters, offset)]


def _pause(rng: random.Random, text: str, offset: int) -> float:
    """People type words in one go, and think before a new word and before a new line."""
    before = text[offset - 1] if offset else "a"
    low, high = (3.0, 8.0) if before == "\n" else (0.7, 1.3) if before.isalnum() else (1.0, 3.0)
    return rng.uniform(low, high)
