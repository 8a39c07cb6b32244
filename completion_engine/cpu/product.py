"""Products of rows in bytes with packed weights, shared among torch's threads strip by strip.

Sums run in whole numbers within a block of inputs, and block behind block in floats: a row's result is the
same beside any rows and on any number of threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray  # type: ignore[attr-defined]  # numba does not say what it exports

from completion_engine.cpu import team
from completion_engine.cpu.dot import WAYS, ways
from completion_engine.cpu.language import Array, Floats, SharedKernel, inlined
from completion_engine.cpu.packing import BLOCK, RECORDS, ROW_BYTES, STRIP, PackedWeight
from completion_engine.cpu.rows import gate_levels
from completion_engine.cpu.strip import add_up
from completion_engine.cpu.vectors import byte_at, claim, float_at, int64_at

GROUPS = (1, 2, 4, 8, 16)  # rows that are multiplied at once
_TURN_BYTES = 1 << 17  # of weights that a thread takes at a time
_STRIP_BYTES = 4 * STRIP  # of its outputs for a row
_NUM_FIXED, _TASK_SIZE = 6, 12  # what is said of the weight, and then of a call
_NEXT = 11  # the strip that no thread has taken yet


class _Groups(NamedTuple):
    """How rows are divided; `shape` says it to a kernel."""

    size: int
    number: int
    last_size: int
    num_held: int
    shape: Array
    shape_address: int


@cache
def _groups_of(num_rows: int, num_blocks: int) -> _Groups:
    size = _group_for(num_rows)
    number = -(-num_rows // size)
    num_before = (number - 1) * size
    last_size = _group_for(num_rows - num_before)
    shape = np.array([num_blocks, size, num_before, last_size])
    return _Groups(size, number, last_size, num_before + last_size, shape, shape.ctypes.data)


def _group_for(num_rows: int) -> int:
    return next((size for size in GROUPS if num_rows <= size), GROUPS[-1])


class RoundedRows:
    """Rows in bytes by blocks of inputs, in groups that are multiplied at once; the last one may be smaller.

    A group holds for each block the levels of all its rows [group_size, BLOCK] int8, then for each row the
    float32 that a level stands for, what its levels add up to times minus each of `ZERO_LEVELS` as int32, and
    the sum times the first as float32. Rows that fill up the last group are zeros.
    """

    def __init__(self, num_rows: int, num_inputs: int) -> None:
        """To be filled by a kernel of `rows`."""
        self.num_rows = num_rows
        num_blocks = -(-num_inputs // BLOCK)
        self.groups = _groups_of(num_rows, num_blocks)
        make = torch.empty if self.groups.num_held == num_rows else torch.zeros
        self._memory = make(self.groups.num_held * num_blocks * ROW_BYTES, dtype=torch.uint8)
        self.address = self._memory.data_ptr()

    @property
    def parts(self) -> tuple[Array, Array]:
        """What a kernel fills, as bytes, and how it is divided.

        That is the number of blocks, the size of a group, how many rows are before the last, and its size.
        """
        return self._memory.numpy(), self.groups.shape


def round_gated(gate_up: torch.Tensor) -> RoundedRows:
    """`silu(gate) * up`, rounded; gate_up is [num_rows, 2 * num_outputs] float32."""
    gate_up = gate_up.contiguous()
    found = RoundedRows(len(gate_up), gate_up.shape[1] // 2)
    memory, shape = found.parts
    place = found.address, memory.nbytes, found.groups.shape_address, len(shape)
    task = np.array([*gate_up.shape, gate_up.data_ptr(), *place, 0])
    team.run(_round_gated.address, task.ctypes.data)
    return found


@SharedKernel
def _round_gated(task: Any) -> None:
    """Take rows until none are left; `task` is what `round_gated` put there."""
    gate_up = carray(float_at(task[2]), (task[0], task[1]))
    memory, shape = carray(byte_at(task[3]), task[4]), carray(int64_at(task[5]), task[6])
    row = claim(task, 7, 1)
    while row < task[0]:
        gate_levels(gate_up, row, memory, shape)
        row = claim(task, 7, 1)


class Product:
    """Multiplies with one weight. Calls belong to one thread; they use all that torch was given."""

    def __init__(self, weight: PackedWeight, bias: Floats, way: int | None = None) -> None:
        """`bias` has an entry for each output of all strips; `way` is one of `dot.ways`, else the first."""
        num_strips, num_blocks, num_bytes = weight.records.shape
        self._num_outputs, self._width = weight.shape[0], num_strips * STRIP
        self._held = weight, bias  # what the addresses point to
        self._task = np.zeros(_TASK_SIZE, np.int64)
        self._task[:_NUM_FIXED] = (
            weight.records.ctypes.data,
            weight.units.ctypes.data,
            bias.ctypes.data,
            num_strips,
            num_blocks,
            max(1, _TURN_BYTES // (num_blocks * num_bytes)),
        )
        self._address = self._task.ctypes.data
        self._function = _KERNELS[ways()[0] if way is None else way, weight.record.bits]

    def __call__(self, rows: RoundedRows) -> torch.Tensor:
        """`rows @ weight.T + bias`, [num_rows, num_outputs] float32."""
        groups = rows.groups
        outputs = torch.empty(groups.num_held, self._width)
        shape = groups.number, groups.size, groups.last_size
        self._task[_NUM_FIXED:] = rows.address, outputs.data_ptr(), *shape, 0
        team.run(self._function.address, self._address)
        if outputs.shape == (rows.num_rows, self._num_outputs):
            return outputs
        return outputs[: rows.num_rows, : self._num_outputs].contiguous()


@inlined
def _multiply(task: Any, way: Any, bits: Any, num_bytes: Any) -> None:
    """Take strips until none are left; `task` is what `Product` put there."""
    num_strips, num_blocks, turn, num_groups = task[3], task[4], task[5], task[8]
    stride = num_strips * STRIP
    first = claim(task, _NEXT, turn)
    while first < num_strips:
        for strip in range(first, min(first + turn, num_strips)):
            weights = task[0] + strip * num_blocks * num_bytes
            units, bias = task[1] + strip * _STRIP_BYTES, task[2] + strip * _STRIP_BYTES
            for group in range(num_groups):
                rows = task[6] + group * num_blocks * task[9] * ROW_BYTES
                outputs = task[7] + (group * task[9] * num_strips + strip) * _STRIP_BYTES
                size = task[9] if group < num_groups - 1 else task[10]
                if size == 16:
                    add_up(way, bits, 16, weights, rows, units, bias, outputs, stride, num_blocks)
                elif size == 8:
                    add_up(way, bits, 8, weights, rows, units, bias, outputs, stride, num_blocks)
                elif size == 4:
                    add_up(way, bits, 4, weights, rows, units, bias, outputs, stride, num_blocks)
                elif size == 2:
                    add_up(way, bits, 2, weights, rows, units, bias, outputs, stride, num_blocks)
                else:
                    add_up(way, bits, 1, weights, rows, units, bias, outputs, stride, num_blocks)
        first = claim(task, _NEXT, turn)


def _kernel_of(way: int, bits: int) -> SharedKernel:
    num_bytes = RECORDS[bits].num_bytes

    def multiply(task: Any) -> None:
        _multiply(task, way, bits, num_bytes)

    return SharedKernel(multiply)


_KERNELS = {(way, bits): _kernel_of(way, bits) for way in range(len(WAYS)) for bits in RECORDS}
