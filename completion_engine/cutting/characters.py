"""Removes characters that no text holds or that a reader cannot see."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_MAYBE_UNSAFE = re.compile(r"[^\t\n\x20-\x7e]")
_JOINERS = "\u200c\u200d"  # they shape letters and emoji
_JOINER_RUNS = re.compile(f"[{_JOINERS}]+")
_LINE_SEPARATORS = "\u2028\u2029"
# Invisible characters that are neither blanks nor controls: fillers and a joiner of marks.
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180d\u180f]+")
_SHORT_SELECTORS, _KEYCAP = "\ufe0e\ufe0f", "\u20e3"
_LETTERS_WITH_VARIANTS = "\u2139\u3030"
# Code points that are not characters, and those that Unicode reserves for invisible ones.
_RESERVED = (range(0xFDD0, 0xFDF0), range(0x2065, 0x2066), range(0xFFF0, 0xFFF9), range(0xE0000, 0xE1000))
_ESCAPE_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]"  # colours, movements
    "|\x1b[\\]PX^_][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\\\)"  # titles, links
    "|\x1b[ -/][0-~]"  # alphabets
)
_UNDECODABLE = re.compile("[\ufffd\ud800-\udfff]")


def decodable(text: str) -> str:
    """Return the text up to the first incomplete character or replacement character."""
    match = _UNDECODABLE.search(text)
    return text[: match.start()] if match else text


def without_controls(text: str) -> str:
    """Return the text without control, bidirectional and invisible characters; `\r\n` becomes `\n`.

    A terminal sequence is removed as a whole. Up to one joiner or variation selector in a row is kept where
    it shapes a letter or a sign with variants.
    """
    if not _MAYBE_UNSAFE.search(text):
        return text
    text = _ESCAPE_SEQUENCE.sub("", text)
    text = _MAYBE_UNSAFE.sub(lambda match: "" if _is_unsafe(match[0]) else match[0], text)
    text = _SELECTORS.sub(_fitting_selector, text)
    return _JOINER_RUNS.sub(_fitting_joiner, text)


@lru_cache(maxsize=1024)
def _is_unsafe(char: str) -> bool:
    if char in _JOINERS:
        return False
    kind, code = unicodedata.category(char), ord(char)
    # A character that this Python does not know may be a new emoji, unless Unicode reserves it as invisible.
    is_never_seen = kind == "Cn" and (code & 0xFFFE == 0xFFFE or any(code in run for run in _RESERVED))
    return kind in ("Cc", "Cf", "Cs") or is_never_seen or char in _LINE_SEPARATORS or char in _UNSEEN


def _fitting_selector(match: re.Match[str]) -> str:
    """Return the first of a run of variation selectors if the character beside it may have variants."""
    first = match[0][0]
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    kind = unicodedata.category(before) if before else ""
    if first in _SHORT_SELECTORS:
        is_sign = kind in ("So", "Sm", "Sk", "Po", "Cn") and not before.isascii()
        return first if is_sign or after == _KEYCAP or (before and before in _LETTERS_WITH_VARIANTS) else ""
    return first if kind == "Lo" else ""


def _fitting_joiner(match: re.Match[str]) -> str:
    """Return one joiner of a run between two characters that are not ASCII; empty elsewhere."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    is_between = bool(before and after) and not before.isascii() and not after.isascii()
    return match[0][0] if is_between and not before.isspace() and not after.isspace() else ""
