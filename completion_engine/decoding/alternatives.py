"""Alternative completions: one token of the first completion is replaced, and the target writes on after it.

The tokens that the target ranked just below its pick (the runners-up) are tried by the probability of the
text up to them, the likeliest first, until the limits' patience ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from completion_engine.decoding.completion import CompletionBuilder, run
from completion_engine.decoding.ending import Finish, Limits
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.preparation import PreparedRequest
from completion_engine.decoding.reuse import PastCompletion, Slot
from completion_engine.probability import NUM_RIVALS, TokenProbability
from completion_engine.request import Completion, CompletionStats

_MAX_TOKENS = 12  # leading tokens of the first line that are considered
_MAX_RUNNERS_UP = 3  # tokens that are considered in the place of each
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
    for branch in rank_runners_up(first, finish.num_chars):
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


def rank_runners_up(first: Decoding, num_chars: int) -> list[RunnerUp]:
    """Return the runners-up along the first line of a completion, by `path_probability`, the likeliest first.

    Only the first `num_chars` characters that `first` wrote are considered; its tokens have probabilities.
    """
    path_probability = 1.0
    found: list[RunnerUp] = []
    tokens = _first_line(first, num_chars)
    for num_shared, (token, scored) in enumerate(zip(tokens, first.probabilities, strict=False)):
        ranked = sorted(((token, scored.value), *scored.rivals), key=lambda pair: -pair[1])
        for other, value in scored.rivals[:_MAX_RUNNERS_UP]:
            if value >= _MIN_RATIO * ranked[0][1] and not first.written.is_end(other):
                rivals = tuple(pair for pair in ranked if pair[0] != other)
                probability = TokenProbability(value, rivals[:NUM_RIVALS])
                found.append(RunnerUp(num_shared, other, probability, path_probability * value))
        path_probability *= scored.value
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
        [*first.sources[:at], None],
        [*first.probabilities[:at], branch.probability],
        first.bias,
    )
    setup = replace(prepared.setup, scores=prepared.request.filters_by_confidence)
    return replace(prepared, setup=setup).decode(stats, Slot(prepared.slot.cache, past=past))


def _first_line(first: Decoding, num_chars: int) -> list[int]:
    """Return the tokens that begin on the first line within the first `num_chars` characters.

    This includes the token that begins right at their end. At most `_MAX_TOKENS`.
    """
    starts = [0, *first.written.ends]
    line_end = first.written.text.find("\n")
    end = num_chars if line_end < 0 else min(num_chars, line_end)
    tokens = first.tokens[: min(_MAX_TOKENS, first.num_checked)]
    return [token for token, start in zip(tokens, starts, strict=False) if start <= end]
