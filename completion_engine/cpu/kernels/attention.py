"""Attention of some rows to cached keys and values, in float32, shared among threads.

Some queries that read the same keys are a unit of work, so that what is read is used many times. A query's
result is the same beside any others, and does not depend on keys that it does not see: see `query_products`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray  # type: ignore[attr-defined]  # numba does not say what it exports
from torch import Tensor

from completion_engine.cpu.kernels.language import (
    COUNTER,
    Array,
    Floats,
    SharedKernel,
    bits_of,
    exponential,
    for_types,
    highest_rank,
    inlined,
    kernel,
    narrowed,
    number_of,
    places,
    task_of,
    widened,
)
from completion_engine.cpu.kernels.program import (
    BRANCH,
    BRANCH_SIZE,
    FIRST_BRANCH,
    NO_PATH,
    NUM_BRANCHES,
    BranchTable,
    Step,
    TableBranch,
)
from completion_engine.cpu.kernels.query_products import (
    KEYS_AT_ONCE,
    NUM_QUERIES,
    score,
    sum_up,
)
from completion_engine.cpu.kernels.vectors import LANES, claim, int64_at, numbers_at, sum_of

_I32 = np.int32


def serves_heads(head_size: int) -> bool:
    """Whether heads of this size can be read sixteen channels at a time."""
    return head_size % LANES == 0


def can_attend(q: Tensor, keys: Tensor, values: Tensor) -> bool:
    """Whether `attend` can read these; keys lie by channel, with free memory after them."""
    return (
        q.device.type == "cpu"
        and q.dtype in {torch.bfloat16, torch.float32}
        and q.dtype == keys.dtype == values.dtype
        and serves_heads(q.shape[-1])
        and keys.stride(1) == values.stride(2) == 1
        and keys.stride(2) % KEYS_AT_ONCE == 0
    )


class Strides(NamedTuple):
    """Bytes from one head, one channel of keys, and one position of values to the next."""

    key_head: int
    key_channel: int
    value_head: int
    value: int

    @classmethod
    def of(cls, keys: Tensor, values: Tensor) -> Strides:
        """Strides of keys and values [num_kv_heads, num_keys, head_size]."""
        strides = keys.stride(0), keys.stride(2), values.stride(0), values.stride(1)
        return cls(*(stride * keys.element_size() for stride in strides))


class AttentionTask(NamedTuple):
    """The arguments of `_attend`.

    Strides are those of `Strides`, and offsets are bytes from a branch's cache.

    The others are addresses of `BranchTable` and `Queries`, and sizes.
    """

    table: int
    q: int
    found: int
    num_seen: int
    num_rows: int
    num_heads: int
    head_size: int
    num_kv_heads: int
    key_head_stride: int
    key_channel_stride: int
    value_head_stride: int
    value_stride: int
    keys_offset: int
    values_offset: int
    scale_bits: int


_AT = places(AttentionTask)


class Queries(NamedTuple):
    """Queries q [num_rows, num_heads, head_size], what they find, shaped alike, and how it is scaled.

    Each sees the first `num_seen` [num_rows] int64 keys of its branch.
    """

    q: Tensor
    found: Tensor
    num_seen: Tensor
    scale: float


def attend(q: Tensor, keys: Tensor, values: Tensor, num_seen: Tensor, scale: float) -> Tensor:
    """Attention of q [num_rows, num_heads, head_size] to the first `num_seen` [num_rows] keys; shaped as q.

    keys and values are [num_kv_heads, num_keys, head_size].
    """
    q = q.contiguous()
    queries = Queries(q, torch.empty_like(q), num_seen.contiguous(), scale)
    table = BranchTable(1)
    table.fill([TableBranch(0, len(q), keys.data_ptr(), values.data_ptr(), 0, NO_PATH)])
    step_in(table, queries, len(keys), Strides.of(keys, values)).run()
    return queries.found


def step_in(
    table: BranchTable,
    queries: Queries,
    num_kv_heads: int,
    strides: Strides,
    offsets: tuple[int, int] = (0, 0),
) -> Step:
    """Attention in all branches; their keys and values begin at these byte offsets from the addresses in the
    table.
    """
    num_rows, num_heads, head_size = queries.q.shape
    task = AttentionTask(
        table=table.address,
        q=queries.q.data_ptr(),
        found=queries.found.data_ptr(),
        num_seen=queries.num_seen.data_ptr(),
        num_rows=num_rows,
        num_heads=num_heads,
        head_size=head_size,
        num_kv_heads=num_kv_heads,
        key_head_stride=strides.key_head,
        key_channel_stride=strides.key_channel,
        value_head_stride=strides.value_head,
        value_stride=strides.value,
        keys_offset=offsets[0],
        values_offset=offsets[1],
        scale_bits=bits_of(queries.scale),
    )
    return Step(_KERNELS[queries.q.dtype], task_of(task), (table, queries))


@kernel
def _lay_out(
    q: Array, head: int, first: int, number: int, num_seen: Array, scale: Any, queries: Floats
) -> int:
    """Scaled queries of a unit by channel; returns the largest number of keys that they see."""
    num_rows, num_keys = q.shape[0], 0
    for at in range(number):
        row = (first + at) % num_rows
        num_keys = max(num_keys, num_seen[row])
        for channel in range(q.shape[2]):
            queries[channel, at] = widened(q[row, head + (first + at) // num_rows, channel]) * scale
    return num_keys


@kernel
def _exponentiate(scores: Floats, end: int, num_keys: int) -> Any:
    """Make shares of the first `end` scores, zeros of the others; what the shares add up to."""
    highest = number_of(highest_rank(scores[:end]))
    for key in range(end):
        scores[key] = exponential(scores[key] - highest)
    scores[end:num_keys] = 0
    return sum_of(scores[:end])


@inlined
def _num_units(num_groups: Any, num_rows: Any) -> Any:
    return (num_groups * num_rows + NUM_QUERIES - 1) // NUM_QUERIES


@kernel
def _branch_of(unit: int, table: Array, num_groups: int, num_kv: int) -> Any:
    """A unit's branch, as its place in the table, and its number there; 0 after the last one."""
    end = FIRST_BRANCH + table[NUM_BRANCHES] * BRANCH_SIZE
    for branch in range(FIRST_BRANCH, end, BRANCH_SIZE):
        num_units = _num_units(num_groups, table[branch + BRANCH.number]) * num_kv
        if unit < num_units:
            return branch, unit
        unit -= num_units
    return 0, 0


@inlined
def _score(
    size: Any, queries: Any, keys: Any, channel_step: Any, num_keys: Any, scores: Any, number: Any
) -> None:
    """The scores of a unit's first `number` queries for its keys, which have numbers of `size` bytes."""
    num_channels, step = queries.shape[0], 4 * scores.shape[1]
    for key in range(0, num_keys, KEYS_AT_ONCE):
        some, place = keys + size * key, scores.ctypes.data + 4 * key
        score(size, queries.ctypes.data, some, channel_step, num_channels, place, step, number)


@inlined
def _sum_up(
    size: Any, shares: Any, values: Any, value_step: Any, num_keys: Any, summed: Any, number: Any
) -> None:
    """The values of a unit summed up by each query's shares; the rest as above."""
    step, share_step = 4 * summed.shape[1], 4 * shares.shape[1]
    for channel in range(0, summed.shape[1], KEYS_AT_ONCE):
        place, first, column = summed.ctypes.data + 4 * channel, shares.ctypes.data, values + size * channel
        if channel + KEYS_AT_ONCE <= summed.shape[1]:
            sum_up(size, 2, first, share_step, column, value_step, num_keys, place, step, number)
        else:
            sum_up(size, 1, first, share_step, column, value_step, num_keys, place, step, number)


@kernel
def _write(summed: Floats, totals: Floats, first: int, number: int, head: int, found: Array) -> None:
    """Write what a unit summed up, divided by its queries' totals, to rows of `found`, from a head on."""
    for at in range(number):
        row, own_head = (first + at) % found.shape[0], head + (first + at) // found.shape[0]
        for channel in range(found.shape[2]):
            found[row, own_head, channel] = narrowed(summed[at, channel] / totals[at], found)


@inlined
def _attend(task: Any, size: Any, q: Any, found: Any, num_seen: Any, table: Any) -> None:
    """Take units until none are left; `task` is an `AttentionTask`."""
    num_kv, num_channels = task[_AT.num_kv_heads], q.shape[2]
    num_groups = q.shape[1] // num_kv
    width = (num_seen.max() + KEYS_AT_ONCE - 1) // KEYS_AT_ONCE * KEYS_AT_ONCE
    queries = np.zeros((num_channels, NUM_QUERIES), np.float32)
    scores = np.empty((NUM_QUERIES, width), np.float32)
    summed = np.empty((NUM_QUERIES, num_channels), np.float32)
    totals = np.empty(NUM_QUERIES, np.float32)
    scale = _I32(task[_AT.scale_bits]).view(np.float32)
    branch, unit = _branch_of(claim(task, COUNTER, 1), table, num_groups, num_kv)
    while branch:
        num_rows, begin = table[branch + BRANCH.number], table[branch + BRANCH.first]
        num_units = _num_units(num_groups, num_rows)
        head, first = unit // num_units, unit % num_units * NUM_QUERIES
        keys = table[branch + BRANCH.keys] + task[_AT.keys_offset] + head * task[_AT.key_head_stride]
        values = table[branch + BRANCH.values] + task[_AT.values_offset] + head * task[_AT.value_head_stride]
        number = min(NUM_QUERIES, num_groups * num_rows - first)
        own, seen = q[begin : begin + num_rows], num_seen[begin : begin + num_rows]
        num_keys = _lay_out(own, head * num_groups, first, number, seen, scale, queries)
        _score(size, queries, keys, task[_AT.key_channel_stride], num_keys, scores, number)
        for at in range(number):
            totals[at] = _exponentiate(scores[at], seen[(first + at) % num_rows], num_keys)
        _sum_up(size, scores, values, task[_AT.value_stride], num_keys, summed, number)
        _write(summed, totals, first, number, head * num_groups, found[begin : begin + num_rows])
        branch, unit = _branch_of(claim(task, COUNTER, 1), table, num_groups, num_kv)


def _kernel(number_bytes: int) -> SharedKernel:
    def attend_in_branches(task: Any) -> None:
        shape = (task[_AT.num_rows], task[_AT.num_heads], task[_AT.head_size])
        seen = carray(int64_at(task[_AT.num_seen]), task[_AT.num_rows])
        table = carray(int64_at(task[_AT.table]), FIRST_BRANCH + task[_AT.num_rows] * BRANCH_SIZE)
        q = carray(numbers_at(number_bytes, task[_AT.q]), shape)
        found = carray(numbers_at(number_bytes, task[_AT.found]), shape)
        _attend(task, number_bytes, q, found, seen, table)

    return SharedKernel(attend_in_branches)


_KERNELS = for_types(_kernel)
