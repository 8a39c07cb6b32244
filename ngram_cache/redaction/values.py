"""Kinds of values that follow the name of a secret: a secret, a reference, a placeholder, a word about it."""

from __future__ import annotations

import base64
import binascii
import re

from ngram_cache.redaction.randomness import falls_apart, looks_random
from ngram_cache.redaction.rule import Finding


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


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
    """Whether the value of a name that most often means something else is a secret all the same."""
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
    is_about = _TELLING.search(small) is not None
    return (
        is_about and (" " in small or _IDENTIFIER.fullmatch(value) is not None) and not _ends_in_digits(small)
    )


def _ends_in_digits(value: str) -> bool:
    return value[-3:].isdigit()


def _is_plain(value: str) -> bool:
    return not any(sign in value for sign in ".:>") and len(value) >= 3


def _is_called(finding: Finding) -> bool:
    return not finding.is_quoted and finding.text[finding.secret[1] : finding.secret[1] + 1] in {
        "(",
        "[",
        "{",
        "<",
    }


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
