"""Owns what secrets look like inside text, and takes them out. Knows no file names, reads its rules alone."""

from __future__ import annotations

import re
from functools import cache

from ngram_cache.redaction import commands, names, phrases, services
from ngram_cache.redaction.randomness import looks_random, without_random
from ngram_cache.redaction.rule import find, lowered, without
from ngram_cache.source import digest_of

__all__ = ["blank_secrets", "fingerprint", "has_private_key", "looks_random"]

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d:|AGE-SECRET-KEY-1"
)
_RULES = (*commands.COMMANDS, *names.NAMES)
# Keys stand in runs, which are found much faster than any of them; longer ones than these are no code.
_RUN = re.compile(r"[A-Za-z0-9+/=_.:\-]{16,}+")
_MAX_RUN = 2048


def has_private_key(text: str) -> bool:
    """Whether a text holds a private key; such a file is not read any further."""
    return _PRIVATE_KEY.search(text) is not None


def blank_secrets(text: str) -> str:
    """The text with keys, tokens, passwords and other high-entropy strings taken out.

    Lines stay lines, so that line numbers still hold. Errs on the side of taking out too much: a lost
    draft costs a millisecond, a drafted secret costs trust. Takes time in proportion to the text.
    """
    spans = [*find(text, lowered(text), _RULES), *phrases.find_phrases(text)]
    return _RUN.sub(_blank_run, without(text, spans) if spans else text)


@cache
def fingerprint() -> str:
    """Names the rules as they are: whatever was redacted under another name is to be redacted again."""
    modules = ("rule", "values", "names", "commands", "services", "randomness", "phrases", "__init__")
    return digest_of(*(f"redaction.{module}" for module in modules))


def _blank_run(found: re.Match[str]) -> str:
    run = found[0]
    if len(run) > _MAX_RUN:
        return ""
    return without_random(services.KNOWN.sub("", run))
