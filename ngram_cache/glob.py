"""Translates one line of an ignore file into an RE2 expression over bytes. Pure.

Follows git's own matcher: a line is bytes, `*` and `?` stop at a slash, `**` between slashes does not. Where
versions of git differ, more is ignored.
"""

from __future__ import annotations

import string
from dataclasses import dataclass

_SLASH = ord("/")
_ALL = frozenset(range(1, 256)) - {_SLASH}
_CLASSES = {
    name: frozenset(map(ord, members)) - {_SLASH}
    for name, members in {
        b"alnum": string.ascii_letters + string.digits,
        b"alpha": string.ascii_letters,
        b"blank": " \t",
        b"cntrl": "".join(map(chr, [*range(1, 32), 127])),
        b"digit": string.digits,
        b"graph": string.ascii_letters + string.digits + string.punctuation,
        b"lower": string.ascii_lowercase,
        b"print": string.ascii_letters + string.digits + string.punctuation + " ",
        b"punct": string.punctuation,
        b"space": string.whitespace,
        b"upper": string.ascii_uppercase,
        b"xdigit": string.hexdigits,
    }.items()
}
_SPECIAL = frozenset(b"*?[\\")
_NAME = rb"[^/]+"
_PART = rb"[^/]*"
_FOLDERS = rb"(?:.*/)?"


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern: `expression` matches whole paths; a folder's path ends with a slash.

    A rule that `keeps` revokes matches of the rules before it.
    """

    expression: bytes
    keeps: bool


class _NeverMatchesError(Exception):
    """Git accepts the pattern, but it matches nothing."""


def translate(line: bytes) -> Rule | None:
    """Translate a line without its line end. None for a line without a pattern."""
    if line.startswith(b"#"):
        return None
    pattern = _without_trailing_spaces(line.partition(b"\0")[0])
    keeps = pattern.startswith(b"!")
    pattern = pattern[keeps:]
    is_for_folders = pattern.endswith(b"/")
    pattern = pattern[: len(pattern) - is_for_folders]
    is_name = b"/" not in pattern
    pattern = pattern.removeprefix(b"/")
    if not pattern:
        return None
    try:
        body = _Translation(pattern, is_name=is_name, keeps=keeps).run()
    except _NeverMatchesError:
        return None
    head = _FOLDERS if is_name else b""
    return Rule(head + body + (b"/" if is_for_folders else b"/?"), keeps)


def _without_trailing_spaces(line: bytes) -> bytes:
    """`line` up to its last byte that is not a space, or is a space after a backslash."""
    end = at = 0
    while at < len(line):
        if line[at] == ord("\\"):
            at += 1
            end = at + 1
        elif line[at] != ord(" "):
            end = at + 1
        at += 1
    return line[:end]


class _Translation:
    """The translation of one pattern into an expression; reads each byte once."""

    def __init__(self, pattern: bytes, *, is_name: bool, keeps: bool) -> None:
        self._pattern = pattern
        self._is_name = is_name
        self._keeps = keeps
        self._at = 0
        self._pieces: list[bytes] = []

    def run(self) -> bytes:
        """The expression. Raises _NeverMatchesError."""
        while self._at < len(self._pattern):
            byte = self._take()
            if byte == ord("*"):
                self._stars()
            elif byte == ord("?"):
                self._pieces.append(rb"[^/]")
            elif byte == ord("["):
                self._pieces.append(_one_of(self._members()))
            else:
                literal = self._take() if byte == ord("\\") else byte
                self._pieces.append(rb"\x%02x" % literal)
        return b"".join(self._pieces)

    def _take(self) -> int:
        if self._at == len(self._pattern):
            raise _NeverMatchesError
        self._at += 1
        return self._pattern[self._at - 1]

    def _peek(self) -> bytes:
        return self._pattern[self._at : self._at + 1]

    def _stars(self) -> None:
        """Translate a run of stars whose first one has been read."""
        first = self._at - 1
        while self._peek() == b"*":
            self._at += 1
        is_double = self._at - first > 1 and not self._is_name
        is_first = first == 0 or self._pattern[first - 1] == _SLASH
        rest = self._pattern[self._at : self._at + 2]
        # Before 2.52 git compares the bytes before the first special one separately: its matcher starts
        # after it, and `a**/b` matches `ab`. Here a path is excluded if either version excludes it.
        is_first_special = not self._keeps and not _SPECIAL & set(self._pattern[:first])
        spans_folders = is_double and (is_first or is_first_special)
        if spans_folders and not rest:
            self._pieces.append(rb".+" if is_first else rb".*")
        elif spans_folders and rest[:1] == b"/":
            self._at += 1
            self._pieces.append(_FOLDERS)
        elif spans_folders and rest == rb"\/":
            self._pieces.append(rb".*")
        else:
            is_whole = is_first and rest[:1] in {b"", b"/"}
            self._pieces.append(_NAME if is_whole else _PART)

    def _members(self) -> frozenset[int]:
        """Return the bytes that a bracket matches; its `[` has been read."""
        is_negated = self._peek() in {b"!", b"^"}
        self._at += is_negated
        found: set[int] = set()
        before = 0  # the byte that a range would begin with
        byte = self._take()
        while True:
            if byte == ord("\\"):
                byte = self._take()
                found.add(byte)
            elif byte == ord("-") and before and self._peek() not in {b"", b"]"}:
                last = self._take()
                found.update(range(before, (self._take() if last == ord("\\") else last) + 1))
                byte = 0
            elif byte == ord("[") and self._peek() == b":" and (named := self._named()) is not None:
                found |= named
                byte = 0
            else:
                found.add(byte)
            before, byte = byte, self._take()
            if byte == ord("]"):
                return _ALL - found if is_negated else _ALL & found

    def _named(self) -> frozenset[int] | None:
        """Return the class that begins with `[:` here, or None. Raises _NeverMatchesError."""
        end = self._pattern.find(b"]", self._at + 1)
        if end < 0:
            raise _NeverMatchesError
        name = self._pattern[self._at + 1 : end]
        if not name.endswith(b":"):
            return None
        if name[:-1] not in _CLASSES:
            raise _NeverMatchesError
        self._at = end + 1
        return _CLASSES[name[:-1]]


def _one_of(members: frozenset[int]) -> bytes:
    if not members:
        raise _NeverMatchesError
    runs: list[list[int]] = []
    for byte in sorted(members):
        if runs and runs[-1][1] == byte - 1:
            runs[-1][1] = byte
        else:
            runs.append([byte, byte])
    return b"[" + b"".join(rb"\x%02x-\x%02x" % (first, last) for first, last in runs) + b"]"
