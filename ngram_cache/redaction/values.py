"""Kinds of values that follow the name of a secret, and which runs of letters read like a key."""

from __future__ import annotations

import base64
import binascii
import re

from ngram_cache.redaction.rule import Finding, Span, restored, without

_TELLING = re.compile(
    r"passw|passphrase|passcode|pass_|_pass|secret|token|credential|api.?key|auth|mnemonic|seed|key_|_key"
)
_REFERENCE = re.compile(
    r"[@&*]{0,2}[A-Za-z_](?:[A-Za-z_]|-(?!>))*+(?:(?:[.:]|::|->|\?\.)[A-Za-z_](?:[A-Za-z_]|-(?!>))*+)*+[?!]?"
)
_IDENTIFIER = re.compile(r"[\w.\-:>$]*+")
_NUMBER = re.compile(r"[+\-]?[0-9][0-9_.,]*+(?:e[+\-]?[0-9]+)?[a-z%]?")
_REPEATED = re.compile(r"(.)\1*+|[*.xX\-_#?=+ ]++")
_METAVAR = re.compile(r"[A-Z][A-Z_\-]*+")
_PLACEHOLDER_STARTS = ("<", "{", "[", "!", "%(", "%s", "%{", "$(", "${", "${{", "...", "//", "->", "=", "\\")
_VARIABLE = re.compile(r"[$%][A-Za-z_][\w.:\-]*+%?")
_PATH = re.compile(r"[~.]{0,2}/[\w./\-]*+|[A-Za-z]:\\.*")
_PIECE = re.compile(r"[A-Za-z0-9+]{16,}+")
# A commit's hash in an address is not a secret.
_COMMIT = re.compile(r"/(?:commit|blob|tree|raw)/[0-9a-f]{40}(?![0-9a-f])")
_HEX = re.compile(r"(?<![A-Za-z0-9])(?:0[xX])?[0-9a-fA-F][0-9a-fA-F\-]{23,4000}+(?![A-Za-z0-9])")
_RANDOM_RUN = re.compile(r"[A-Za-z0-9+/_\-]{20,}+={0,2}+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_MIN_LETTERS = 16
_MIN_BARE_LETTERS = 24  # without a digit
_MIN_DIGITS = 16  # longer numbers are not counts
# Most letters per word: mixed, small and capital letters, and mixed ones without a digit.
_MIXED, _SMALL, _CAPITAL, _NO_DIGIT = 2.9, 4.0, 6.0, 3.3
_BEHIND_NAME = 4.5  # which tells that a key may follow
_LETTERS_TO_A_SIGN = 10  # names in paths and of several words have more signs than random letters


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NOT_SECRETS = _words(
    """a admin an and any array as auto basic bearer bool boolean buffer byte bytes bytearray change char
    character default description digest disabled double dynamic else empty enabled env error expected
    external fail false field final float for forgot from func function getpass hash hidden if ignore in
    include inherit input int integer interface invalid is lambda let list long map missing mixed nil no
    none not null number oauth object of off omit on only option optional or os package pass password
    passwords private prompt protected public read readonly required reset return same-origin secure
    self static str string struct text the this to true type typing undefined union unknown url user
    username value varchar vec void while with write yes"""
)


def is_password(finding: Finding) -> bool:
    """Whether the value of a name that means a password is one, and not a reference or a word about it."""
    if finding.extras.get("more"):
        return is_token(finding)
    value = finding.value
    if _is_placeholder(value) or _means_no_secret(finding, value):
        return False
    if finding.is_quoted or "\n" in value:
        return True
    if _NUMBER.fullmatch(value):
        return len(value) > 3
    if _is_called(finding):
        return False
    return not _REFERENCE.fullmatch(value) or (_is_plain(value) and _ends_line(finding))


def is_key(finding: Finding) -> bool:
    """Whether the value of a name that may mean a key is one; words and references are none."""
    value = finding.value
    if _is_placeholder(value) or _means_no_secret(finding, value) or _is_called(finding):
        return False
    if (finding.is_quoted or "\n" in value) and not finding.extras.get("more"):
        return len(value) >= 4
    return _looks_like_key(value, 8)


def is_token(finding: Finding) -> bool:
    """Return whether the value of an ambiguous name (`token`, `auth`) is a secret."""
    value, more = finding.value, finding.extras.get("more", "")
    if more[:1].islower() and more != "s":
        return False
    is_open = _is_placeholder(value) or _means_no_secret(finding, value) or _is_called(finding)
    return not is_open and _looks_like_key(value, 6 if finding.is_quoted else 8)


def is_given_password(finding: Finding) -> bool:
    """Whether what a command or a call is given as a password is one; here only blanks are none."""
    value = finding.value
    return not _is_placeholder(value) and value.lower() not in _NOT_SECRETS and not _METAVAR.fullmatch(value)


def is_credential(finding: Finding) -> bool:
    """Whether the word after an authorization scheme is a credential."""
    value = finding.value
    if any(map(str.isdigit, value)) or any(sign in value for sign in "+="):
        return True
    return looks_random(value) or _is_user_and_password(value)


def is_no_port(finding: Finding) -> bool:
    """Whether the text after the host or user of an address is a password, not a port or placeholder."""
    value = finding.value
    is_named = value.lower() in _NOT_SECRETS
    return not is_named and not _is_placeholder(value) and not value.split("/")[0].isdigit()


def always(finding: Finding) -> bool:  # noqa: ARG001 - a judge like the others
    """The form is proof enough."""
    return True


def _looks_like_key(value: str, min_letters: int) -> bool:
    if value.isdecimal() and len(value) >= _MIN_DIGITS:
        return True
    if len(value) < min_letters or " " in value.strip() or _NUMBER.fullmatch(value) or _PATH.fullmatch(value):
        return False
    return _REFERENCE.fullmatch(value) is None or falls_apart(value)


def _is_placeholder(value: str) -> bool:
    if value.startswith(_PLACEHOLDER_STARTS) or _VARIABLE.fullmatch(value) or _REPEATED.fullmatch(value):
        return True
    opened = value.find("{")
    return (0 <= opened < value.rfind("}")) or "$(" in value


def _means_no_secret(finding: Finding, value: str) -> bool:
    small = value.strip().lower()
    if small in _NOT_SECRETS or (not finding.is_quoted and _PATH.fullmatch(value)):
        return True
    if _TELLING.search(small) is None or small[-3:].isdigit():
        return False
    return " " in small or _IDENTIFIER.fullmatch(value) is not None


def _is_plain(value: str) -> bool:
    return not any(sign in value for sign in ".:>") and len(value) >= 3


def _is_called(finding: Finding) -> bool:
    return not finding.is_quoted and finding.text.startswith(("(", "[", "{", "<"), finding.secret[1])


def _ends_line(finding: Finding) -> bool:
    """Whether no code follows a bare word on its line.

    If no blank surrounds the sign before it, as in a shell or a connection string, a blank or a semicolon
    also ends it.
    """
    text, (start, end) = finding.text, finding.secret
    line_end = text.find("\n", end, end + 200)
    rest = text[end : line_end if line_end >= 0 else end + 200].strip()
    if not rest or rest.startswith(("#", "//", "*/", "-->")) or text[end : end + 2] in {"\\n", '"\n', "'\n"}:
        return True
    is_tight = text[start - 1] == "=" and text[start - 2 : start - 1] not in {" ", "="}
    return (
        is_tight and text[end] in {" ", ";", '"', "'"} and not rest.startswith(("if ", "for ", "and ", "or "))
    )


def _is_user_and_password(value: str) -> bool:
    try:
        return b":" in base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False


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
