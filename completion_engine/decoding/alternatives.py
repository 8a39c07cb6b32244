"""Alternative completions: one token of the first completion is replaced, and the target writes on after it.

The tokens that the target ranked just below its pick (the runners-up) are tried by the probability of the
text up to them, the likeliest first, until the limits' patience ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from completion_engine.decoding.completion import CompletionBuilder, run
from completion_engine.decoding.ending import Finish, Limits
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.preparation import PreparedRequest
from completion_engine.decoding.reuse import PastCompletion, Slot
from completion_engine.decoding.sampling import NUM_LOOKED_UP
from completion_engine.probability import NUM_RIVALS, TokenProbability
from completion_engine.prompting.prompt import HealingConstraint
from completion_engine.request import Completion, CompletionStats
from completion_engine.target_model.exactness import best_few
from completion_engine.target_model.passes import ROWS

_MAX_TOKENS = 12  # leading tokens of the first line that are considered
_MAX_RUNNERS_UP = 4  # tokens that are considered in the place of each
_MIN_RATIO = 0.02  # relative to the best token's probability; less likely tokens are dropped


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """`token` in place of the completion's token after the first `num_shared`.

    `probability` is that of `token` after the shared ones, `path_probability` the product of the target's
    probabilities of the shared tokens and of `token`.
    """

    num_shared: int
    token: int
    probability: TokenProbability
    path_probability: float


def alternatives(
    prepared: PreparedRequest, builder: CompletionBuilder, first: Decoding, finish: Finish, limits: Limits
) -> Iterator[Completion]:
    """Yield other completions at the cursor of `first`, which ended with `finish`: the likeliest first.

    They end when the limits' patience ends. Two alternatives may have the same text. None leaves a bracket or
    string open that the document does not close.
    """
    rules, cancellation = builder.rules, prepared.request.cancellation
    patient = replace(limits, deadline_at=limits.patience_at)
    new_stats = partial(CompletionStats, device=first.stats.device, target=first.stats.target)
    if finish.reason == "deadline":  # the uncut first completion is the likeliest alternative
        begin_s, first = time.perf_counter(), prepared.decode(new_stats())
        finish = run(first, rules, patient, cancellation)
        yield builder.build(first, finish, begin_s)
    for branch in rank_runners_up(prepared, first, finish.num_chars):
        begin_s = time.perf_counter()
        if begin_s > limits.patience_at or limits.is_turn_over(cancellation):
            return
        decoding = decode_after(prepared, first, branch, new_stats())
        end = run(decoding, rules, patient, cancellation)
        if end.reason == "deadline" and end.num_chars < decoding.written.ends[branch.num_shared]:
            continue
        completion = builder.build(decoding, end, begin_s)
        if not rules.leaves_open(completion.text, completion.num_replaced):
            yield completion


def rank_runners_up(prepared: PreparedRequest, first: Decoding, num_chars: int) -> list[RunnerUp]:
    """Return the runners-up along the first line of a completion, by `path_probability`, the likeliest first.

    Only the first `num_chars` characters that `first` wrote are considered. Runs a pass of the target for
    every few tokens; afterwards the cache holds the prompt and the completion's beginning. Raises
    CancelledError.
    """
    tokens = _first_line(first, num_chars)
    while first.prepare():  # tokens that were reused without a pass may not be cached yet
        prepared.request.cancellation.check()
    healing = HealingConstraint(prepared.tokenizer, prepared.prompt.healed)
    path_probability = 1.0
    found: list[RunnerUp] = []
    rows = zip(tokens, _logits(prepared, first, tokens), strict=True)
    for num_shared, (token, logits) in enumerate(rows):
        probabilities = _probabilities(logits[: prepared.setup.sampler.num_tokens], healing)
        best = best_few(probabilities, 1 + NUM_RIVALS)
        values = dict(zip(best, probabilities[best].tolist(), strict=True))
        for other in best[:_MAX_RUNNERS_UP]:
            is_junk = values[other] < _MIN_RATIO * values[best[0]] or first.written.is_end(other)
            if other != token and not is_junk:
                rivals = tuple((rival, value) for rival, value in values.items() if rival != other)
                scored = TokenProbability(values[other], rivals[:NUM_RIVALS])
                found.append(RunnerUp(num_shared, other, scored, path_probability * values[other]))
        path_probability *= float(probabilities[token])
        healing = healing.after(token) if healing.bytes else healing
    return sorted(found, key=lambda branch: -branch.path_probability)


def decode_after(
    prepared: PreparedRequest, first: Decoding, branch: RunnerUp, stats: CompletionStats
) -> Decoding:
    """Begin to write after a runner-up, in the request's own cache.

    The request's slot still records `first` as its completion, because only that is what the target picks: a
    later request must not reuse an alternative.
    """
    at = branch.num_shared
    past = PastCompletion(
        [*prepared.prompt.tokens, *first.tokens[:at], branch.token],
        len(prepared.prompt.tokens),
        prepared.prompt.healed,
        prepared.setup.setting,
        [*first.sources[:at], None],
        [*first.probabilities[:at], branch.probability],
        first.bias,
    )
    return prepared.decode(stats, Slot(prepared.slot.cache, past=past))


def _first_line(first: Decoding, num_chars: int) -> list[int]:
    """Return the tokens that begin on the first line within the first `num_chars` characters.

    This includes the token that begins right at their end. At most `_MAX_TOKENS`.
    """
    starts = [0, *first.written.ends]
    line_end = first.written.text.find("\n")
    end = num_chars if line_end < 0 else min(num_chars, line_end)
    tokens = first.tokens[: min(_MAX_TOKENS, first.num_checked)]
    return [token for token, start in zip(tokens, starts, strict=False) if start <= end]


def _logits(prepared: PreparedRequest, first: Decoding, tokens: list[int]) -> Iterator[Tensor]:
    """Yield for each of `tokens`, which `first` wrote, the logits [vocab_size] that it was picked from."""
    target, cache, prompt = prepared.setup.target, prepared.slot.cache, prepared.prompt.tokens
    rows = [prompt[-1], *tokens[:-1]]
    if tokens:  # otherwise the prompt may not be cached
        cache.rewind(len(prompt) - 1)
    for start in range(0, len(tokens), ROWS):
        prepared.request.cancellation.check()
        chunk = rows[start : start + ROWS]
        logits = target.forward(chunk, cache, len(chunk))
        cache.keep(chunk)
        for at, row in enumerate(logits, start):
            context = [*prompt[-NUM_LOOKED_UP:], *tokens[:at]]
            yield first.bias.mixed(row, context) if first.bias else row


def _probabilities(logits: Tensor, healing: HealingConstraint) -> Tensor:
    """Return the next token's probabilities [num_tokens], 0 for tokens that `healing` does not allow."""
    if healing.bytes:
        allowed = torch.tensor(healing.candidates(), device=logits.device)
        masked = torch.full_like(logits, float("-inf"))
        masked[allowed] = logits[allowed]
        logits = masked
    return torch.softmax(logits.float(), dim=-1)
