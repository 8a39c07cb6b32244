"""The marks of one state of a scan: one expression finds the next of them.

Built once of many expressions. Does not depend on languages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from completion_engine.languages.syntax import Pair

_MAY_BE_LONGER = ("<tag>", "<tag>[`~]*[ \\t]*(?=\\n)")
_NOTHING = re.compile(r"\\b|\(\?(?:P<\w+>|i:|:)|\((?!\?)")
_SET = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")


class Action(Enum):
    """What a mark does."""

    NEWLINE = auto()
    SKIP = auto()
    OPEN = auto()
    CLOSE = auto()
    BRACKET = auto()  # an opening one; its inside is in the same state as its outside
    CLOSING = auto()  # a closing bracket
    END_TAG = auto()
    TAG_END = auto()
    TAG_CLOSED = auto()
    ENDS = auto()


@dataclass(frozen=True, slots=True)
class Mode:
    """Finds the next mark: `first` finds the characters that marks begin with, `pattern` matches marks.

    With `begins_line` a mark may begin a line whatever its first character is.
    """

    first: re.Pattern[str]
    pattern: re.Pattern[str]
    begins_line: bool
    actions: dict[int, tuple[Action, Pair | None]]
    _named: dict[int, tuple[str, str, str, str]]

    def find(self, text: str, position: int, limit: int) -> re.Match[str] | None:
        """Return the first mark from a position on that ends before `limit`."""
        if self.begins_line and (position == 0 or text[position - 1] == "\n"):
            match = self.pattern.match(text, position, limit)
            if match is not None:
                return match
        while (found := self.first.search(text, position, limit)) is not None:
            match = self.pattern.match(text, found.start(), limit)
            if match is None and self.begins_line and found[0] == "\n":
                match = self.pattern.match(text, found.end(), limit)
            if match is not None:
                return match
            position = found.end()
        return None

    def groups(self, match: re.Match[str]) -> tuple[str, str]:
        """The part of an opening mark that its end repeats, and the name of the language that it opens."""
        tag, language, indent, _ = self._named[match.lastindex or 0]
        found = (match[tag] or "") if tag else ""
        return (match[indent] if indent else found), (match[language] or "") if language else ""

    def end_of(self, match: re.Match[str], entry_tag: str, pair: Pair) -> int:
        """Return the end of a closing mark; -1 if it repeats another tag than `entry_tag`."""
        group = self._named[match.lastindex or 0][3]
        return end_with_tag(match, group, entry_tag, pair) if group else match.end()


def end_with_tag(match: re.Match[str], group: str, tag: str, pair: Pair) -> int:
    """Return the end of a closing mark that must repeat `tag`; -1 if it does not. Some may be longer."""
    found = match[group] or ""
    if found == tag:
        return match.end()
    if not found.startswith(tag) or not pair.closes.endswith(_MAY_BE_LONGER):
        return -1
    return match.start(group) + len(tag) if pair.closes.endswith("<tag>") else match.end()


class ModeBuilder:
    """Makes one expression of many, each a group."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._actions: dict[int, tuple[Action, Pair | None]] = {}
        self._named: dict[int, tuple[str, str, str, str]] = {}
        self._num_groups = 0
        self._first = ""
        self._begins_line = False

    def add(self, expression: str, action: Action, pair: Pair | None = None, first: str = "") -> None:
        """One more alternative; the first that matches counts."""
        at = self._num_groups + 1
        names = ("tag", "lang", "indent", "end")
        tag, lang, indent, end = (f"{name}{at}" if f"?P<{name}>" in expression else "" for name in names)
        self._num_groups += 1 + re.compile(expression).groups
        expression = re.sub(r"\(\?P(<\w+|=\w+)", rf"(?P\g<1>{at}", expression)
        self._parts.append(f"({expression})")
        self._actions[at] = action, pair
        self._named[at] = tag, lang, indent, end
        begins = first or first_chars(expression)
        self._begins_line = self._begins_line or not begins
        self._first += begins

    def add_pair(self, pair: Pair) -> None:
        """The mark that opens a pair."""
        self.add(pair.opens, Action.OPEN, pair, pair.first)

    def mode(self) -> Mode:
        """The whole."""
        first = self._first + "\n" * self._begins_line
        pattern = re.compile("|".join(self._parts) or "(?!)", re.MULTILINE)
        chars = re.compile(f"[{re.escape(''.join(dict.fromkeys(first)))}]" if first else "(?!)")
        return Mode(chars, pattern, self._begins_line, self._actions, self._named)


def first_chars(expression: str) -> str:
    """The characters that a match of an expression may begin with; empty for one that begins with a line.

    Raises ValueError where the expression hides them: the pair then has to name them.
    """
    at, found = 0, ""
    while at < len(expression):
        if expression.startswith(("(?<", "(?=", "(?!"), at):
            at = end_of_group(expression, at)
        elif nothing := _NOTHING.match(expression, at):
            at = nothing.end()
        elif expression.startswith(("^", r"\A"), at):
            return ""
        else:
            chars, at = _first_atom(expression, at)
            found += chars
            if expression[at : at + 1] not in ("?", "*"):
                return found
            at += 1
    raise ValueError(expression)


def _first_atom(expression: str, at: int) -> tuple[str, int]:
    char = expression[at]
    if char == "[" and expression[at + 1] != "^":
        end = expression.index("]", at + 2)
        inside = expression[at + 1 : end].replace(r"\t", "\t").replace("\\", "")
        if "-" not in inside[1:-1]:
            return inside, end + 1
    if char == "\\" and not (expression[at + 1].isalnum() and expression[at + 1] != "n"):
        return ("\n" if expression[at + 1] == "n" else expression[at + 1]), at + 2
    if char in "[(.$|\\)":
        raise ValueError(expression)
    return char, at + 1


def end_of_group(expression: str, at: int) -> int:
    """Return the end of the group of an expression that begins at an offset."""
    depth = 0
    while True:
        if expression[at] == "\\":
            at += 1
        elif expression[at] == "[":
            at = _SET.match(expression, at).end() - 1  # type: ignore[union-attr] # the tables' sets are closed
        else:
            depth += {"(": 1, ")": -1}.get(expression[at], 0)
        at += 1
        if depth == 0:
            return at
