"""Owns what secrets look like inside text, and takes them out. Pure: reads no disk."""

from __future__ import annotations

import re

_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9 ]{0,40})PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d:|AGE-SECRET-KEY-1"
)

# Looked for inside runs alone, which are found much faster than any of these.
_KNOWN = re.compile(
    r"""(?x)
    (?:A3T[A-Z0-9]|AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{12,}
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,} | gl[a-z]{2,6}-[A-Za-z0-9_\-]{16,}
    | xox[a-z]-[A-Za-z0-9\-]{8,} | xapp-[A-Za-z0-9\-]{8,}
    | hooks\.slack\.com/[A-Za-z0-9/_\-]+ | discord(?:app)?\.com/api/webhooks/[A-Za-z0-9_/\-]+
    | [sprw]k_(?:live|test|prod)_[A-Za-z0-9]{8,} | whsec_[A-Za-z0-9+/=]{8,}
    | AIza[0-9A-Za-z_\-]{20,} | ya29\.[0-9A-Za-z_\-.]+ | GOCSPX-[0-9A-Za-z_\-]{10,}
    | sk-(?:[a-z]+[0-9]*-)*[A-Za-z0-9_\-]{20,} | hf_[A-Za-z0-9]{20,} | r8_[A-Za-z0-9]{20,}
    | npm_[A-Za-z0-9]{20,} | pypi-[A-Za-z0-9_\-]{16,} | dop_v1_[a-f0-9]{20,} | shp[a-z]{2}_[a-fA-F0-9]{16,}
    | SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,} | key-[0-9a-f]{24,} | (?:AC|SK)[0-9a-f]{32}
    | eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{4,}(?:\.[A-Za-z0-9_\-]*)? | [0-9]{8,10}:AA[A-Za-z0-9_\-]{30,}
    | AccountKey=[A-Za-z0-9+/=]{20,} | hv[sb]\.[A-Za-z0-9_\-]{20,}
    """
)
_RUN = re.compile(r"[A-Za-z0-9+/=_.:\-]{16,}")
_RANDOM_RUN = re.compile(r"[A-Za-z0-9+/_\-]{20,}={0,2}")
_PIECE = re.compile(r"[A-Za-z0-9+]{16,}")
_HEX = re.compile(r"(?<![A-Za-z0-9])(?:0[xX])?[0-9a-fA-F][0-9a-fA-F\-]{23,}(?![A-Za-z0-9])")

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")

_URL_PASSWORD = re.compile(r"(?<=://)[^\s:/@'\"]{0,80}:(?P<secret>[^\s/@'\"]{1,200})(?=@)")
_AUTHORIZATION = re.compile(
    r"""(?x)
    (?:[Bb]earer|[Bb]asic|BEARER|BASIC) [ \t]+ (?= \S*[0-9=+] | \S*[a-z]\S*[A-Z] )
    (?P<secret>[A-Za-z0-9+/=_\-.~]{8,})
    """
)

# A name that speaks of a secret (searched in small letters) and the value it is given.
_NAME = re.compile(
    r"(?P<strong>passw(?:or)?d|passphrase|passcode|_pass\b|\bpwd|secret)|token|credential|auth"
    r"|(?:api|access|auth|private|signing|encryption|account|master|service)[_-]?key"
)
_VALUE = re.compile(
    r"""(?x)
    (?P<rest>[A-Za-z0-9_\-]{0,32}) ["'\]]{0,2} [ \t]{0,8} (?: :[ \t]*[\w.\[\]|\ ]{1,30}= | => | :?= | : )
    [ \t]{0,8} [rbuf]{0,2}
    (?: "(?P<double>[^"\n\\]{4,400})" | '(?P<single>[^'\n\\]{4,400})' | `(?P<tick>[^`\n]{4,400})`
      | (?P<bare>[^\s"'`,;(){}\[\]<>]{8,400}) )
    """
)
_REFERENCE = re.compile(r"[A-Za-z_][A-Za-z_\-]*(?:[.:]{1,2}[A-Za-z_][A-Za-z_\-]*)*")
_PLACEHOLDER = re.compile(r"[<{$%\[].*|[*.xX\-_]+|.*\{.*\}.*|.*\$\(.*")
_SMALL = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}


def has_private_key(text: str) -> bool:
    """Whether a text holds a private key; such a file is not read any further."""
    return _PRIVATE_KEY.search(text) is not None


def blank_secrets(text: str) -> str:
    """The text with keys, tokens, passwords and other high-entropy strings taken out.

    Lines stay lines, so that line numbers still hold. Errs on the side of taking out too much: a lost
    draft costs a millisecond, a drafted secret costs trust.
    """
    text = _blank_named(text)
    if "://" in text:
        text = _URL_PASSWORD.sub(_without_secret, text)
    text = _AUTHORIZATION.sub(_without_secret, text)
    return _RUN.sub(_blank_run, text)


def _blank_named(text: str) -> str:
    pieces, done = [], 0
    for name in _NAME.finditer(text.translate(_SMALL)):
        found = _VALUE.match(text, name.end())
        if found is None or name.end() < done or _is_harmless(name, found):
            continue
        first, last = found.span(found.lastgroup or 0)
        pieces.append(text[done:first])
        done = last
    pieces.append(text[done:])
    return "".join(pieces)


def _is_harmless(name: re.Match[str], found: re.Match[str]) -> bool:
    """Whether the value of a telling name is a reference, a placeholder or a sentence about it."""
    value = found[found.lastgroup or 0]
    if _PLACEHOLDER.fullmatch(value):
        return True
    is_password = name["strong"] is not None and not found["rest"] and found.lastgroup != "bare"
    return not is_password and (" " in value.strip() or _REFERENCE.fullmatch(value) is not None)


def _without_secret(found: re.Match[str]) -> str:
    first, last = found.start("secret") - found.start(), found.end("secret") - found.start()
    return found[0][:first] + found[0][last:]


def _blank_run(found: re.Match[str]) -> str:
    run = _HEX.sub(_blank_random, _KNOWN.sub("", found[0]))
    return _RANDOM_RUN.sub(_blank_random, run)


def _blank_random(found: re.Match[str]) -> str:
    if looks_random(found[0]):
        return ""
    return _PIECE.sub(lambda piece: "" if looks_random(piece[0]) else piece[0], found[0])


def looks_random(run: str) -> bool:
    """Whether a run of base64, hexadecimal or similar letters reads like a key and not like a name.

    Cut into words (`Word`, `word`, `WORD`, `123`), names have long ones; random letters fall apart.
    """
    if _HEX.fullmatch(run):
        return _has_letters(run) and any(map(str.isdigit, run)) and len(set(run)) >= 8
    words = _WORD.findall(run)
    num_letters = sum(map(len, words))
    if num_letters < 16 or not _has_letters(run) or not any(map(str.isdigit, words)):
        return False
    is_mixed = run not in (run.lower(), run.upper())
    limit = 2.9 if is_mixed else 4.0 if run == run.lower() else 6.0
    is_compound = not is_mixed and any(sign in run for sign in "_-/")
    return not is_compound and num_letters <= limit * len(words)


def _has_letters(run: str) -> bool:
    return run.lower() != run.upper()
