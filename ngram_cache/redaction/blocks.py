"""Secrets that whole blocks of text show: manifests of Kubernetes, and tokens in several literals."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ngram_cache.redaction.forms import KNOWN
from ngram_cache.redaction.randomness import looks_random
from ngram_cache.redaction.rule import Span

_MANIFEST = re.compile(r"\bkind[\"']?[ \t]{0,8}+:\s{0,8}+[\"']?[Ss]ecret(?![A-Za-z])")
_END = re.compile(r"^---", re.MULTILINE)
# The values in braces, or lines as far in as the first of them or further, with blank ones between.
_DATA = re.compile(
    r"(?:(?<=[\s{,\"'])|\A)(?P<name>data|stringData)[\"']?[ \t]{0,8}+:(?:\s{0,80}+\{(?P<flow>(?:[^{}\"']++"
    r"|\"(?:[^\"\\\n]|\\[^\n]){0,65536}+\"|'[^'\n]{0,65536}+'){0,16384}+)|[ \t\r]{0,60}+(?P<lines>"
    r"(?:\n[ \t\r]{0,60}+(?=\n)){0,16}+\n(?P<indent>[ \t]{1,60}+)[^\n]{1,65536}+"
    r"(?:\n(?:(?P=indent)[^\n]{0,65536}+|[ \t\r]{0,60}+(?=\n))){0,16384}+))"
)
_JOINED = re.compile(
    r"(?P<mark>[\"'`])(?P<first>[\w\-+/=.]{4,200}+)(?P=mark)"
    r"(?:\s{0,40}+(?:[+.\\]\s{0,40}+)?(?P=mark)[\w\-+/=.]{4,200}+(?P=mark)){1,8}+"
)
_PIECE = re.compile(r"[\w\-+/=.]{4,}+")


def is_manifest(text: str) -> bool:
    """Whether a text has a Secret of Kubernetes, whose values look like any others."""
    return "ecret" in text and _MANIFEST.search(text) is not None


def find_manifests(text: str) -> Iterator[Span]:
    """Yield the spans of all values of Secrets, wherever in its YAML document a Secret is called one."""
    if "data" not in text and "stringData" not in text:
        return
    begin, has_any = 0, is_manifest(text)
    if not has_any and "stringData" not in text:
        return
    for end in [*(found.start() for found in _END.finditer(text)), len(text)]:
        is_secret = has_any and _MANIFEST.search(text, begin, end) is not None
        for found in _DATA.finditer(text, begin, end):
            if is_secret or found["name"] == "stringData":
                yield found.span("flow" if found["flow"] else "lines")
        begin = end


def find_joined(text: str) -> Iterator[Span]:
    """Yield the spans of tokens that are split into several literals."""
    for found in _JOINED.finditer(text):
        pieces = [piece.span() for piece in _PIECE.finditer(text, *found.span())]
        joined = "".join(text[start:end] for start, end in pieces)
        if KNOWN.search(joined) or looks_random(joined):
            yield from pieces
