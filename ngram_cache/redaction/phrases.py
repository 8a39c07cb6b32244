"""Owns what the recovery phrase of a wallet looks like: a line of plain words. Knows no names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ngram_cache.redaction.rule import Span

_NUM_WORDS = frozenset({12, 15, 18, 21, 24})
_PHRASE = re.compile(
    r"(?:^[ \t]{0,40}+(?:[#*/>\-]{1,3}[ \t]{1,4})?|[\"'`=:][ \t]{0,4}+)"
    r"(?P<words>(?:[a-z]{3,8}+[ ,][ ]?){11,23}+[a-z]{3,8}+)(?=[ \t]*+(?:[\"'`.;,)<\\]|$))",
    re.MULTILINE,
)
# Words of sentences that no wallet's list has.
_SENTENCE = re.compile(
    r"\b(?:the|and|for|not|are|was|were|from|has|its|your|our|but|which|should|could|does)\b"
)


def find_phrases(text: str) -> Iterator[Span]:
    """Where such phrases stand."""
    for found in _PHRASE.finditer(text):
        words = found["words"].replace(",", " ").split()
        is_phrase = len(words) in _NUM_WORDS and len(set(words)) > len(words) - 3
        if is_phrase and not _SENTENCE.search(found["words"]):
            yield found.span("words")
