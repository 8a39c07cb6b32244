"""Rows in bytes, as products take them, and the steps that fill them: from norms, gates and plain numbers."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray  # type: ignore[attr-defined]  # numba does not say what it exports
from torch import Tensor

from completion_engine.cpu import rows
from completion_engine.cpu.language import Array, Floats, SharedKernel, kernel
from completion_engine.cpu.packing import BLOCK, ROW_BYTES
from completion_engine.cpu.program import COUNTER, Step, bits_of, task_of
from completion_engine.cpu.vectors import bf16_at, byte_at, claim, float_at, int64_at

GROUPS = (1, 2, 4, 8, 16)  # rows that are multiplied at once
SHARED_FROM = 5  # rows; fewer are done before another thread has woken
_I32 = np.int32


class Groups(NamedTuple):
    """How rows are divided; `shape` says it to a kernel."""

    size: int
    number: int
    last_size: int
    num_held: int
    shape: Array
    shape_address: int


@cache
def groups_of(num_rows: int, num_blocks: int) -> Groups:
    """Groups of one size, and a last one that may be smaller."""
    size = _group_for(num_rows)
    number = -(-num_rows // size)
    num_before = (number - 1) * size
    last_size = _group_for(num_rows - num_before)
    shape = np.array([num_blocks, size, num_before, last_size])
    return Groups(size, number, last_size, num_before + last_size, shape, shape.ctypes.data)


def _group_for(num_rows: int) -> int:
    return next((size for size in GROUPS if num_rows <= size), GROUPS[-1])


class RoundedRows:
    """Rows in bytes by blocks of inputs, in groups that are multiplied at once; the last one may be smaller.

    A group holds for each block the levels of all its rows [group_size, BLOCK] int8, then for each row the
    float32 that a level stands for, what its levels add up to times minus each of `ZERO_LEVELS` as int32, and
    the sum times the first as float32. Rows that fill up the last group are
    zeros: other numbers might be so small that they slow the product.
    """

    def __init__(self, num_rows: int, num_inputs: int) -> None:
        """To be filled by one of the steps below."""
        self.num_rows, self.num_inputs = num_rows, num_inputs
        num_blocks = -(-num_inputs // BLOCK)
        self.groups = groups_of(num_rows, num_blocks)
        make = torch.empty if self.groups.num_held == num_rows else torch.zeros
        self._memory = make(self.groups.num_held * num_blocks * ROW_BYTES, dtype=torch.uint8)
        self.address = self._memory.data_ptr()

    @property
    def parts(self) -> tuple[Array, Array]:
        """What a kernel fills, as bytes, and how it is divided.

        That is the number of blocks, the size of a group, how many rows are before the last, and its size.
        """
        return self._memory.numpy(), self.groups.shape

    @property
    def place(self) -> tuple[int, int, int, int]:
        """`parts` as a task has it."""
        return self.address, self._memory.nbytes, self.groups.shape_address, len(self.groups.shape)

    def filled_by(self, by: SharedKernel, *said: int, held: tuple[Any, ...]) -> Step:
        """A step that is told how many rows there are, `said`, and where they go."""
        task = task_of(self.num_rows, *said, *self.place)
        return Step(by, task, (self, *held), is_shared=self.num_rows >= SHARED_FROM)


def of_norm(x: Tensor, added: Tensor, weight: Floats, eps: float, found: RoundedRows) -> Step:
    """`x += added`, and the root mean square norm of that times weight, rounded.

    x [num_rows, hidden_size] and added, whose rows may be longer, are float32; weight [hidden_size].
    """
    sizes = x.shape[1], added.shape[1]
    said = *sizes, x.data_ptr(), added.data_ptr(), weight.ctypes.data, bits_of(eps)
    return found.filled_by(_norm, *said, held=(x, added, weight))


def of_gate(gate_up: Tensor, num_outputs: int, found: RoundedRows) -> Step:
    """`silu(gate) * up`, rounded; gate_up [num_rows, at least 2 * num_outputs] is float32."""
    return found.filled_by(_gate, num_outputs, gate_up.shape[1], gate_up.data_ptr(), held=(gate_up,))


def of_numbers(x: Tensor, found: RoundedRows) -> Step:
    """x [num_rows, num_inputs], float32 or bf16, rounded."""
    by = _round_bf16 if x.dtype == torch.bfloat16 else _round_float
    return found.filled_by(by, x.shape[1], x.data_ptr(), held=(x,))


@SharedKernel
def _norm(task: Any) -> None:
    x, added = carray(float_at(task[4]), (task[1], task[2])), carray(float_at(task[5]), (task[1], task[3]))
    weight, eps = carray(float_at(task[6]), task[2]), _I32(task[7]).view(np.float32)
    memory, shape = carray(byte_at(task[8]), task[9]), carray(int64_at(task[10]), task[11])
    row = claim(task, COUNTER, 1)
    while row < task[1]:
        rows.add_norm_levels(x, added, weight, eps, row, memory, shape)
        row = claim(task, COUNTER, 1)


@SharedKernel
def _gate(task: Any) -> None:
    gate_up = carray(float_at(task[4]), (task[1], task[3]))
    memory, shape = carray(byte_at(task[5]), task[6]), carray(int64_at(task[7]), task[8])
    row = claim(task, COUNTER, 1)
    while row < task[1]:
        rows.gate_levels(gate_up, task[2], row, memory, shape)
        row = claim(task, COUNTER, 1)


@kernel
def _round_rows(task: Any, x: Array) -> None:
    """Take rows until none are left; `task` is what `of_numbers` put there."""
    memory, shape = carray(byte_at(task[4]), task[5]), carray(int64_at(task[6]), task[7])
    row = claim(task, COUNTER, 1)
    while row < task[1]:
        rows.levels(x, row, memory, shape)
        row = claim(task, COUNTER, 1)


@SharedKernel
def _round_bf16(task: Any) -> None:
    _round_rows(task, carray(bf16_at(task[3]), (task[1], task[2])))


@SharedKernel
def _round_float(task: Any) -> None:
    _round_rows(task, carray(float_at(task[3]), (task[1], task[2])))
