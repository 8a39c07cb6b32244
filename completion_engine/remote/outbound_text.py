"""The text that may leave the machine: no excluded document, and nothing that looks like a secret.

Owns that decision. Text in, text or a refusal out. Does not depend on the network.
"""

from __future__ import annotations

from functools import lru_cache

from completion_engine.request import CompletionRequest
from completion_engine.text_window import TextWindow
from ngram_cache.redaction import (
    Span,
    blank_secrets,
    has_private_key,
    is_manifest,
    merged,
    secret_spans,
    without,
)

LEAVES = (
    "the text around the cursor, the file's path in its folder and snippets of indexed files,"
    " without text that looks like a secret"
)
AT_CURSOR = "secret-at-cursor"
_NEAR = 4000  # characters before a cursor that may hold the beginning or the name of a secret there
_STEP = 4096  # the far text stays the same while this many characters are typed
_MAX_FAR = 8
_BEYOND = 1000  # characters after the outbound text that may show a secret in it


class Masking:
    """Takes secrets out of the text around cursors that a prompt with `window` may show.

    Text far above a cursor is scanned once and not with every key.
    """

    def __init__(self, window: TextWindow) -> None:
        self._window = window
        self._far = lru_cache(maxsize=_MAX_FAR)(secret_spans)

    def around(self, prefix: str, suffix: str) -> tuple[str, str] | None:
        """Return the text before and after a cursor without what looks like a secret; None inside a secret.

        Both are scanned as one text: the cursor may cut a secret, or its name.
        """
        at, whole = len(prefix), prefix + suffix
        suffix = suffix[: self._window.num_after + _BEYOND]
        # The line that makes the values of a manifest secret may stand anywhere in it.
        spans = secret_spans(whole) if is_manifest(whole) else self._spans(prefix, prefix + suffix)
        if any(start <= at <= end for start, end in spans):
            return None
        before = without(prefix, [span for span in spans if span[1] < at])
        after = without(suffix, [(start - at, end - at) for start, end in spans if start > at])
        return before, after

    def forget(self) -> None:
        """Drop the text of all documents, after one of them was closed."""
        self._far.cache_clear()

    def _spans(self, prefix: str, text: str) -> list[Span]:
        cut = _line_start(prefix, (len(prefix) - _NEAR) // _STEP * _STEP)
        far = self._far(prefix[:cut])
        if far and far[-1][1] >= cut - 1:
            return secret_spans(text)  # the last secret may go on
        begin = _line_start(prefix, cut - _NEAR)
        return merged([*far, *((begin + start, begin + end) for start, end in secret_spans(text[begin:]))])


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1 if at > 0 else 0


def refusal(request: CompletionRequest) -> str:
    """Return the name of the rule that keeps this request on the machine; empty if none does."""
    if not request.may_leave:
        return "stays-here"
    text = request.prefix[-_NEAR:]
    words = text.split()
    is_hidden = bool(words) and not blank_secrets(text).rstrip().endswith(words[-1])
    return AT_CURSOR if is_hidden or has_private_key(request.prefix + request.suffix) else ""
