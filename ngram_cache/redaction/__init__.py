"""Finds secrets inside text and removes them. Does not depend on file names."""

from __future__ import annotations

import re

from ngram_cache.redaction import forms, names
from ngram_cache.redaction.forms import is_manifest
from ngram_cache.redaction.rule import Span, find, lowered, merged, restored, without
from ngram_cache.redaction.values import find_random, looks_random

__all__ = [
    "Span",
    "blank_parts",
    "blank_secrets",
    "has_private_key",
    "is_manifest",
    "looks_random",
    "merged",
    "secret_spans",
    "without",
]

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d:|AGE-SECRET-KEY-1"
)
_MARKS = ("PRIVATE KEY", "PuTTY-User-Key-File-", "AGE-SECRET-KEY-1")
_RULES = (*names.COMMANDS, *names.NAMES)
# Keys are in runs, which are found much faster than keys. Longer runs than these are not code.
_RUN = re.compile(r"[A-Za-z0-9+/=_.:~\-]{16,}+")
_MAX_RUN = 2048


def has_private_key(text: str) -> bool:
    """Whether a text holds a private key; such a file is not read any further."""
    return any(mark in text for mark in _MARKS) and _PRIVATE_KEY.search(text) is not None


def blank_secrets(text: str) -> str:
    """The text with keys, tokens, passwords and other high-entropy strings taken out.

    Lines stay lines, so that line numbers still hold. Errs on the side of taking out too much: a lost
    draft costs a millisecond, a drafted secret costs trust. Takes time in proportion to the text.
    """
    return without(text, secret_spans(text))


def blank_parts(*parts: str) -> list[str]:
    """Return the parts of a text without secrets: one part may name or complete a secret of another."""
    spans, left, begin = secret_spans("".join(parts)), [], 0
    for part in parts:
        end = begin + len(part)
        inside = [(max(a, begin) - begin, min(b, end) - begin) for a, b in spans if a < end and b > begin]
        left.append(without(part, inside))
        begin = end
    return left


def secret_spans(text: str) -> list[Span]:
    """Where `blank_secrets` takes something out, in the text's order; no span touches another."""
    named = [
        *find(text, lowered(text), _RULES),
        *forms.find_phrases(text),
        *forms.find_manifests(text),
        *forms.find_joined(text),
    ]
    rest = without(text, named) if named else text
    return restored(text, named, [span for run in _RUN.finditer(rest) for span in _secrets_of(run)])


def _secrets_of(found: re.Match[str]) -> list[Span]:
    """Positions of the secrets of a run in its text."""
    run, begin = found[0], found.start()
    if len(run) > _MAX_RUN:
        return [found.span()]
    known = [key.span() for key in forms.KNOWN.finditer(run)]
    spans = restored(run, known, find_random(without(run, known))) if known else find_random(run)
    return [(begin + start, begin + end) for start, end in spans]
