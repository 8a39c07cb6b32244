"""Sorts the positions of a token array by the tokens before them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]

MAX_CONTEXT = 32
_KEY_BITS = 64
_DENSE_FROM = 1 << 17
_RANGE_KEYS = 1 << 19
_SAMPLES_PER_CUT = 32


def never_stop() -> None:
    """A checkpoint that never stops."""


def sort_contexts(reversed_tokens: IntArray, checkpoint: Callable[[], None] = never_stop) -> IntArray:
    """Sort the positions `r` of `reversed_tokens` [n] by `reversed_tokens[r:r + MAX_CONTEXT]`.

    The array holds text backwards: the tokens after `r` in the array are those before it in the text, and `r
    - 1` is its continuation. Only positions are returned where neither the token nor its continuation is the
    boundary 0. The order of contexts that differ only beyond a boundary is unspecified.

    Prefix doubling (Manber and Myers 1993): the first sort compares as many tokens as fit in one machine
    word. Then each round doubles the compared width for the positions that still have equal ranks.

    `checkpoint` is called between passes over the array and may raise. No single call sorts the whole array.
    """
    num_tokens = len(reversed_tokens)
    if num_tokens >= 1 << 31:
        raise ValueError(f"a segment holds at most {(1 << 31) - 1} tokens, not {num_tokens}")
    checkpoint()
    keys, width = _packed_keys(reversed_tokens)
    checkpoint()
    order = _order_of(keys, checkpoint)
    checkpoint()
    group_start = _group_starts(keys[order])
    del keys
    rank = np.empty(num_tokens, dtype=np.int32)
    rank[order] = group_start
    slots = _shared(group_start)
    while width < MAX_CONTEXT and len(slots):
        checkpoint()
        slots = _double(order, rank, slots, width, checkpoint)
        width *= 2
    follows = np.empty(num_tokens, dtype=bool)
    follows[:1] = False
    follows[1:] = (reversed_tokens[1:] != 0) & (reversed_tokens[:-1] != 0)
    return order[follows[order]]


def _order_of(keys: npt.NDArray[np.uint64], checkpoint: Callable[[], None]) -> IntArray:
    """Return the order that sorts `keys` [n]; ranges between some keys are sorted in one call each."""
    if len(keys) <= _RANGE_KEYS:
        return np.argsort(keys).astype(np.int32)
    num_cuts = len(keys) // _RANGE_KEYS
    sample = np.sort(keys[:: max(1, len(keys) // (_SAMPLES_PER_CUT * num_cuts))])
    cuts = np.unique(sample[_SAMPLES_PER_CUT // 2 :: _SAMPLES_PER_CUT])
    pieces: list[list[IntArray]] = [[] for _ in range(2 * len(cuts) + 1)]
    for start in range(0, len(keys), _RANGE_KEYS):
        checkpoint()
        part = keys[start : start + _RANGE_KEYS]
        # Odd ranges hold one key only, so a key that fills the array needs no sorting.
        ranges = np.searchsorted(cuts, part, "left") + np.searchsorted(cuts, part, "right")
        by_range = np.argsort(ranges.astype(np.uint16), kind="stable").astype(np.int32)
        ends = np.cumsum(np.bincount(ranges, minlength=len(pieces)))
        by_range += np.int32(start)
        for piece, places in zip(pieces, np.split(by_range, ends[:-1]), strict=True):
            piece.append(places)
    order = np.empty(len(keys), dtype=np.int32)
    at = 0
    for number, piece in enumerate(pieces):
        checkpoint()
        places = np.concatenate(piece)
        piece.clear()
        order[at : at + len(places)] = places if number % 2 else places[np.argsort(keys[places])]
        at += len(places)
    return order


def _packed_keys(tokens: IntArray) -> tuple[npt.NDArray[np.uint64], int]:
    """Return one word per position that orders it by its first `width` tokens, and `width`."""
    highest = int(tokens.max(initial=0))
    dense = tokens
    if len(tokens) >= _DENSE_FROM:
        is_used = np.zeros(highest + 1, dtype=bool)
        is_used[tokens] = True
        names = np.cumsum(is_used, dtype=np.int32) - np.int32(1)
        dense, highest = names[tokens], int(names[-1])
    bits = max(1, highest.bit_length())
    width = min(_KEY_BITS // bits, MAX_CONTEXT)
    keys = dense.astype(np.uint64)
    for ahead in range(1, width):
        keys <<= np.uint64(bits)
        keys[:-ahead] |= dense[ahead:].astype(np.uint64)
    return keys, width


def _double(
    order: IntArray, rank: IntArray, slots: IntArray, width: int, checkpoint: Callable[[], None]
) -> IntArray:
    """Sort the positions at `slots` of `order` by `2 * width` tokens; return the slots still equal."""
    positions = order[slots]
    ahead = np.minimum(positions.astype(np.int64) + width, len(rank) - 1)
    keys = (rank[positions].astype(np.uint64) << np.uint64(32)) | rank[ahead].astype(np.uint64)
    local = _order_of(keys, checkpoint)
    positions = positions[local]
    order[slots] = positions
    local_start = _group_starts(keys[local])
    rank[positions] = slots[local_start]
    return slots[_shared(local_start)]


def _group_starts(sorted_keys: npt.NDArray[np.uint64]) -> IntArray:
    """Return for each slot of a sorted array the first slot with the same key."""
    starts = np.zeros(len(sorted_keys), dtype=np.int32)
    changes = np.flatnonzero(sorted_keys[1:] != sorted_keys[:-1]).astype(np.int32) + np.int32(1)
    starts[changes] = changes
    np.maximum.accumulate(starts, out=starts)
    return starts


def _shared(group_start: IntArray) -> IntArray:
    """Return the slots whose key occurs more than once."""
    slots = np.arange(len(group_start), dtype=np.int32)
    is_alone = group_start == slots
    is_alone[:-1] &= is_alone[1:]
    shared: IntArray = slots[~is_alone]
    return shared
