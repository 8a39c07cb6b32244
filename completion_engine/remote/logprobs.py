"""How likely a server says its tokens are: vLLM's logprobs, of a token and of the likeliest in its place.

Knows no network. The server is hostile: what is no probability counts as not told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from completion_engine.decoding.chances import NUM_RIVALS, UNKNOWN, Chance

_NAME = "token_id:"  # and the token's number, by return_tokens_as_token_ids
_LEAST = -20.0  # no token is quite impossible that was written


def chances_of(told: object, tokens: Sequence[int]) -> tuple[Chance, ...]:
    """How likely `tokens` are by a choice's field `logprobs`; nothing where it does not fit them."""
    fields = told if isinstance(told, dict) else {}
    own, tops = fields.get("token_logprobs"), fields.get("top_logprobs")
    if not isinstance(own, list) or len(own) != len(tokens):
        return ()
    rivals = tops if isinstance(tops, list) and len(tops) == len(tokens) else [None] * len(tokens)
    return tuple(map(_chance, tokens, own, rivals))


def _chance(token: int, own: object, top: object) -> Chance:
    share = _share(own)
    if share is None:
        return UNKNOWN
    rivals = (
        dict(_rival(name, value) for name, value in list(top.items())[: NUM_RIVALS + 1])
        if isinstance(top, dict)
        else {}
    )
    return Chance(share, tuple(pair for pair in rivals.items() if pair[0] not in {token, -1}))


def _rival(name: str, value: object) -> tuple[int, float]:
    """A token and its share; the token -1 where that is not what was told."""
    number, share = name.removeprefix(_NAME), _share(value)
    is_token = name.startswith(_NAME) and number.isascii() and number.isdigit() and len(number) < 10
    return (int(number), share) if is_token and share is not None else (-1, 0.0)


def _share(logprob: object) -> float | None:
    if isinstance(logprob, bool) or not isinstance(logprob, int | float) or not logprob <= 0:
        return None
    return math.exp(max(logprob, _LEAST))
