"""Random letters: keys, hashes and tokens in no known form."""

from __future__ import annotations

import re

from ngram_cache.redaction.rule import Span, restored, without

_PIECE = re.compile(r"[A-Za-z0-9+]{16,}+")
# A commit's hash in an address is not a secret.
_COMMIT = re.compile(r"/(?:commit|blob|tree|raw)/[0-9a-f]{40}(?![0-9a-f])")
_HEX = re.compile(r"(?<![A-Za-z0-9])(?:0[xX])?[0-9a-fA-F][0-9a-fA-F\-]{23,4000}+(?![A-Za-z0-9])")
_RANDOM_RUN = re.compile(r"[A-Za-z0-9+/_\-]{20,}+={0,2}+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_MIN_LETTERS = 16
_MIN_BARE_LETTERS = 24  # without a digit
# Most letters per word: mixed, small and capital letters, and mixed ones without a digit.
_MIXED, _SMALL, _CAPITAL, _NO_DIGIT = 2.9, 4.0, 6.0, 3.3
_BEHIND_NAME = 4.5  # which tells that a key may follow

_LETTERS_TO_A_SIGN = 10  # names in paths and of several words have more signs than random letters


def find_random(run: str) -> list[Span]:
    """Where in a run of letters, digits and signs something reads like a key."""
    if "/" in run and (commit := _COMMIT.search(run)):
        behind = find_random(run[commit.end() :])
        before = find_random(run[: commit.start()])
        return [*before, *((commit.end() + start, commit.end() + end) for start, end in behind)]
    found = _random_in(_HEX, run)
    if not found:
        return _random_in(_RANDOM_RUN, run)
    return restored(run, found, _random_in(_RANDOM_RUN, without(run, found)))


def looks_random(run: str) -> bool:
    """Whether a run of base64, hexadecimal or similar letters reads like a key and not like a name.

    Cut into words (`Word`, `word`, `WORD`, `123`), names have long ones; random letters fall apart.
    """
    has_digit = any(map(str.isdigit, run))
    small, capital = run.lower(), run.upper()
    if small == capital:
        return False
    if _HEX.fullmatch(run):
        return has_digit and len(set(run)) >= 8
    is_mixed = run not in (small, capital)
    num_signs = sum(map(run.count, "_-/"))
    if num_signs * (_LETTERS_TO_A_SIGN if is_mixed and has_digit else len(run)) >= len(run):
        return False
    if not is_mixed and not has_digit:
        return False
    words = _WORD.findall(run)
    num_letters = sum(map(len, words))
    if num_letters < (_MIN_LETTERS if has_digit else _MIN_BARE_LETTERS):
        return False
    limit = (_MIXED if has_digit else _NO_DIGIT) if is_mixed else _SMALL if run == small else _CAPITAL
    return num_letters <= limit * len(words)


def falls_apart(value: str) -> bool:
    """Whether a value of letters after a secret's name is random: a name has longer words."""
    words = _WORD.findall(value)
    is_mixed = value not in (value.lower(), value.upper())
    return is_mixed and value.isalpha() and _MIN_BARE_LETTERS <= len(value) <= _BEHIND_NAME * len(words)


def _random_in(pattern: re.Pattern[str], run: str) -> list[Span]:
    """The matches of a pattern that read like a key, or the parts of them that do."""
    spans: list[Span] = []
    for found in pattern.finditer(run):
        if looks_random(found[0]):
            spans.append(found.span())
        else:
            pieces = _PIECE.finditer(run, *found.span())
            spans += [piece.span() for piece in pieces if looks_random(piece[0])]
    return spans
