"""Kernels on attention's heads: turning them, laying them out for its products, and the softmax.

Arrays of numbers are float32 or bf16 (see `language`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from completion_engine.cpu.language import (
    Array,
    exponential,
    highest_rank,
    inlined,
    kernel,
    narrowed,
    number_of,
    widened,
)
from completion_engine.cpu.rows import norm_factor

_F32 = np.float32


@kernel
def norm_heads(heads: Array, first: int, end: int, weight: Array, eps: float) -> None:
    """The root mean square norm of some heads, in place; heads [num_rows, num_heads, head_size]."""
    for row in range(heads.shape[0]):
        for head in range(first, end):
            numbers = heads[row, head]
            factor = norm_factor(numbers, eps)
            for at in range(numbers.shape[0]):
                numbers[at] = narrowed(widened(numbers[at]) * factor * widened(weight[at]), heads)


@kernel
def split_heads(
    heads: Array, cos: Array, signed_sin: Array, positions: Array, q: Array, k: Array, v: Array
) -> None:
    """Queries and keys turned by their rows' positions, and values.

    heads [num_rows, num_heads + 2 * num_kv_heads, head_size]; cos and signed_sin [num_positions, head_size];
    q [num_rows, num_heads, head_size]; k, v [num_kv_heads, num_rows, head_size].
    """
    num_heads, num_kv = q.shape[1], k.shape[0]
    for row in range(heads.shape[0]):
        turn, sin = cos[positions[row]], signed_sin[positions[row]]
        for head in range(num_heads):
            _turn(heads[row, head], turn, sin, q[row, head])
        for head in range(num_kv):
            _turn(heads[row, num_heads + head], turn, sin, k[head, row])
            for at in range(v.shape[2]):
                v[head, row, at] = heads[row, num_heads + num_kv + head, at]


@kernel
def place(k: Array, v: Array, path: Array, keys: Array, values: Array, start: int) -> None:
    """Write the rows `path` of k, v [num_kv_heads, num_rows, head_size] to a cache from `start` on.

    keys and values are [num_kv_heads, capacity, head_size].
    """
    for head in range(k.shape[0]):
        for number in range(k.shape[2]):  # keys lie in memory by channel
            for at in range(path.shape[0]):
                keys[head, start + at, number] = k[head, path[at], number]
        for at in range(path.shape[0]):
            for number in range(v.shape[2]):
                values[head, start + at, number] = v[head, path[at], number]


@kernel
def fold(q: Array, near: Array, scale: float, folded: Array, scores: Array) -> None:
    """Queries laid out for the product with the keys, and where their scores begin.

    q [num_rows, num_heads, head_size]; folded [num_kv_heads, num_groups * num_rows, head_size]. `near`
    [num_kv_heads, num_rows or 1, head_size] has for each row a key like those which matter to it; scores
    [num_kv_heads, num_groups * num_rows, num_keys] are filled with what makes its score zero. This changes
    no softmax, but what matters is then small, and loses little when it is rounded.
    """
    num_rows, num_groups = q.shape[0], q.shape[1] // folded.shape[0]
    for head in range(folded.shape[0]):
        for at in range(folded.shape[1]):
            row = at % num_rows
            query = q[row, head * num_groups + at // num_rows]
            key = near[head, min(row, near.shape[1] - 1)]
            score = _F32(0)
            for number in range(folded.shape[2]):
                folded[head, at, number] = query[number]
                score += widened(query[number]) * widened(key[number])
            beginning = narrowed(-_F32(scale) * score, scores)
            for number in range(scores.shape[2]):
                scores[head, at, number] = beginning


@kernel
def softmax(scores: Array, num_seen: Array) -> None:
    """The softmax in place of the first `num_seen[row]` scores of each row; the others become zero.

    scores [num_kv_heads, num_groups * num_rows, num_keys]; num_seen [num_rows].
    """
    num_rows = num_seen.shape[0]
    shares = np.empty(scores.shape[2], np.float32)
    for head in range(scores.shape[0]):
        for at in range(scores.shape[1]):
            row, end = scores[head, at], num_seen[at % num_rows]
            highest = number_of(highest_rank(row[:end]))
            total = _F32(0)
            for key in range(end):
                share = exponential(widened(row[key]) - highest)
                shares[key] = share
                total += share
            factor = _F32(1) / total
            for key in range(end):
                row[key] = narrowed(shares[key] * factor, scores)
            hidden = row[end:]
            for key in range(hidden.shape[0]):
                hidden[key] = narrowed(_F32(0), scores)


@kernel
def unfold(folded: Array, heads: Array) -> None:
    """folded [num_kv_heads, num_groups * num_rows, head_size] as heads [num_rows, num_heads, head_size]."""
    num_rows, num_groups = heads.shape[0], heads.shape[1] // folded.shape[0]
    for row in range(num_rows):
        for head in range(heads.shape[1]):
            at = head % num_groups * num_rows + row
            for number in range(heads.shape[2]):
                heads[row, head, number] = folded[head // num_groups, at, number]


@inlined
def _turn(numbers: Any, cos: Any, signed_sin: Any, turned: Any) -> None:
    half = numbers.shape[0] // 2
    for at in range(half):
        low, high = widened(numbers[at]), widened(numbers[half + at])
        turned[at] = narrowed(low * widened(cos[at]) + high * widened(signed_sin[at]), turned)
        turned[half + at] = narrowed(
            high * widened(cos[half + at]) + low * widened(signed_sin[half + at]), turned
        )
