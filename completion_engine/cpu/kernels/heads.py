"""Kernels on attention's heads: norms, turning them, and writing them to a cache.

Arrays of numbers are float32 or bf16 (see `language`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import carray  # type: ignore[attr-defined]  # numba does not say what it exports
from torch import Tensor

from completion_engine.cpu.kernels.language import (
    COUNTER,
    Array,
    Floats,
    SharedKernel,
    bits_of,
    for_types,
    fused,
    inlined,
    kernel,
    narrowed,
    places,
    task_of,
    widened,
)
from completion_engine.cpu.kernels.program import (
    BRANCH,
    BRANCH_SIZE,
    FIRST_BRANCH,
    NUM_BRANCHES,
    BranchTable,
    Step,
)
from completion_engine.cpu.kernels.rounded import SHARED_FROM
from completion_engine.cpu.kernels.rows import norm_factor
from completion_engine.cpu.kernels.vectors import claim, float_at, int64_at, numbers_at

_I32 = np.int32


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
        turned[at] = narrowed(fused(low, widened(cos[at]), high * widened(signed_sin[at])), turned)
        turned[half + at] = narrowed(
            fused(high, widened(cos[half + at]), low * widened(signed_sin[half + at])), turned
        )


class Heads(NamedTuple):
    """The outputs of `split_step`, and the angles [num_positions, head_size] of its rotation, of one type.

    `positions` [num_rows] int64 are the rows' positions in the text.
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


class SplitTask(NamedTuple):
    """The arguments of `_split_rows`: sizes, and addresses of `qkv` and of the arrays in `Heads` and
    `HeadNorms`.

    Norms are 0 where there are none.
    """

    num_rows: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    qkv_width: int
    num_positions: int
    qkv: int
    q: int
    k: int
    v: int
    cos: int
    signed_sin: int
    positions: int
    q_norm: int
    k_norm: int
    eps_bits: int


class PlaceTask(NamedTuple):
    """The arguments of `place` for all branches: `table`, `k` and `v` are addresses, offsets count bytes.

    Room is that of one head in a cache, in positions.
    """

    table: int
    num_kv_heads: int
    num_rows: int
    head_size: int
    keys_room: int
    values_room: int
    keys_offset: int
    values_offset: int
    k: int
    v: int


_SPLIT, _PLACE = places(SplitTask), places(PlaceTask)


def split_step(qkv: Tensor, into: Heads, norms: HeadNorms | None, eps: float) -> Step:
    """Split qkv [at least num_rows, at least as wide as all heads] float32: queries and keys normed and
    turned by their rows' positions, and values.
    """
    num_rows, num_heads, head_size = into.q.shape
    task = SplitTask(
        num_rows=num_rows,
        num_heads=num_heads,
        num_kv_heads=len(into.k),
        head_size=head_size,
        qkv_width=qkv.shape[1],
        num_positions=len(into.cos),
        qkv=qkv.data_ptr(),
        q=into.q.data_ptr(),
        k=into.k.data_ptr(),
        v=into.v.data_ptr(),
        cos=into.cos.data_ptr(),
        signed_sin=into.signed_sin.data_ptr(),
        positions=into.positions.data_ptr(),
        q_norm=0 if norms is None else norms.q.ctypes.data,
        k_norm=0 if norms is None else norms.k.ctypes.data,
        eps_bits=bits_of(eps),
    )
    return Step(
        _SPLIT_KERNELS[into.q.dtype], task_of(task), (qkv, into, norms), is_shared=num_rows >= SHARED_FROM
    )


def place_step(table: BranchTable, heads: Heads, room: tuple[int, int], offsets: tuple[int, int]) -> Step:
    """`place` in all branches, at these byte offsets from the addresses in the table.

    `room` holds the number of positions per head, for keys and for values.
    """
    num_kv_heads, num_rows, head_size = heads.k.shape
    task = PlaceTask(
        table=table.address,
        num_kv_heads=num_kv_heads,
        num_rows=num_rows,
        head_size=head_size,
        keys_room=room[0],
        values_room=room[1],
        keys_offset=offsets[0],
        values_offset=offsets[1],
        k=heads.k.data_ptr(),
        v=heads.v.data_ptr(),
    )
    return Step(_PLACE_KERNELS[heads.k.dtype], task_of(task), (table, heads), is_shared=False)


def _split_kernel(number_bytes: int) -> SharedKernel:
    def split(task: Any) -> None:
        num_rows, num_heads, num_kv = task[_SPLIT.num_rows], task[_SPLIT.num_heads], task[_SPLIT.num_kv_heads]
        size, eps = task[_SPLIT.head_size], _I32(task[_SPLIT.eps_bits]).view(np.float32)
        kv, angles = (num_kv, num_rows, size), (task[_SPLIT.num_positions], size)
        q = carray(numbers_at(number_bytes, task[_SPLIT.q]), (num_rows, num_heads, size))
        k = carray(numbers_at(number_bytes, task[_SPLIT.k]), kv)
        v = carray(numbers_at(number_bytes, task[_SPLIT.v]), kv)
        cos = carray(numbers_at(number_bytes, task[_SPLIT.cos]), angles)
        signed_sin = carray(numbers_at(number_bytes, task[_SPLIT.signed_sin]), angles)
        positions = carray(int64_at(task[_SPLIT.positions]), num_rows)
        row = claim(task, COUNTER, 1)
        while row < num_rows:
            start = task[_SPLIT.qkv] + 4 * row * task[_SPLIT.qkv_width]
            heads = carray(float_at(start), (num_heads + 2 * num_kv, size))
            if task[_SPLIT.q_norm]:
                _norm_heads(heads, 0, num_heads, carray(float_at(task[_SPLIT.q_norm]), size), eps)
                k_norm = carray(float_at(task[_SPLIT.k_norm]), size)
                _norm_heads(heads, num_heads, num_heads + num_kv, k_norm, eps)
            _split(heads, cos[positions[row]], signed_sin[positions[row]], row, q, k, v)
            row = claim(task, COUNTER, 1)

    return SharedKernel(split)


def _place_kernel(number_bytes: int) -> SharedKernel:
    def place_in_branches(task: Any) -> None:
        num_kv, num_rows, size = task[_PLACE.num_kv_heads], task[_PLACE.num_rows], task[_PLACE.head_size]
        k = carray(numbers_at(number_bytes, task[_PLACE.k]), (num_kv, num_rows, size))
        v = carray(numbers_at(number_bytes, task[_PLACE.v]), (num_kv, num_rows, size))
        table = carray(int64_at(task[_PLACE.table]), FIRST_BRANCH + num_rows * BRANCH_SIZE)
        end = FIRST_BRANCH + table[NUM_BRANCHES] * BRANCH_SIZE
        for branch in range(FIRST_BRANCH, end, BRANCH_SIZE):
            keys_at = table[branch + BRANCH.keys] + task[_PLACE.keys_offset]
            values_at = table[branch + BRANCH.values] + task[_PLACE.values_offset]
            keys = carray(numbers_at(number_bytes, keys_at), (num_kv, size, task[_PLACE.keys_room]))
            values = carray(numbers_at(number_bytes, values_at), (num_kv, task[_PLACE.values_room], size))
            path = carray(int64_at(table[branch + BRANCH.path]), table[branch + BRANCH.num_path])
            place(k, v, path, keys, values, table[branch + BRANCH.start])

    return SharedKernel(place_in_branches)


_SPLIT_KERNELS, _PLACE_KERNELS = for_types(_split_kernel), for_types(_place_kernel)
