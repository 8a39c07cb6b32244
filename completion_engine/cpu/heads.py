"""Kernels on attention's heads: norms, turning them, and writing them to a cache.

Arrays of numbers are float32 or bf16 (see `language`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from completion_engine.cpu.language import (
    Array,
    inlined,
    kernel,
    narrowed,
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
                v[head, row, at] = narrowed(widened(heads[row, num_heads + num_kv + head, at]), v)


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


@inlined
def _turn(numbers: Any, cos: Any, signed_sin: Any, turned: Any) -> None:
    half = numbers.shape[0] // 2
    for at in range(half):
        low, high = widened(numbers[at]), widened(numbers[half + at])
        turned[at] = narrowed(low * widened(cos[at]) + high * widened(signed_sin[at]), turned)
        turned[half + at] = narrowed(
            high * widened(cos[half + at]) + low * widened(signed_sin[half + at]), turned
        )
