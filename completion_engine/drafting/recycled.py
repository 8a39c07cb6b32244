"""Drafts from the target's own earlier logits: the likeliest tokens that it gave after the same tokens.

Token Recycling (Luo et al. 2024, "Turning Trash into Treasure"). The paper looks candidates up by the last
token. Here the key is the longest known run of up to `_MAX_KEY` last tokens, and the target's probabilities
are stored with the candidates.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
from torch import Tensor

from completion_engine.cpu.kernels.language import array_of
from completion_engine.cpu.kernels.top_k import best_few
from completion_engine.drafting.drafts import Allowed, Draft, DrafterWithMemory, DraftScope, DraftToken, Pass
from completion_engine.target_model.kv_cache import KVCache

NUM_SUCCESSORS = 8
_MAX_KEY = 3
_MAX_ENTRIES = 32_768  # 9 MB: most rows have one or two successors above `_MIN_PROBABILITY`
_MAX_TABLES = 4  # scopes that are remembered
_MAX_NODES = 24
_MIN_PROBABILITY = 0.01
_MIN_PATH_PROBABILITY = 0.003
_TRUST = (
    0.0,
    0.35,
    0.7,
    0.85,
)  # probability that stored logits fit here, by the number of matching tokens before

Successors = tuple[tuple[int, float], ...]
Key = tuple[int, ...]


class RecycledDrafter(DrafterWithMemory):
    """Stores the likeliest successors of every row that the target ran, of rejected rows too.

    Keys are the last one to `_MAX_KEY` tokens. Newer logits replace older ones, and the least recently stored
    entries are dropped.
    """

    def __init__(self) -> None:
        super().__init__()
        self._tables: OrderedDict[str, OrderedDict[Key, Successors]] = OrderedDict()  # by scope
        self._new: set[Key] = set()  # keys of entries that this completion put
        self.enter(DraftScope("", ""))

    def enter(self, scope: DraftScope) -> None:
        """See `DrafterWithMemory.enter`. Only the `_MAX_TABLES` most recently used tables are kept."""
        self._table = self._tables.setdefault(scope.recent, OrderedDict())
        self._tables.move_to_end(scope.recent)
        while len(self._tables) > _MAX_TABLES:
            self._tables.popitem(last=False)

    def forget(self, document: str) -> None:
        """See `DrafterWithMemory.forget`. A document without a group is a scope under its own name."""
        if (table := self._tables.pop(document, None)) is not None:
            table.clear()  # it may be the entered one, which is still in use

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:
        """See `Drafter.begin`."""
        super().begin(prompt, cache)
        self._new = set()

    def discard(self) -> None:
        """See `DrafterWithMemory.discard`."""
        for key in self._new:
            self._table.pop(key, None)

    def observe(self, done: Pass) -> None:
        """See `Drafter.observe`."""
        before = tuple(self._path[-_MAX_KEY:-1])
        contexts: list[tuple[int, ...]] = []
        for token, parent in zip(done.tokens, done.parents, strict=True):
            above = contexts[parent] if parent >= 0 else before
            contexts.append((*above, token)[-_MAX_KEY:])
        found = successors(done.logits)
        rejected = sorted(set(range(len(contexts))) - set(done.accepted_rows))
        for row in (*rejected, *done.accepted_rows):  # accepted rows last, so that they replace rejected ones
            for length in range(1, len(contexts[row]) + 1):
                key = contexts[row][-length:]
                self._table[key] = found[row]
                self._table.move_to_end(key)
                self._new.add(key)
        while len(self._table) > _MAX_ENTRIES:
            self._table.popitem(last=False)

    def drafts(
        self,
        max_tokens: int,
        allowed: Allowed,
        min_probability: float,  # noqa: ARG002 - steps cost next to nothing
    ) -> list[Draft]:
        """See `Drafter.drafts`. Return the likeliest nodes of the tree of successors, best first."""
        tree: list[DraftToken] = []
        waiting: list[tuple[float, int, int, DraftToken, tuple[int, ...]]] = []
        num_seen = 0

        def branch(context: tuple[int, ...], above: float, parent: int, depth: int) -> None:
            nonlocal num_seen
            length, found = self._lookup(context)
            for token, probability in found:
                path_probability = above * probability * _TRUST[length]
                if path_probability < _MIN_PATH_PROBABILITY or (parent < 0 and not allowed(token)):
                    continue
                guess = DraftToken(token, "recycled", "successors", length, probability, parent)
                heappush(waiting, (-path_probability, num_seen, depth, guess, (*context, token)[-_MAX_KEY:]))
                num_seen += 1

        branch(tuple(self._path[-_MAX_KEY:]), 1.0, -1, 0)
        while waiting and len(tree) < _MAX_NODES:
            negative, _, depth, guess, context = heappop(waiting)
            tree.append(guess)
            if depth + 1 < max_tokens:
                branch(context, -negative, len(tree) - 1, depth + 1)
        return [tuple(tree)] if tree else []

    def _lookup(self, context: tuple[int, ...]) -> tuple[int, Successors]:
        """Return the length of the longest suffix of `context` in the table, and its successors."""
        for length in range(len(context), 0, -1):
            found = self._table.get(context[-length:])
            if found is not None:
                return length, found
        return 0, ()


def successors(logits: Tensor) -> list[Successors]:
    """Return the likeliest tokens after each row of `logits` [num_rows, vocab_size], with probabilities.

    Best first, at most `NUM_SUCCESSORS`, none below `_MIN_PROBABILITY`. The probabilities are approximate.
    """
    num_best = min(NUM_SUCCESSORS, logits.shape[1])
    if logits.device.type == "cpu":
        tokens, probabilities = (
            np.empty((len(logits), num_best), np.int64),
            np.empty((len(logits), num_best), np.float32),
        )
        best_few(array_of(logits), tokens, probabilities)
    else:
        best = logits.float().softmax(-1).topk(num_best)
        tokens, probabilities = best.indices.cpu().numpy(), best.values.cpu().numpy()
    return [
        tuple(pair for pair in zip(*row, strict=True) if pair[1] >= _MIN_PROBABILITY)
        for row in zip(tokens.tolist(), probabilities.tolist(), strict=True)
    ]
