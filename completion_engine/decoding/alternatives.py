"""Alternative completions: where the target was unsure, and what it would have written there instead.

Owns which token is tried where, in which order, and until when. Does not depend on text rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from completion_engine.decoding.completion import CompletionBuilder
from completion_engine.decoding.ending import Finish, Limits, run
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.preparation import PreparedRequest
from completion_engine.decoding.repository_bias import NUM_LOOKED_UP
from completion_engine.decoding.reuse import PastCompletion
from completion_engine.decoding.slots import Slot
from completion_engine.probability import TokenProbability
from completion_engine.prompting.prompt import HealingConstraint
from completion_engine.stats import Completion, CompletionStats
from completion_engine.target_model.pass_rows import ROWS
from completion_engine.target_model.ranking import best_few

_MAX_TOKENS = 12  # leading tokens of the first line that are considered
_MAX_RUNNERS_UP = 4  # tokens that are considered in the place of each
_MIN_RATIO = 0.02  # relative to the best token's probability; less likely tokens are dropped


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """`token` in place of the completion's token after the first `num_shared`.

    `probability` is the target's for all tokens up to it.
    """

    num_shared: int
    token: int
    probability: float


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Other completions at the cursor of `first`, which ended with `finish`: the likeliest first.

    They end with the limits' patience. Some may be equal.
    """

    prepared: PreparedRequest
    builder: CompletionBuilder
    first: Decoding
    finish: Finish
    limits: Limits

    def __iter__(self) -> Iterator[Completion]:
        prepared, limits, first, finish = self.prepared, self.limits, self.first, self.finish
        rules, cancellation = self.builder.rules, prepared.request.cancellation
        patient = replace(limits, deadline_at=limits.patience_at)
        if finish.reason == "deadline":  # the whole of what the deadline cut off is the likeliest of all
            begin_s, first = time.perf_counter(), prepared.decode(self._new_stats())
            finish = run(first, rules, patient, cancellation)
            yield self.builder.build(first, finish, begin_s)
        for branch in rank_runners_up(prepared, first, finish.num_chars):
            begin_s = time.perf_counter()
            if begin_s > limits.patience_at or limits.is_turn_over(cancellation):
                return
            decoding = decode_after(prepared, first, branch, self._new_stats())
            end = run(decoding, rules, patient, cancellation)
            if end.reason != "deadline" or end.num_chars >= decoding.written.ends[branch.num_shared]:
                yield self.builder.build(decoding, end, begin_s)

    def _new_stats(self) -> CompletionStats:
        return CompletionStats(device=self.first.stats.device, target=self.first.stats.target)


def rank_runners_up(prepared: PreparedRequest, first: Decoding, num_chars: int) -> list[RunnerUp]:
    """Return the runners-up along the first line of a completion, the likeliest first.

    `num_chars` of what `first` wrote count. Takes a pass of the target for every few tokens; afterwards the
    cache holds the prompt and the completion's beginning. Raises CancelledError.
    """
    tokens = _first_line(first, num_chars)
    while first.prepare():  # tokens that were known without a pass need not be cached
        prepared.request.cancellation.check()
    healing = HealingConstraint(prepared.tokenizer, prepared.prompt.healed)
    probability = 1.0
    found: list[RunnerUp] = []
    rows = zip(tokens, _logits(prepared, first, tokens), strict=True)
    for num_shared, (token, logits) in enumerate(rows):
        probabilities = _probabilities(logits[: prepared.setup.sampler.num_tokens], healing)
        best = best_few(probabilities, _MAX_RUNNERS_UP)
        for other, value in zip(best, probabilities[best].tolist(), strict=True):
            is_junk = value < _MIN_RATIO * float(probabilities[best[0]]) or first.written.is_end(other)
            if other != token and not is_junk:
                found.append(RunnerUp(num_shared, other, probability * value))
        probability *= float(probabilities[token])
        healing = healing.after(token) if healing.bytes else healing
    return sorted(found, key=lambda branch: -branch.probability)


def decode_after(
    prepared: PreparedRequest, first: Decoding, branch: RunnerUp, stats: CompletionStats
) -> Decoding:
    """Begin to write after a branch, in the request's own cache.

    The request's slot keeps the first completion: the target would not have written a branch's beginning.
    """
    at = branch.num_shared
    past = PastCompletion(
        [*prepared.prompt.tokens, *first.tokens[:at], branch.token],
        len(prepared.prompt.tokens),
        prepared.prompt.healed,
        prepared.setup.setting,
        [*first.sources[:at], None],
        [*first.probabilities[:at], TokenProbability(branch.probability)],
        first.bias,
    )
    return prepared.decode(stats, Slot(prepared.slot.cache, past=past))


def _first_line(first: Decoding, num_chars: int) -> list[int]:
    """Return the first tokens that begin on the first line, and the one after the text that counts."""
    starts = [0, *first.written.ends]
    line_end = first.written.text.find("\n")
    end = num_chars if line_end < 0 else min(num_chars, line_end)
    tokens = first.tokens[: min(_MAX_TOKENS, first.num_checked)]
    return [token for token, start in zip(tokens, starts, strict=False) if start <= end]


def _logits(prepared: PreparedRequest, first: Decoding, tokens: list[int]) -> Iterator[Tensor]:
    """Yield the logits [vocab_size] from which each of the tokens was picked that `first` wrote."""
    target, cache, prompt = prepared.setup.target, prepared.slot.cache, prepared.prompt.tokens
    rows = [prompt[-1], *tokens[:-1]]
    if tokens:  # the prompt before written tokens is cached
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
    """Return the next token's probabilities [num_tokens], 0 for tokens that do not spell what is healing."""
    if healing.bytes:
        allowed = torch.tensor(healing.candidates(), device=logits.device)
        masked = torch.full_like(logits, float("-inf"))
        masked[allowed] = logits[allowed]
        logits = masked
    return torch.softmax(logits.float(), dim=-1)
