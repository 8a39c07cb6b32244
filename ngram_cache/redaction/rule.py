"""Rules: how they find spans in a text, and how spans are cut out of it.

Holds no secret and no name of one.

The time grows with the text alone: a rule reads a bounded part of the text on either side of its trigger, its
repeats are bounded, and blanked text is not read again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

MAX_BEHIND = 160
_MAX_LOOKED_AT = 200
_TAIL = re.compile(r"[^\s\"'`<>]*+")
# Lines that are indented like the first of them.
LINES_BELOW = r"(?P<bare>\n(?P<indent>[ \t]{1,60}+)[^\n]{1,400}+(?:\n(?P=indent)[^\n]{0,400}+){0,255}+)"
_CAPITALS = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """A value beside a trigger, and whether quotes say where it ends.

    `trigger` and `secret` say where both stand in `text`, `extras` what else of the match has a name. `begin`
    is where the user stands whose password the secret is: it may be a token, too.
    """

    text: str
    trigger: Span
    secret: Span
    is_quoted: bool
    extras: dict[str, str]
    begin: int | None = None

    @property
    def value(self) -> str:
        """What may be a secret."""
        return self.text[self.secret[0] : self.secret[1]]


Judge = Callable[[Finding], bool]


@dataclass(frozen=True, slots=True)
class Shape:
    """How a value stands beside a trigger.

    `ahead` matches from the trigger's end on; `behind` is searched for in the text that ends at its
    beginning. Both must hold, and one of them names the value `quoted` or `bare`.
    """

    name: str
    ahead: re.Pattern[str] | None = None
    behind: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A literal in small letters beside which secrets stand, in any of some shapes, the first that holds.

    `guard` matches from the trigger's end on, where there is one; `judge` tells a secret from other values.
    """

    trigger: str
    shapes: tuple[Shape, ...]
    guard: re.Pattern[str] | None = None
    judge: Judge = lambda _: True


def lowered(text: str) -> str:
    """The text in small letters, each where it was: only ASCII capitals change."""
    return text.lower() if text.isascii() else text.translate(_CAPITALS)


def find(text: str, small: str, rules: Iterable[Rule]) -> Iterator[Span]:
    """Where secrets stand, by any of the rules, in no order; `small` is the text in small letters."""
    for rule in rules:
        at, done = small.find(rule.trigger), 0
        while at >= 0:
            end = at + len(rule.trigger)
            if rule.guard is None or rule.guard.match(text, end):
                span = _value_at(rule, text, (at, end))
                if span is not None:
                    yield span
                    done = span[1]
            at = small.find(rule.trigger, max(end, done))


def _value_at(rule: Rule, text: str, trigger: Span) -> Span | None:
    """The secret at a trigger, if one of the rule's shapes holds."""
    start = max(0, trigger[0] - MAX_BEHIND)
    for shape in rule.shapes:
        ahead = behind = None
        if shape.ahead is not None and (ahead := shape.ahead.match(text, trigger[1])) is None:
            continue
        if shape.behind is not None and (behind := shape.behind.search(text, start, trigger[0])) is None:
            continue
        finding = _finding(text, trigger, ahead) or _finding(text, trigger, behind)
        if finding is not None and rule.judge(finding):
            start, end = _whole(text, finding.secret)
            return start if finding.begin is None else finding.begin, end
    return None


def _finding(text: str, trigger: Span, match: re.Match[str] | None) -> Finding | None:
    if match is None:
        return None
    extras = {name: value or "" for name, value in match.groupdict().items()}
    name = next((name for name in ("quoted", "bare") if extras.get(name)), "")
    begin = match.start("user") if "user" in extras else None
    return Finding(text, trigger, match.span(name), name == "quoted", extras, begin) if name else None


def _whole(text: str, secret: Span) -> Span:
    """A secret that is longer than what its rule looks at, up to where it ends."""
    is_long = secret[1] - secret[0] >= _MAX_LOOKED_AT
    return (secret[0], _TAIL.match(text, secret[1]).end()) if is_long else secret  # type: ignore[union-attr]  # matches always


def without(text: str, spans: Iterable[Span]) -> str:
    """The text without the spans; lines stay lines."""
    pieces, done = [], 0
    for start, end in sorted(spans):
        if end > done:
            begin = max(start, done)
            pieces += [text[done:begin], "\n" * text.count("\n", begin, end)]
            done = end
    pieces.append(text[done:])
    return "".join(pieces)


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order; spans that touch become one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def restored(text: str, lost: Iterable[Span], found: Iterable[Span]) -> list[Span]:
    """Return the spans `lost` of a text, and those `found` in what `without` leaves, as spans of the text.

    A found span holds at least one character, and no line end.
    """
    lost, found = merged(lost), list(found)
    if not lost or not found:
        return lost or merged(found)
    # For each part that is left: its new beginning, and how far it was moved.
    starts, shifts = [0], [0]
    at = done = 0
    for start, end in lost:
        at += start - done + text.count("\n", start, end)
        done = end
        starts.append(at)
        shifts.append(end - at)

    def place(index: int) -> int:
        return index + shifts[bisect_right(starts, index) - 1]

    return merged([*lost, *((place(start), place(end - 1) + 1) for start, end in found)])
