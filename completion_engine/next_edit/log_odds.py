"""The target's preference for a new text over an old one at the same position: log p(new) - log p(old).

Both texts are branches of one tree after one cached prompt, so one pass decides. The prompt's keys and values
lie in a cache of their own: no completion loses what it has cached. Does not depend on candidates.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from completion_engine.decoding.loop import Decoding, DecodingSetup
from completion_engine.decoding.reuse import SlotPool
from completion_engine.decoding.sampling import Sampler
from completion_engine.drafting.policy import AcceptanceTable
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Cancellation, CompletionStats
from completion_engine.target_model.kv_cache import KVCache, num_common
from completion_engine.target_model.language_model import LanguageModel

_MAX_TREE_ROWS = 64  # rows of one pass; longer texts are scored one after the other
_NUM_SLOTS = 3  # prompts whose keys and values are kept
_MAX_READ_AGAIN = 128  # tokens; a prompt with more new ones takes another slot


@dataclass(frozen=True, slots=True)
class Branches:
    """Two texts as tokens: their common beginning, and the rest of each, which is not empty."""

    shared: tuple[int, ...]
    old: tuple[int, ...]
    new: tuple[int, ...]

    @classmethod
    def of(cls, old: Sequence[int], new: Sequence[int]) -> Branches:
        """Divide two token sequences where they part. ValueError where one is the beginning of the other."""
        num_shared = num_common(old, new)
        if num_shared == min(len(old), len(new)):
            raise ValueError("one text is the beginning of the other")
        return cls(tuple(old[:num_shared]), tuple(old[num_shared:]), tuple(new[num_shared:]))

    @property
    def num_rows(self) -> int:
        """Rows of the tree, the prompt's last token included; a branch's last token needs none."""
        return len(self.shared) + len(self.old) + len(self.new) - 1


class BranchScorer:
    """Scores two texts after a prompt. Used on the engine's thread.

    `num_forwards` counts the passes after prompts, `num_read` the tokens of prompts that were not cached, and
    `read_s` the seconds that they took.
    """

    def __init__(self, target: LanguageModel, tokenizer: Tokenizer) -> None:
        self._target, self._tokenizer = target, tokenizer
        self._num_tokens = tokenizer.num_tokens
        self._slots = SlotPool(target.cache_shape, _NUM_SLOTS, _MAX_READ_AGAIN)
        self.num_forwards = self.num_read = 0
        self.read_s = 0.0

    def forget(self) -> None:
        """Release the caches, and what they hold of documents."""
        self._slots.clear()

    @property
    def num_cache_bytes(self) -> int:
        """Memory of the cache when it is full."""
        return self._slots.num_bytes

    def log_odds(
        self, prompt: Sequence[int], branches: Branches, cancellation: Cancellation, *, as_tree: bool = True
    ) -> float:
        """Return log p(new) - log p(old) after `prompt`; the same number whether or not `as_tree`.

        Raises CancelledError before the next pass once the work is cancelled.
        """
        cache = self._prefilled(tuple(prompt), cancellation)
        last = prompt[-1]
        is_small = branches.num_rows <= _MAX_TREE_ROWS
        if as_tree and is_small and self._target.max_branches > 1:
            return self._in_a_tree(last, branches, cache)
        old, new = (
            self._in_a_chain(last, (*branches.shared, *rest), len(rest), cache, cancellation)
            for rest in (branches.old, branches.new)
        )
        return new - old

    def _prefilled(self, prompt: tuple[int, ...], cancellation: Cancellation) -> KVCache:
        """Return the cache with all of the prompt but its last token."""
        begin_s = time.perf_counter()
        self.num_read += self._slots.num_missing(prompt)
        slot = self._slots.acquire("", prompt)
        setup = DecodingSetup(self._target, Sampler(self._num_tokens), (), AcceptanceTable())
        written = Written(self._tokenizer, b"")
        decoding = Decoding(setup, slot, Prompt(prompt, b""), written, CompletionStats())
        cancellation.check()
        while decoding.prepare():
            cancellation.check()
        self.read_s += time.perf_counter() - begin_s
        return slot.cache

    def _in_a_tree(self, last: int, branches: Branches, cache: KVCache) -> float:
        trunk = (last, *branches.shared, *branches.old[:-1])
        parting = len(branches.shared)  # the row after which the texts part
        second = branches.new[:-1]
        parents = [*range(-1, len(trunk) - 1)]
        if second:
            parents += [parting, *range(len(trunk), len(trunk) + len(second) - 1)]
        num_logits = len(trunk) + len(second) - parting
        logits = self._target.forward((*trunk, *second), cache, num_logits, parents)
        self.num_forwards += 1
        num_old = len(branches.old)
        old = self._log_probability(logits[:num_old], branches.old)
        new = self._log_probability(torch.cat([logits[:1], logits[num_old:]]), branches.new)
        return new - old

    def _in_a_chain(
        self, last: int, text: tuple[int, ...], num_scored: int, cache: KVCache, cancellation: Cancellation
    ) -> float:
        """Return the log probability of the last `num_scored` tokens of `text`; the cache stays as it was."""
        rows, begun = (last, *text[:-1]), cache.num_cached
        width = self._target.chunks.max_pending
        found: list[Tensor] = []
        for start in range(0, len(rows), width):
            cancellation.check()
            chunk = rows[start : start + width]
            found.append(self._target.forward(chunk, cache, len(chunk)))
            cache.keep(chunk)
            self.num_forwards += 1
        cache.rewind(begun)
        return self._log_probability(torch.cat(found)[-num_scored:], text[-num_scored:])

    def _log_probability(self, logits: Tensor, tokens: Sequence[int]) -> float:
        """Return the sum of the tokens' log probabilities, each computed from its own row alone."""
        total = 0.0
        for row, token in zip(logits, tokens, strict=True):
            numbers = row[: self._num_tokens].float()
            total += float(numbers[token] - torch.logsumexp(numbers, 0))
        return total
