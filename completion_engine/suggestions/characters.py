"""Owns which characters a suggestion may hold: what is to be seen, and nothing that changes how."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_MAYBE_UNSAFE = re.compile(r"[^\t\n\x20-\x7e]")
_JOINERS = "\u200c\u200d"  # they shape letters and emoji
_JOINER_RUNS = re.compile(f"[{_JOINERS}]+")
_LINE_SEPARATORS = "\u2028\u2029"
# No blank, no control, and yet nothing is to be seen: fillers and a joiner of marks.
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180d\u180f]+")
_SHORT_SELECTORS, _KEYCAP = "\ufe0e\ufe0f", "\u20e3"
_LETTERS_WITH_VARIANTS = "\u2139\u3030"
# No characters, and places of the standard that are kept for unseen ones.
_RESERVED = (range(0xFDD0, 0xFDF0), range(0x2065, 0x2066), range(0xFFF0, 0xFFF9), range(0xE0000, 0xE1000))
_ESCAPE_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]"  # colours, movements
    "|\x1b[\\]PX^_][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\\\)"  # titles, links
    "|\x1b[ -/][0-~]"  # alphabets
)


def without_controls(text: str) -> str:
    """The text without control, bidirectional and invisible characters; `\\r\\n` becomes `\\n`.

    A sequence that commands a terminal goes as a whole. Joiners and selectors of variants stay, one at a
    place, where they shape a letter or sign that has variants.
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
    # A character that this Python does not know yet may be an emoji, but for those that never will be seen.
    is_never_seen = kind == "Cn" and (code & 0xFFFE == 0xFFFE or any(code in run for run in _RESERVED))
    return kind in ("Cc", "Cf", "Cs") or is_never_seen or char in _LINE_SEPARATORS or char in _UNSEEN


def _fitting_selector(match: re.Match[str]) -> str:
    """The first of a run of selectors, behind a symbol or ideograph that may have variants."""
    first = match[0][0]
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    kind = unicodedata.category(before) if before else ""
    if first in _SHORT_SELECTORS:
        is_sign = kind in ("So", "Sm", "Sk", "Po", "Cn") and not before.isascii()
        return first if is_sign or after == _KEYCAP or (before and before in _LETTERS_WITH_VARIANTS) else ""
    return first if kind == "Lo" else ""


def _fitting_joiner(match: re.Match[str]) -> str:
    """One of a run of joiners, between two characters of which neither is a plain one."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    is_between = bool(before and after) and not before.isascii() and not after.isascii()
    return match[0][0] if is_between and not before.isspace() and not after.isspace() else ""
