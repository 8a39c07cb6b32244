"""Other ways to go on: where in a completion the target was unsure, and what it would have written there.

Owns which token is tried where, and in which order. Knows no text rules and no clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from completion_engine.decoding.chances import Chance
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.repository_memory import NUM_LOOKED_UP
from completion_engine.decoding.slots import Slot
from completion_engine.decoding.task import Task
from completion_engine.prompting.written import HealingConstraint
from completion_engine.stats import CompletionStats
from completion_engine.target_model.ranking import best_few
from completion_engine.target_model.rows import ROWS

_MAX_PLACES = 12  # tokens of the first line that are looked at
_MAX_RUNNERS_UP = 4  # tokens that are considered at each
_MIN_SHARE = 0.02  # a token this much less likely than the best one at its place is junk


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """`token` in place of the completion's token after the first `num_shared`.

    `probability` is the target's for the whole way there.
    """

    num_shared: int
    token: int
    probability: float


def rank_runners_up(task: Task, first: Decoding, num_chars: int) -> list[RunnerUp]:
    """The runners-up along the first line of a completion, the likeliest first.

    `num_chars` of what `first` wrote count. Takes a pass of the target for every few tokens; afterwards the
    cache holds the prompt and the completion's beginning. Raises CancelledError.
    """
    tokens = _first_line(first, num_chars)
    while first.prepare():  # what was known without a pass need not be cached
        task.request.cancellation.check()
    healing = HealingConstraint(task.tokenizer, task.prompt.healed)
    probability = 1.0
    found: list[RunnerUp] = []
    for num_shared, (token, logits) in enumerate(zip(tokens, _logits(task, first, tokens), strict=True)):
        chances = _chances(logits[: task.context.sampler.num_tokens], healing)
        best = best_few(chances, _MAX_RUNNERS_UP)
        for other, chance in zip(best, chances[best].tolist(), strict=True):
            is_junk = chance < _MIN_SHARE * float(chances[best[0]]) or first.written.is_end(other)
            if other != token and not is_junk:
                found.append(RunnerUp(num_shared, other, probability * chance))
        probability *= float(chances[token])
        healing = healing.after(token) if healing.bytes else healing
    return sorted(found, key=lambda branch: -branch.probability)


def decode_behind(task: Task, first: Decoding, branch: RunnerUp, stats: CompletionStats) -> Decoding:
    """Begin to write behind a branch, in the task's own cache.

    What the task's slot knows of the first completion stays as it is: of a branch's beginning it cannot be
    said that the target would write it.
    """
    at = branch.num_shared
    slot = Slot(
        task.slot.cache,
        path=[*task.prompt.tokens, *first.tokens[:at], branch.token],
        num_forced=len(task.prompt.tokens),
        healed=task.prompt.healed,
        setting=task.context.setting,
        memory=first.memory,
        origins=[*first.origins[:at], None],
        chances=[*first.chances[:at], Chance(branch.probability)],
    )
    return task.decoding(stats, slot)


def _first_line(first: Decoding, num_chars: int) -> list[int]:
    """The first tokens that begin on the first line, the one after the text that counts included."""
    starts = [0, *first.written.ends]
    line_end = first.written.text.find("\n")
    end = num_chars if line_end < 0 else min(num_chars, line_end)
    tokens = first.tokens[: min(_MAX_PLACES, first.num_checked)]
    return [token for token, start in zip(tokens, starts, strict=False) if start <= end]


def _logits(task: Task, first: Decoding, tokens: list[int]) -> Iterator[Tensor]:
    """The logits [vocab_size] of what writes before each of the tokens, which `first` wrote."""
    target, cache = task.context.target, task.slot.cache
    num_prompt = len(task.prompt.tokens)
    rows = [task.prompt.tokens[-1], *tokens[:-1]]
    if tokens:  # what is written follows a prompt that is cached
        cache.rewind(num_prompt - 1)
    for start in range(0, len(tokens), ROWS):
        task.request.cancellation.check()
        chunk = rows[start : start + ROWS]
        logits = target.forward(chunk, cache, len(chunk))
        cache.keep(chunk)
        for at, row in enumerate(logits, start):
            context = [*task.prompt.tokens[-NUM_LOOKED_UP:], *tokens[:at]]
            yield first.memory.mixed(row, context) if first.memory else row


def _chances(logits: Tensor, healing: HealingConstraint) -> Tensor:
    """Probabilities of the next token [num_tokens], 0 for those that do not spell what is healing."""
    if healing.bytes:
        allowed = torch.tensor(healing.candidates(), device=logits.device)
        masked = torch.full_like(logits, float("-inf"))
        masked[allowed] = logits[allowed]
        logits = masked
    return torch.softmax(logits.float(), dim=-1)
