"""Owns what of a completion drafters may keep for the next ones: no secret. Knows no drafters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from completion_engine.drafting.ngram import NUM_REMEMBERED_BEFORE
from ngram_cache.redaction import blank_secrets

_NUM_TOLD = 128  # tokens that may say that what follows them is a secret


def may_be_kept(path: Sequence[int], num_prompt: int, spell: Callable[[list[int]], bytes]) -> bool:
    """Whether redaction leaves alone what is kept of `path`: all behind the prompt, and a little before."""
    at = max(0, num_prompt - NUM_REMEMBERED_BEFORE)
    before, kept = (
        spell(list(tokens)).decode(errors="replace")
        for tokens in (path[max(0, at - _NUM_TOLD) : at], path[at:])
    )
    return blank_secrets(before + kept).endswith(kept)
