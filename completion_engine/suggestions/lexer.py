"""Owns the scan of source text for what is open: brackets, strings, comments.

A light scan that works on any cut of a file and on unfinished text, for every language in `languages`.
Knows nothing of suggestions. What it reports at a newline or a closing bracket depends only on the text
up to there, never on what follows: rules that fire on it are independent of how text arrives.
A grammar cannot stand in: where a slip breaks the code, its tree of earlier brackets changes as text arrives
(one check in a hundred of Python and TypeScript), it takes 5 to 20 times as long, and many languages have
none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from completion_engine.suggestions.languages import Language

PAIRS = {"(": ")", "[": "]", "{": "}", "${": "}", "#{": "}", "$(": ")"}
CLOSING = frozenset(")]}")
_REGEX = "/"
_REGEX_CLASS = "/["
_MAX_SKIPPED = 64  # brackets that one closing bracket may close with its own
_REGEX_MAY_FOLLOW = re.compile(
    r"(?:[(,=:\[!&|?{};+\-*%~^\n]|=>|<[ \t]+|\b(?:return|typeof|case|in|of|and|or|not|if|unless|when))"
    r"[ \t]*\Z"
)


@dataclass(frozen=True, slots=True)
class Open:
    """Something not yet closed: `mark` opened it at `start`. Offsets before the scanned text are negative."""

    mark: str
    start: int

    @property
    def is_bracket(self) -> bool:
        """Whether this is a bracket, or code inside a string, and no string or comment."""
        return self.mark in PAIRS


@dataclass(frozen=True, slots=True)
class Event:
    """`open`, `close` (of `entry`), `unmatched` closing bracket or `newline` at `text[start:end]`.

    At a newline `entry` is the string or comment that the newline stands in, whether it ends there or not.
    """

    kind: Literal["open", "close", "unmatched", "newline"]
    start: int
    end: int
    entry: Open | None = None


Stack = list[Open]


class Scanner:
    """Scans text of one language. `stack` is what is open, outermost first; `scan` changes it in place."""

    def __init__(self, language: Language) -> None:
        self._ends = language.mark_ends
        self._line_comments = frozenset(language.line_comments)
        self._comments = (*language.line_comments, *(mark for mark, _ in language.block_comments))
        self.quotes = {quote.open: quote for quote in language.quotes}
        self._has_regex = language.has_regex
        self._skipped = re.compile(language.skipped) if language.skipped else None
        self._code = _code_pattern(language)
        self._inside = {mark: self._inside_pattern(mark) for mark in self._ends}
        self._inside |= dict.fromkeys(self._line_comments, re.compile("\n"))
        self._inside[_REGEX] = re.compile(r"\\[^\n]|[/\[\n]")
        self._inside[_REGEX_CLASS] = re.compile(r"\\[^\n]|[\]\n]")

    def _inside_pattern(self, mark: str) -> re.Pattern[str]:
        quote = self.quotes.get(mark)
        tokens = [re.escape(self._ends[mark]), "\n"]
        if quote and quote.has_escapes:
            tokens.insert(0, r"\\[^\n]")
        if quote and quote.interpolation:
            tokens.append(re.escape(quote.interpolation))
        return re.compile("|".join(tokens))

    def is_comment(self, mark: str) -> bool:
        """Whether a mark opens a comment."""
        return mark in self._line_comments or (mark in self._ends and mark not in self.quotes)

    def is_text(self, mark: str) -> bool:
        """Whether text inside this mark may run over line ends: a block comment or a multi-line string."""
        if mark in self.quotes:
            return self.quotes[mark].is_multiline
        return mark in self._ends

    def scan(self, text: str, stack: Stack, *, before: str = "") -> Iterator[Event]:
        """Events of `text`, which follows `before` (its last line is enough) with `stack` open."""
        position = 0
        while True:
            mark = stack[-1].mark if stack else ""
            inside = self._inside.get(mark)
            match = (inside or self._code).search(text, position)
            if match is None:
                return
            found, start, position = match.group(), match.start(), match.end()
            if found == "\n":
                yield self._at_newline(text, start, stack, inside is not None)
            elif inside is not None:
                event = self._inside_token(found, start, stack)
                if event:
                    yield event
            elif found in CLOSING:
                yield close_bracket(found, start, stack)
            elif self._opens(found, text, start, before):
                entry = Open(found, start)
                stack.append(entry)
                yield Event("open", start, position, entry)

    def _at_newline(self, text: str, start: int, stack: Stack, is_inside: bool) -> Event:
        entry = stack[-1] if is_inside else None
        if entry is not None and not self.is_text(entry.mark) and not self._is_continued(text, start, entry):
            while stack and not stack[-1].is_bracket and not self.is_text(stack[-1].mark):
                stack.pop()
        return Event("newline", start, start + 1, entry)

    def _is_continued(self, text: str, start: int, entry: Open) -> bool:
        return entry.mark in self.quotes and start > 0 and text[start - 1] == "\\"

    def _inside_token(self, found: str, start: int, stack: Stack) -> Event | None:
        mark = stack[-1].mark
        end = start + len(found)
        if found == {_REGEX: "/", _REGEX_CLASS: "]"}.get(mark, self._ends.get(mark)):
            return Event("close", start, end, stack.pop())
        if found.startswith("\\"):
            return None
        entry = Open(_REGEX_CLASS if mark == _REGEX else found, start)
        stack.append(entry)
        return Event("open", start, end, entry)

    def _opens(self, found: str, text: str, start: int, before: str) -> bool:
        if found == _REGEX:
            before = (before[-80:] + text[max(0, start - 80) : start])[-80:]
            return self._has_regex and _regex_may_stand(before, text[start + 1 : start + 2])
        return not (self._skipped and self._skipped.fullmatch(found)) and not found.startswith("\\")

    def end_of(self, mark: str) -> str:
        """What closes the string or comment that `mark` opens."""
        return self._ends.get(mark, "\n")

    def begins_comment(self, code: str) -> bool:
        """Whether a line of code begins with a comment."""
        return code.startswith(self._comments)

    def is_closed_by(self, entry: Open, found: str) -> bool:
        """Whether `found` closes `entry`."""
        return found == PAIRS.get(entry.mark, self._ends.get(entry.mark))


def close_bracket(found: str, start: int, stack: Stack) -> Event:
    """Take the closing bracket `found` off the stack; an unmatched one drops what it skips, if anything."""
    if stack and PAIRS.get(stack[-1].mark) == found:
        return Event("close", start, start + 1, stack.pop())
    for depth in range(len(stack) - 1, max(-1, len(stack) - 1 - _MAX_SKIPPED), -1):
        if not stack[depth].is_bracket:
            break
        if PAIRS[stack[depth].mark] == found:
            del stack[depth:]
            break
    return Event("unmatched", start, start + 1)


def num_brackets(stack: Stack) -> int:
    """How many brackets are open, strings and comments not counted."""
    return sum(entry.is_bracket for entry in stack)


@lru_cache(maxsize=64)
def scanner_of(language: Language) -> Scanner:
    """The scanner of a language, built once."""
    return Scanner(language)


def _code_pattern(language: Language) -> re.Pattern[str]:
    tokens = [language.skipped] if language.skipped else []
    marks = [*language.line_comments, *(mark for mark, _ in language.block_comments)]
    quotes = {quote.open: quote.pattern or re.escape(quote.open) for quote in language.quotes}
    literal = {mark: re.escape(mark) for mark in marks} | quotes
    if language.comment_pattern:
        literal[language.line_comments[-1]] = language.comment_pattern
    tokens += [literal[mark] for mark in sorted(literal, key=len, reverse=True)]
    tokens.append(r"[()\[\]{}\n]" if language.has_brackets else "\n")
    if language.has_regex:
        tokens.append("/")
    return re.compile("|".join(tokens))


def _regex_may_stand(before: str, following: str) -> bool:
    """Whether a slash begins a regular expression; those of tags, `</b>` and `<b c={d} />`, do not."""
    ends_tag = following == ">" and before.rstrip(" \t").endswith("}")
    return not ends_tag and (not before.strip(" \t") or _REGEX_MAY_FOLLOW.search(before) is not None)
