"""What of a place may leave the machine: no document that is left out, and nothing that looks like a secret.

Owns that decision. Text in, text or a refusal out; knows no network.
"""

from __future__ import annotations

from completion_engine.request import CompletionRequest
from ngram_cache.redaction import blank_secrets, has_private_key

LEAVES = "the text around the cursor and pieces of indexed files, without what looks like a secret"
_LOOKED_AT = 4000  # characters before the cursor in which a secret that is being typed begins


def mask(text: str) -> str:
    """A part of a prompt without what looks like a secret."""
    return blank_secrets(text)


def refusal(request: CompletionRequest) -> str:
    """The name of the rule by which nothing of this place may leave the machine, or nothing."""
    if not request.may_leave:
        return "stays-here"
    text = request.prefix[-_LOOKED_AT:]
    words = text.split()
    is_hidden = bool(words) and not blank_secrets(text).rstrip().endswith(words[-1])
    has_key = has_private_key(request.prefix) or has_private_key(request.suffix)
    return "secret-at-cursor" if is_hidden or has_key else ""
