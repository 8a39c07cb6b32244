"""How a person would type a stretch of text: a script of key presses, decided before any is made.

A pure function of text and seed. Must not know the protocol, the clock or what a server answers.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Literal

StrokeKind = Literal["type", "typo", "erase"]

TYPO_RATE = 0.04
SECOND_THOUGHT_RATE = 0.03
MAX_PAIR_CHARS = 2000

CLOSERS = {"(": ")", "[": "]", "{": "}"}
KEY = re.compile(r"\n[ \t]*|(?s:.)")
WORD = re.compile(r"[A-Za-z]{4,}")


@dataclass(frozen=True, slots=True)
class Stroke:
    """One key press.

    `type` adds `text`, which is right; `typo` adds `text`, which is not; `erase` removes the character
    left of the cursor. `before` and `after` say how many characters of the file are right, left of the
    cursor, around this stroke. `pause` is the time since the last stroke in units of the typing pace.
    `mood` in [0, 1) decides whether a suggestion on the screen is taken before this stroke.
    """

    kind: StrokeKind
    text: str
    before: int
    after: int
    pause: float
    mood: float


@dataclass(frozen=True, slots=True)
class Span:
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
        """How many characters the plan brings into the file."""
        return self.end - self.start

    def closer_after_enter(self, opener: int) -> Span:
        """The closing bracket of `opener`, with its line break where it stands on a line of its own."""
        closer = self.pairs[opener]
        line_end = self.text.rfind("\n", 0, closer)
        alone = line_end > opener and not self.text[line_end:closer].strip()
        return Span(line_end if alone else closer, closer + 1)


def plan_typing(text: str, *, start: int, end: int, seed: int = 0) -> TypingPlan:
    """A person's way of typing `text[start:end]`. The same arguments give the same plan."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible script, no secret
    strokes: list[Stroke] = []
    words = {match.start(): match.end() for match in WORD.finditer(text, start, end)}
    word_ends = {stop: begin for begin, stop in words.items()}
    for key in KEY.finditer(text, start, end):
        offset = key.start()
        if offset in words and rng.random() < TYPO_RATE:
            strokes += _typo(rng, offset)
        if offset in word_ends and rng.random() < SECOND_THOUGHT_RATE:
            strokes += _second_thoughts(rng, text, offset)
        strokes.append(_typed(rng, key.group(), offset, pause=_pause(rng, text, offset)))
    return TypingPlan(text, start, end, tuple(strokes), bracket_pairs(text, start, end))


def bracket_pairs(text: str, start: int, end: int) -> dict[int, int]:
    """Opening to closing offsets of the well-nested brackets between `start` and `end`."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for offset in range(start, end):
        character = text[offset]
        if character in CLOSERS:
            opened.append(offset)
        elif character in CLOSERS.values() and opened:
            opener = opened.pop()
            if CLOSERS[text[opener]] != character:
                opened.clear()
            elif offset - opener <= MAX_PAIR_CHARS:
                pairs[opener] = offset
    return pairs


def line_start(text: str, line: int) -> int:
    """The offset at which line `line`, counted from 0, begins; the text's length beyond the last one."""
    offset = 0
    for _ in range(line):
        offset = text.find("\n", offset) + 1
        if offset == 0:
            return len(text)
    return offset


def _typed(rng: random.Random, text: str, offset: int, *, pause: float = 1.0) -> Stroke:
    return Stroke("type", text, offset, offset + len(text), pause, rng.random())


def _typo(rng: random.Random, offset: int) -> list[Stroke]:
    """One to three wrong letters, noticed, erased."""
    wrong = [rng.choice("qxzjk") for _ in range(rng.randint(1, 3))]
    typed = [Stroke("typo", letter, offset, offset, 1.0, rng.random()) for letter in wrong]
    erased = [Stroke("erase", "", offset, offset, 1.0, rng.random()) for _ in wrong]
    return typed + erased


def _second_thoughts(rng: random.Random, text: str, offset: int) -> list[Stroke]:
    """The last letters of a word erased and typed again."""
    num_letters = rng.randint(1, 3)
    erased = [Stroke("erase", "", offset - n, offset - n - 1, 1.0, rng.random()) for n in range(num_letters)]
    again = range(offset - num_letters, offset)
    return erased + [_typed(rng, text[position], position) for position in again]


def _pause(rng: random.Random, text: str, offset: int) -> float:
    """People type words in one go, and think before a new word and before a new line."""
    if offset > 0 and text[offset - 1] == "\n":
        return rng.uniform(3.0, 8.0)
    if offset > 0 and not text[offset - 1].isalnum():
        return rng.uniform(1.0, 3.0)
    return rng.uniform(0.7, 1.3)
