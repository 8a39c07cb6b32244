"""How many tokens of context a target is shown here: a pure function of what a prompt token costs."""

from __future__ import annotations

MAX_TOKENS = 320  # every later pass attends to them: with 512 more keys it takes 7 to 9 % longer
_MIN_TOKENS = 128  # fewer hold no passage
_STEP = 64
_MAX_IDLE_MS = 2_000.0  # of an idle machine, each time that a context changes


def context_tokens(token_ms: float) -> int:
    """Tokens of context where a further token of a prompt takes `token_ms`; 0 where that is too slow."""
    if token_ms <= 0:
        return MAX_TOKENS
    affordable = min(MAX_TOKENS, int(_MAX_IDLE_MS / token_ms)) // _STEP * _STEP
    return affordable if affordable >= _MIN_TOKENS else 0
