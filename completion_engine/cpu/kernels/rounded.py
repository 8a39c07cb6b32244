"""Rows of numbers rounded to bytes, as products read them, and the steps of a program that round them.

Owns how such rows lie in memory. `rows` has the arithmetic.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypedDict

import numpy as np
import torch
from numba import carray  # type: ignore[attr-defined]  # numba does not say what it exports
from torch import Tensor

from completion_engine.cpu.kernels import rows
from completion_engine.cpu.kernels.language import (
    COUNTER,
    Array,
    Floats,
    SharedKernel,
    bits_of,
    for_types,
    places,
    task_of,
)
from completion_engine.cpu.kernels.packing import BLOCK, ROW_BYTES
from completion_engine.cpu.kernels.program import Step
from completion_engine.cpu.kernels.vectors import claim, float_at, int64_at, numbers_at

GROUPS = (1, 2, 4, 8, 16)  # rows that are multiplied at once
SHARED_FROM = 5  # rows; fewer are done before another thread has woken
_I32 = np.int32


class Groups(NamedTuple):
    """How rows are divided; `shape` says it to kernels, see `rows.GroupShape`."""

    size: int
    number: int
    last_size: int
    num_held: int
    shape: Array


@cache
def groups_of(num_rows: int, num_blocks: int) -> Groups:
    """Groups of one size, and a last one that may be smaller."""
    size = _group_for(num_rows)
    number = -(-num_rows // size)
    num_before = (number - 1) * size
    last_size = _group_for(num_rows - num_before)
    shape = rows.GroupShape(
        num_blocks=num_blocks, group_size=size, num_before_last=num_before, last_size=last_size
    )
    return Groups(size, number, last_size, num_before + last_size, np.array(shape, np.int64))


def _group_for(num_rows: int) -> int:
    return next((size for size in GROUPS if num_rows <= size), GROUPS[-1])


class RoundedRows:
    """Rows in bytes by blocks of inputs, in groups that are multiplied at once; the last one may be smaller.

    A group holds, for each block, the levels of all its rows [group_size, BLOCK] int8. Then follow, for each
    row: the float32 value of a level, a power of two; the sum of its levels times minus each of
    `ZERO_LEVELS`, as int32; and the sum times the first as float32. Rows that fill up the last group are
    zeros: other numbers might be so small that they slow the product.

    After all groups follow, for each block of each group again, sums by lanes of 16 bits, which AVX2 begins
    with: the sums of the first two levels of all fours, and of the last two, times minus the first of
    `ZERO_LEVELS`, as two int16 for each row.
    """

    def __init__(self, num_rows: int, num_inputs: int) -> None:
        """To be filled by one of the steps below."""
        self.num_rows, self.num_inputs = num_rows, num_inputs
        num_blocks = -(-num_inputs // BLOCK)
        self.groups = groups_of(num_rows, num_blocks)
        make = torch.empty if self.groups.num_held == num_rows else torch.zeros
        self._num_bytes = self.groups.num_held * num_blocks * ROW_BYTES
        num_lane_bytes = self.groups.num_held * num_blocks * rows.LANE_BYTES
        self._memory = make(self._num_bytes + num_lane_bytes, dtype=torch.uint8)
        self.address = self._memory.data_ptr()
        self.lanes_address = self.address + self._num_bytes

    @property
    def parts(self) -> tuple[Array, Array]:
        """Levels and what lies beside them, as bytes, and how they are divided: see `rows.GroupShape`."""
        return self._memory.numpy()[: self._num_bytes], self.groups.shape

    @property
    def fields(self) -> _Fields:
        """`parts` as the tasks below have it."""
        return _Fields(num_rows=self.num_rows, memory=self.address, shape=self.groups.shape.ctypes.data)

    def filled_by(self, kernel: SharedKernel, task: tuple[int, ...], *held: Any) -> Step:
        """A step with one of the tasks below; `held` keeps the memory at the task's addresses."""
        return Step(kernel, task_of(task), (self, *held), is_shared=self.num_rows >= SHARED_FROM)


class _Fields(TypedDict):
    """The last fields of every task below: the destination of rounded rows."""

    num_rows: int
    memory: int
    shape: int


class NormTask(NamedTuple):
    """What `of_norm` tells: sizes, the addresses of its arrays, and where rounded rows go."""

    hidden_size: int
    added_width: int
    x: int
    added: int
    weight: int
    eps_bits: int
    num_rows: int
    memory: int
    shape: int


class GateTask(NamedTuple):
    """What `of_gate` tells: sizes, the address of its array, and where rounded rows go."""

    num_outputs: int
    gate_up_width: int
    gate_up: int
    num_rows: int
    memory: int
    shape: int


class RoundTask(NamedTuple):
    """What `of_numbers` tells: the address of its array, how wide that is, and where rounded rows go."""

    num_inputs: int
    x: int
    num_rows: int
    memory: int
    shape: int


_NORM, _GATE, _ROUND = places(NormTask), places(GateTask), places(RoundTask)


def of_norm(x: Tensor, added: Tensor, weight: Floats, eps: float, found: RoundedRows) -> Step:
    """`x += added`, and the root mean square norm of that times weight, rounded.

    x [num_rows, hidden_size] and added, whose rows may be longer, are float32; weight [hidden_size].
    """
    task = NormTask(
        hidden_size=x.shape[1],
        added_width=added.shape[1],
        x=x.data_ptr(),
        added=added.data_ptr(),
        weight=weight.ctypes.data,
        eps_bits=bits_of(eps),
        **found.fields,
    )
    return found.filled_by(_norm, task, x, added, weight)


def of_gate(gate_up: Tensor, num_outputs: int, found: RoundedRows) -> Step:
    """`silu(gate) * up`, rounded; gate_up [num_rows, at least 2 * num_outputs] is float32."""
    task = GateTask(
        num_outputs=num_outputs,
        gate_up_width=gate_up.shape[1],
        gate_up=gate_up.data_ptr(),
        **found.fields,
    )
    return found.filled_by(_gate, task, gate_up)


def of_numbers(x: Tensor, found: RoundedRows) -> Step:
    """x [num_rows, num_inputs], float32 or bf16, rounded."""
    task = RoundTask(num_inputs=x.shape[1], x=x.data_ptr(), **found.fields)
    return found.filled_by(_ROUND_KERNELS[x.dtype], task, x)


@SharedKernel
def _norm(task: Any) -> None:
    num_rows, size = task[_NORM.num_rows], task[_NORM.hidden_size]
    x = carray(float_at(task[_NORM.x]), (num_rows, size))
    added = carray(float_at(task[_NORM.added]), (num_rows, task[_NORM.added_width]))
    weight = carray(float_at(task[_NORM.weight]), size)
    eps = _I32(task[_NORM.eps_bits]).view(np.float32)
    shape = carray(int64_at(task[_NORM.shape]), rows.SHAPE_SIZE)
    row = claim(task, COUNTER, 1)
    while row < num_rows:
        rows.add_norm_levels(x, added, weight, eps, row, task[_NORM.memory], shape)
        row = claim(task, COUNTER, 1)


@SharedKernel
def _gate(task: Any) -> None:
    num_rows = task[_GATE.num_rows]
    gate_up = carray(float_at(task[_GATE.gate_up]), (num_rows, task[_GATE.gate_up_width]))
    shape = carray(int64_at(task[_GATE.shape]), rows.SHAPE_SIZE)
    row = claim(task, COUNTER, 1)
    while row < num_rows:
        rows.gate_levels(gate_up, task[_GATE.num_outputs], row, task[_GATE.memory], shape)
        row = claim(task, COUNTER, 1)


def _round_kernel(number_bytes: int) -> SharedKernel:
    def round_numbers(task: Any) -> None:
        num_rows = task[_ROUND.num_rows]
        x = carray(numbers_at(number_bytes, task[_ROUND.x]), (num_rows, task[_ROUND.num_inputs]))
        shape = carray(int64_at(task[_ROUND.shape]), rows.SHAPE_SIZE)
        row = claim(task, COUNTER, 1)
        while row < num_rows:
            rows.levels(x, row, task[_ROUND.memory], shape)
            row = claim(task, COUNTER, 1)

    return SharedKernel(round_numbers)


_ROUND_KERNELS = for_types(_round_kernel)
