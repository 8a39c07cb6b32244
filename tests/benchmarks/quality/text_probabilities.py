"""The target's probability of each token of a given text at a cursor, instead of the text that it writes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.picking import NUM_LOOKED_UP, Picker, score
from completion_engine.probability import RankedRow
from completion_engine.prompting.prompt import HealingConstraint
from completion_engine.prompting.tokenizer import Tokenizer


def probabilities_of(decoding: Decoding, text: str) -> list[float]:
    """Return the probability of each token of `text` after the prompt of a completion."""
    cache, num_prompt = decoding._cache, decoding._num_prompt
    healing, tokens = decoding.written.first_healing, decoding.written.tokens_of(text)
    cache.rewind(min(cache.num_cached, num_prompt - 1))
    prompt = decoding.path[:num_prompt]
    rows = [*prompt[cache.num_cached :], *tokens[:-1]]
    logits = decoding._target.forward(rows, cache, len(tokens))
    return token_probabilities(decoding._picker, prompt, tokens, healing, logits)


def token_probabilities(
    picker: Picker, path: Sequence[int], tokens: Sequence[int], healing: HealingConstraint, logits: Tensor
) -> list[float]:
    """Return the probability of each of `tokens` after `path`, among the tokens that `healing` allows.

    `logits` [num_tokens, vocab_size] are those after the last token of `path` and after all of `tokens` but
    the last. The last probability includes tokens that spell the last token and a line end.
    """
    ranked = picker._ranked(logits)
    context = list(path[-NUM_LOOKED_UP:])
    found: list[float] = []
    for row, token in enumerate(tokens):
        scored = score(logits[row], ranked(row), token, healing, picker.bias, context)
        counted = [token] if row + 1 < len(tokens) else _with_line_end(token, healing.tokenizer)
        found.append(sum(_value_of(one, scored, logits[row]) for one in counted))
        context.append(token)
        healing = healing.after(token)
    return found


def _with_line_end(token: int, tokenizer: Tokenizer) -> list[int]:
    """Return `token`, and the tokens that spell the same followed by a line end."""
    spelt = tokenizer.spell([token])
    longer = tokenizer.tokens_towards(spelt) if spelt else []
    return [token, *(other for other in longer if tokenizer.spell([other]).startswith(spelt + b"\n"))]


def _value_of(token: int, scored: RankedRow, logits: Tensor) -> float:
    """Return the probability of a token that healing allows; `logits` [vocab_size] as for `score`."""
    logit = scored.logits[token] if token in scored.logits else float(logits[token])
    return math.exp(min(0.0, logit - scored.log_sum))
