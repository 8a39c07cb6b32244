"""Kernels on attention's heads: norms, turning them, and writing them to a cache.

Arrays of numbers are float32 or bf16 (see `language`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray  # type: ignore[attr-defined]  # numba does not say what it exports
from torch import Tensor

from completion_engine.cpu.lane_table import (
    KEYS,
    LANE_SIZE,
    PATH,
    PATH_SIZE,
    START,
    VALUES,
    LaneTable,
)
from completion_engine.cpu.language import (
    Array,
    Floats,
    SharedKernel,
    inlined,
    kernel,
    narrowed,
    widened,
)
from completion_engine.cpu.program import COUNTER, Step, bits_of, task_of
from completion_engine.cpu.rounded import SHARED_FROM
from completion_engine.cpu.rows import norm_factor
from completion_engine.cpu.vectors import bf16_at, claim, float_at, int64_at

_I32 = np.int32


@kernel
def norm_heads(heads: Array, first: int, end: int, weight: Array, eps: float) -> None:
    """The root mean square norm of some heads, in place; heads [num_rows, num_heads, head_size]."""
    for row in range(heads.shape[0]):
        _norm_heads(heads[row], first, end, weight, eps)


@kernel
def split_heads(
    heads: Array, cos: Array, signed_sin: Array, positions: Array, q: Array, k: Array, v: Array
) -> None:
    """Queries and keys turned by their rows' positions, and values.

    heads [num_rows, num_heads + 2 * num_kv_heads, head_size]; cos and signed_sin [num_positions, head_size];
    q [num_rows, num_heads, head_size]; k, v [num_kv_heads, num_rows, head_size].
    """
    for row in range(heads.shape[0]):
        _split(heads[row], cos[positions[row]], signed_sin[positions[row]], row, q, k, v)


@kernel
def place(k: Array, v: Array, path: Array, keys: Array, values: Array, start: int) -> None:
    """Write the rows `path` of k, v [num_kv_heads, num_rows, head_size] to a cache from `start` on.

    keys are [num_kv_heads, head_size, room], as they lie, values [num_kv_heads, capacity, head_size].
    """
    for head in range(k.shape[0]):
        for number in range(k.shape[2]):
            for at in range(path.shape[0]):
                keys[head, number, start + at] = k[head, path[at], number]
        for at in range(path.shape[0]):
            for number in range(v.shape[2]):
                values[head, start + at, number] = v[head, path[at], number]


@inlined
def _norm_heads(heads: Any, first: Any, end: Any, weight: Any, eps: Any) -> None:
    for head in range(first, end):
        numbers = heads[head]
        factor = norm_factor(numbers, eps)
        for at in range(numbers.shape[0]):
            numbers[at] = narrowed(widened(numbers[at]) * factor * widened(weight[at]), heads)


@inlined
def _split(heads: Any, cos: Any, signed_sin: Any, row: Any, q: Any, k: Any, v: Any) -> None:
    num_heads, num_kv = q.shape[1], k.shape[0]
    for head in range(num_heads):
        _turn(heads[head], cos, signed_sin, q[row, head])
    for head in range(num_kv):
        _turn(heads[num_heads + head], cos, signed_sin, k[head, row])
        for at in range(v.shape[2]):
            v[head, row, at] = narrowed(widened(heads[num_heads + num_kv + head, at]), v)


@inlined
def _turn(numbers: Any, cos: Any, signed_sin: Any, turned: Any) -> None:
    half = numbers.shape[0] // 2
    for at in range(half):
        low, high = widened(numbers[at]), widened(numbers[half + at])
        turned[at] = narrowed(low * widened(cos[at]) + high * widened(signed_sin[at]), turned)
        turned[half + at] = narrowed(
            high * widened(cos[half + at]) + low * widened(signed_sin[half + at]), turned
        )


class Heads(NamedTuple):
    """What `split_heads` writes, and the angles [num_positions, head_size] that it turns by, of one type.

    `positions` [num_rows] int64 are the rows' places in the text.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    cos: Tensor
    signed_sin: Tensor
    positions: Tensor


class HeadNorms(NamedTuple):
    """Weights [head_size] float32 of the norms of queries and of keys."""

    q: Floats
    k: Floats


def split_step(qkv: Tensor, into: Heads, norms: HeadNorms | None, eps: float) -> Step:
    """`split_heads` of qkv [at least num_rows, at least as wide as all heads] float32, normed before."""
    num_rows, num_heads, head_size = into.q.shape
    weights = (0, 0) if norms is None else (norms.q.ctypes.data, norms.k.ctypes.data)
    places = (tensor.data_ptr() for tensor in into)
    sizes = num_rows, num_heads, len(into.k), head_size, qkv.shape[1], len(into.cos)
    task = task_of(*sizes, qkv.data_ptr(), *places, *weights, bits_of(eps))
    kernel = _split_bf16 if into.q.dtype == torch.bfloat16 else _split_float
    return Step(kernel, task, (qkv, into, norms), is_shared=num_rows >= SHARED_FROM)


def place_step(table: LaneTable, heads: Heads, caches: tuple[int, int], offsets: tuple[int, int]) -> Step:
    """`place` in all lanes, so many bytes behind what the table says.

    `caches` says how many positions a head has room for, of keys and of values.
    """
    num_kv, num_rows, head_size = heads.k.shape
    sizes = num_kv, num_rows, head_size, *caches, *offsets
    task = task_of(table.address, *sizes, heads.k.data_ptr(), heads.v.data_ptr())
    kernel = _place_bf16 if heads.k.dtype == torch.bfloat16 else _place_float
    return Step(kernel, task, (table, heads), is_shared=False)


@kernel
def _split_rows(task: Any, q: Array, k: Array, v: Array, cos: Array, signed_sin: Array) -> None:
    """Take rows until none are left; `task` is what `split_step` put there."""
    num_rows, num_heads, num_kv, size = task[1], task[2], task[3], task[4]
    positions, eps = carray(int64_at(task[13]), num_rows), _I32(task[16]).view(np.float32)
    row = claim(task, COUNTER, 1)
    while row < num_rows:
        heads = carray(float_at(task[7] + 4 * row * task[5]), (num_heads + 2 * num_kv, size))
        if task[14]:
            _norm_heads(heads, 0, num_heads, carray(float_at(task[14]), size), eps)
            _norm_heads(heads, num_heads, num_heads + num_kv, carray(float_at(task[15]), size), eps)
        _split(heads, cos[positions[row]], signed_sin[positions[row]], row, q, k, v)
        row = claim(task, COUNTER, 1)


@SharedKernel
def _split_bf16(task: Any) -> None:
    kv, table = (task[3], task[1], task[4]), (task[6], task[4])
    q = carray(bf16_at(task[8]), (task[1], task[2], task[4]))
    k, v = carray(bf16_at(task[9]), kv), carray(bf16_at(task[10]), kv)
    _split_rows(task, q, k, v, carray(bf16_at(task[11]), table), carray(bf16_at(task[12]), table))


@SharedKernel
def _split_float(task: Any) -> None:
    kv, table = (task[3], task[1], task[4]), (task[6], task[4])
    q = carray(float_at(task[8]), (task[1], task[2], task[4]))
    k, v = carray(float_at(task[9]), kv), carray(float_at(task[10]), kv)
    _split_rows(task, q, k, v, carray(float_at(task[11]), table), carray(float_at(task[12]), table))


@SharedKernel
def _place_bf16(task: Any) -> None:
    kv = (task[2], task[3], task[4])
    k, v = carray(bf16_at(task[9]), kv), carray(bf16_at(task[10]), kv)
    table = carray(int64_at(task[1]), 1 + task[3] * LANE_SIZE)
    for lane in range(1, 1 + table[0] * LANE_SIZE, LANE_SIZE):
        keys = carray(bf16_at(table[lane + KEYS] + task[7]), (task[2], task[4], task[5]))
        values = carray(bf16_at(table[lane + VALUES] + task[8]), (task[2], task[6], task[4]))
        path = carray(int64_at(table[lane + PATH]), table[lane + PATH_SIZE])
        place(k, v, path, keys, values, table[lane + START])


@SharedKernel
def _place_float(task: Any) -> None:
    kv = (task[2], task[3], task[4])
    k, v = carray(float_at(task[9]), kv), carray(float_at(task[10]), kv)
    table = carray(int64_at(task[1]), 1 + task[3] * LANE_SIZE)
    for lane in range(1, 1 + table[0] * LANE_SIZE, LANE_SIZE):
        keys = carray(float_at(table[lane + KEYS] + task[7]), (task[2], task[4], task[5]))
        values = carray(float_at(table[lane + VALUES] + task[8]), (task[2], task[6], task[4]))
        path = carray(int64_at(table[lane + PATH]), table[lane + PATH_SIZE])
        place(k, v, path, keys, values, table[lane + START])
