"""Products of rows in bytes with packed weights, shared among threads tile by tile.

Sums run in whole numbers within a block of inputs, and block behind block in floats: a row's result is the
same beside any rows and on any number of threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.kernels import matrix_unit
from completion_engine.cpu.kernels.dot import INSTRUCTION_SETS, instruction_sets
from completion_engine.cpu.kernels.language import Floats, SharedKernel, inlined
from completion_engine.cpu.kernels.matrix_unit import add_up as add_up_by_unit
from completion_engine.cpu.kernels.matrix_unit import begin as begin_unit
from completion_engine.cpu.kernels.matrix_unit import end as end_unit
from completion_engine.cpu.kernels.matrix_unit import finish, unpack
from completion_engine.cpu.kernels.packing import RECORDS, ROW_BYTES, TILE_OUTPUTS, PackedWeight
from completion_engine.cpu.kernels.program import Step
from completion_engine.cpu.kernels.rounded import RoundedRows
from completion_engine.cpu.kernels.task import COUNTER, places, task_of
from completion_engine.cpu.kernels.vectors import claim
from completion_engine.cpu.kernels.weight_tile import add_up
from completion_engine.cpu.kernels.x86_dot import MatrixUnit

_TURN_BYTES = 1 << 17  # of weights that a thread takes at a time
_BLOCKS_AT_ONCE, _SIZES, _LINE = matrix_unit.BLOCKS_AT_ONCE, matrix_unit.SIZES, matrix_unit.LINE
_LEVELS_BYTES = _BLOCKS_AT_ONCE * matrix_unit.LEVEL_BYTES
_SUM_BYTES = matrix_unit.SUM_BYTES
_SUMS_BYTES = matrix_unit.NUM_SUMS * _SUM_BYTES
_TILE_BYTES = 4 * TILE_OUTPUTS  # of its outputs for a row
_WHOLE_BITS = tuple(bits for bits, record in RECORDS.items() if len(record.scales_at) == 1)


class ProductTask(NamedTuple):
    """What `_multiply` is told: addresses of what it reads and writes, and how that is divided.

    `num_tiles_at_once` are a thread's turn; the last group of rows may be smaller than the others.
    """

    weights: int
    units: int
    bias: int
    num_tiles: int
    num_blocks: int
    num_tiles_at_once: int
    rows: int
    outputs: int
    num_groups: int
    group_size: int
    last_group_size: int


_AT = places(ProductTask)


class Product:
    """Multiplies with one weight. Calls belong to one thread, and take as many more as it takes."""

    def __init__(self, weight: PackedWeight, bias: Floats, instruction_set: int | None = None) -> None:
        """`bias` has an entry for each output of all tiles.

        `instruction_set` is one of `dot.instruction_sets()`, by default the quickest.
        """
        self.num_outputs, self.width = weight.shape[0], len(weight.records) * TILE_OUTPUTS
        self._weight, self._bias = weight, bias
        chosen = instruction_sets()[0] if instruction_set is None else instruction_set
        key = chosen, weight.record.bits
        self._kernel = _KERNELS[key]
        self._wide_kernel = _UNIT_KERNELS.get(key, self._kernel)

    def __call__(self, rows: RoundedRows) -> Tensor:
        """`rows @ weight.T + bias`, [num_rows, num_outputs] float32."""
        outputs = torch.empty(rows.groups.num_held, self.width)
        self.step(rows, outputs).run()
        if outputs.shape == (rows.num_rows, self.num_outputs):
            return outputs
        return outputs[: rows.num_rows, : self.num_outputs].contiguous()

    def step(self, rows: RoundedRows, outputs: Tensor) -> Step:
        """The product into outputs [num_held, width] float32; what is behind the result means nothing."""
        num_tiles, num_blocks, num_bytes = self._weight.records.shape
        task = ProductTask(
            weights=self._weight.records.ctypes.data,
            units=self._weight.units.ctypes.data,
            bias=self._bias.ctypes.data,
            num_tiles=num_tiles,
            num_blocks=num_blocks,
            num_tiles_at_once=max(1, _TURN_BYTES // (num_blocks * num_bytes)),
            rows=rows.address,
            outputs=outputs.data_ptr(),
            num_groups=rows.groups.number,
            group_size=rows.groups.size,
            last_group_size=rows.groups.last_size,
        )
        kernel = self._wide_kernel if rows.groups.size == _SIZES[0] else self._kernel
        return Step(kernel, task_of(task), (self._weight, self._bias, rows, outputs))


@inlined
def _add_few(
    instruction_set: Any,
    bits: Any,
    size: Any,
    weights: Any,
    rows: Any,
    units: Any,
    bias: Any,
    outputs: Any,
    stride: Any,
    num_blocks: Any,
) -> None:
    """`add_up` for a group of up to four rows."""
    if size == 4:
        add_up(instruction_set, bits, 4, weights, rows, units, bias, outputs, stride, num_blocks)
    elif size == 2:
        add_up(instruction_set, bits, 2, weights, rows, units, bias, outputs, stride, num_blocks)
    else:
        add_up(instruction_set, bits, 1, weights, rows, units, bias, outputs, stride, num_blocks)


@inlined
def _multiply(task: Any, instruction_set: Any, bits: Any, num_bytes: Any) -> None:
    """Take tiles until none are left; `task` is a `ProductTask`."""
    num_tiles, num_blocks, turn = task[_AT.num_tiles], task[_AT.num_blocks], task[_AT.num_tiles_at_once]
    num_groups, group_size = task[_AT.num_groups], task[_AT.group_size]
    stride = num_tiles * TILE_OUTPUTS
    first = claim(task, COUNTER, turn)
    while first < num_tiles:
        for tile in range(first, min(first + turn, num_tiles)):
            weights = task[_AT.weights] + tile * num_blocks * num_bytes
            units, bias = task[_AT.units] + tile * _TILE_BYTES, task[_AT.bias] + tile * _TILE_BYTES
            for group in range(num_groups):
                rows = task[_AT.rows] + group * num_blocks * group_size * ROW_BYTES
                outputs = task[_AT.outputs] + (group * group_size * num_tiles + tile) * _TILE_BYTES
                size = group_size if group < num_groups - 1 else task[_AT.last_group_size]
                if size == 16:
                    add_up(instruction_set, bits, 16, weights, rows, units, bias, outputs, stride, num_blocks)
                elif size == 8:
                    add_up(instruction_set, bits, 8, weights, rows, units, bias, outputs, stride, num_blocks)
                else:
                    _add_few(
                        instruction_set, bits, size, weights, rows, units, bias, outputs, stride, num_blocks
                    )
        first = claim(task, COUNTER, turn)


@inlined
def _add_blocks(
    task: Any, bits: Any, num_bytes: Any, weights: Any, levels: Any, sums: Any, totals: Any, num_whole: Any
) -> None:
    """The sums of a tile for all groups that the unit multiplies, with levels unpacked once for all."""
    num_blocks, num_groups, group_size = task[_AT.num_blocks], task[_AT.num_groups], task[_AT.group_size]
    last_size = task[_AT.last_group_size]
    for block in range(0, num_blocks, _BLOCKS_AT_ONCE):
        number, part = min(_BLOCKS_AT_ONCE, num_blocks - block), weights + block * num_bytes
        unpack(bits, part, levels, number)
        for group in range(num_whole):
            size = group_size if group < num_groups - 1 else last_size
            rows = task[_AT.rows] + (group * num_blocks * group_size + block * size) * ROW_BYTES
            total = totals + group * _SUM_BYTES
            if size == _SIZES[0]:
                add_up_by_unit(bits, _SIZES[0], part, levels, rows, sums, total, number)
            else:
                add_up_by_unit(bits, _SIZES[1], part, levels, rows, sums, total, number)


@inlined
def _multiply_by_unit(task: Any, instruction_set: Any, bits: Any, num_bytes: Any) -> None:
    """As `_multiply`, by the matrix unit; only a last group that is too small for it is not."""
    num_tiles, num_blocks, turn = task[_AT.num_tiles], task[_AT.num_blocks], task[_AT.num_tiles_at_once]
    num_groups, group_size, stride = task[_AT.num_groups], task[_AT.group_size], num_tiles * TILE_OUTPUTS
    last_size = task[_AT.last_group_size]
    num_whole = num_groups if last_size >= _SIZES[1] else num_groups - 1
    memory = np.zeros(_LEVELS_BYTES + _SUMS_BYTES + num_groups * _SUM_BYTES + _LINE, np.uint8)
    begin_unit()
    first = claim(task, COUNTER, turn)
    while first < num_tiles:
        for tile in range(first, min(first + turn, num_tiles)):
            weights = task[_AT.weights] + tile * num_blocks * num_bytes
            units, bias = task[_AT.units] + tile * _TILE_BYTES, task[_AT.bias] + tile * _TILE_BYTES
            # Read in the loop, for numba frees an array behind the last line that names it.
            levels = (memory.ctypes.data + _LINE - 1) // _LINE * _LINE
            sums = levels + _LEVELS_BYTES
            totals = sums + _SUMS_BYTES
            _add_blocks(task, bits, num_bytes, weights, levels, sums, totals, num_whole)
            for group in range(num_whole):
                outputs = task[_AT.outputs] + (group * group_size * num_tiles + tile) * _TILE_BYTES
                total = totals + group * _SUM_BYTES
                if group < num_groups - 1 or last_size == _SIZES[0]:
                    finish(_SIZES[0], total, units, bias, outputs, stride)
                else:
                    finish(_SIZES[1], total, units, bias, outputs, stride)
            if num_whole < num_groups:
                rows = task[_AT.rows] + num_whole * num_blocks * group_size * ROW_BYTES
                outputs = task[_AT.outputs] + (num_whole * group_size * num_tiles + tile) * _TILE_BYTES
                _add_few(
                    instruction_set, bits, last_size, weights, rows, units, bias, outputs, stride, num_blocks
                )
        first = claim(task, COUNTER, turn)
    end_unit()


def _kernel_of(instruction_set: int, bits: int) -> SharedKernel:
    num_bytes = RECORDS[bits].num_bytes

    def multiply(task: Any) -> None:
        _multiply(task, instruction_set, bits, num_bytes)

    return SharedKernel(multiply)


def _unit_kernel_of(instruction_set: int, bits: int) -> SharedKernel:
    num_bytes = RECORDS[bits].num_bytes

    def multiply_by_unit(task: Any) -> None:
        _multiply_by_unit(task, instruction_set, bits, num_bytes)

    return SharedKernel(multiply_by_unit)


_KERNELS = {
    (number, bits): _kernel_of(number, bits) for number in range(len(INSTRUCTION_SETS)) for bits in RECORDS
}
_UNIT_KERNELS = {
    (number, bits): _unit_kernel_of(number, bits)
    for number, found in enumerate(INSTRUCTION_SETS)
    if isinstance(found, MatrixUnit)
    for bits in _WHOLE_BITS
}


@cache
def packed_bits() -> tuple[int, ...]:
    """In which weights are to be packed here: what suits the quickest instructions."""
    prefers_halves = any(INSTRUCTION_SETS[number].prefers_halves for number in instruction_sets()[:1])
    return tuple(bits for bits in RECORDS if prefers_halves or bits in _WHOLE_BITS)
