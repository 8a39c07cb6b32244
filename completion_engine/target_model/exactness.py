"""Finds what the bits of a row depend on by running passes: the proof that drafts cannot change the text.
Defines the one order of tokens: the largest number first, of equal ones the lowest id.

Has no access to drafts, prompts or the model's parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from completion_engine.probability import NUM_RANKED, RankedRow
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.passes import ROWS

if TYPE_CHECKING:  # which is tested while it is made
    from completion_engine.target_model.language_model import LanguageModel

_FAR = 1024  # position after which sums over keys may run in parts
_SMALL = (1, 3, 5, 2, 9)  # rows of passes that have to agree with a large one
_WITHIN_WIDTH = (1, 3, 5, 2, 8, 4, 1)  # rows in use of passes that all run the fixed width
_SIGN = -0x80000000  # the lowest int32


def rows_are_invariant(target: LanguageModel, chunk_rows: int) -> bool:
    """Whether a position has the same bits alone, in a chain and in a chunk of a prompt.

    Tested at the beginning, and after enough keys for sums in several parts. Where it does, the cache holds
    the same bits however it was filled, and a pass may have any width.
    """
    sizes = (*_SMALL, chunk_rows - sum(_SMALL))
    far_sizes = (*_SMALL, 3 * ROWS - sum(_SMALL))
    return _agree(target, 0, (chunk_rows,), sizes) and _agree(target, _far(target), (3 * ROWS,), far_sizes)


def fixed_width_holds(target: LanguageModel, chunk_rows: int) -> bool:
    """Return whether, in passes of one fixed width, a row's result is repeatable and independent.

    It does not depend on the row's place, or on the other rows.

    Asked where rows are not invariant, with passes that all run the fixed width but whole chunks; the same
    one must give the same bits again.
    """
    full = (ROWS,) * (sum(_WITHIN_WIDTH) // ROWS)
    return (
        _agree(target, 0, full, _WITHIN_WIDTH)
        and _agree(target, _far(target), full, _WITHIN_WIDTH)
        and _agree(target, 0, (chunk_rows,), (chunk_rows,))
    )


def branches_are_exact(target: LanguageModel, chunk_rows: int) -> bool:
    """Whether a path gives the same bits in a branch of a tree as in a chain."""
    generator = torch.Generator().manual_seed(1)
    known = torch.randint(0, target.vocab_size, (chunk_rows - 3,), generator=generator).tolist()
    chain, tree = KVCache(target.cache_shape), KVCache(target.cache_shape)
    for cache in (chain, tree):
        target.forward(known, cache, 0)
        cache.keep(known)
    parents = [-1, 0, 1, 2, 3, 1, 5, 6, 0, 8, 9, 10]
    tokens = [row + 1 for row in range(len(parents))]
    logits = target.forward(tokens, tree, len(tokens), parents)
    path = [0, 1, 5, 6, 7]
    kept = [tokens[row] for row in path]
    wanted = target.forward(kept, chain, len(kept))
    target.keep(tree, parents, path, kept)
    chain.keep(kept)
    return hold_same(tree, chain, tree.num_cached) and torch.equal(logits[path], wanted)


def hold_same(cache: KVCache, other: KVCache, end: int) -> bool:
    """Whether keys and values are the same bits up to position `end`."""
    same_keys = torch.equal(cache.keys[:, :, :end], other.keys[:, :, :end])
    return same_keys and torch.equal(cache.values[:, :, :end], other.values[:, :, :end])


def _far(target: LanguageModel) -> int:
    """A position where a pass crosses into sums that run in several parts."""
    return min(_FAR, target.capacity // 2) - ROWS


def _agree(target: LanguageModel, start: int, sizes: Sequence[int], others: Sequence[int]) -> bool:
    """Whether tokens after `start` positions of noise get the same bits in passes of `sizes` and `others`."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, target.vocab_size, (sum(sizes),), generator=generator).tolist()
    caches = KVCache(target.cache_shape), KVCache(target.cache_shape)
    for name in ("keys", "values"):
        stored, copied = (getattr(cache, name) for cache in caches)
        noise = torch.randn(stored[:, :, :start].shape, generator=generator)
        stored[:, :, :start] = copied[:, :, :start] = noise.to(stored)
    found = []
    for cache, cut in zip(caches, (sizes, others), strict=True):
        cache.keep([0] * start)
        logits = []
        for first, end in pairwise(accumulate(cut, initial=0)):
            chunk = tokens[first:end]
            logits.append(target.forward(chunk, cache, len(chunk)))
            cache.keep(chunk)
        found.append(torch.cat(logits))
    return hold_same(*caches, start + len(tokens)) and torch.equal(*found)


def first_largest(numbers: Tensor) -> Tensor:
    """The place [...] of the largest of `numbers` [..., num_tokens], of equal ones the first."""
    return lowest_best(numbers, torch.arange(numbers.shape[-1], device=numbers.device))


def lowest_best(numbers: Tensor, tokens: Tensor) -> Tensor:
    """Return the token of `tokens` [num_tokens], in any order, with the largest of `numbers` [...,
    num_tokens].

    Among equal numbers, the lowest token wins.
    """
    is_best = numbers == numbers.amax(-1, keepdim=True)
    return torch.where(is_best, tokens, tokens.max()).amin(-1)


def rank_rows(logits: Tensor, num_tokens: int) -> list[RankedRow]:
    """Return the likeliest tokens of each row of `logits` [num_rows, vocab_size], by plain torch.

    Only the first `num_tokens` of a row count. The numbers are read from the device at once.
    """
    numbers = logits[:, :num_tokens].float() + 0.0  # -0.0 becomes 0.0, which equals it
    bits = numbers.contiguous().view(torch.int32).long()
    ordered = torch.where(bits < 0, _SIGN - bits, bits)  # ordered as the numbers are
    ids = torch.arange(num_tokens, device=logits.device)
    keys = (ordered << 32) + (num_tokens - 1 - ids)  # no two are equal
    best = keys.topk(min(NUM_RANKED, num_tokens)).indices
    # Row by row, because a library's sum may depend on the number of rows, and a row's bits must not.
    sums = torch.stack([torch.logsumexp(row, 0, keepdim=True) for row in numbers])
    rows = torch.cat([part.double() for part in (best, numbers.gather(1, best), sums)], 1).tolist()
    num_best = best.shape[1]
    return [
        RankedRow(dict(zip(map(int, row[:num_best]), row[num_best:-1], strict=True)), row[-1]) for row in rows
    ]
