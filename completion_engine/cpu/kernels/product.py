"""Products of rows in bytes with packed weights, shared among threads tile by tile.

Sums run in whole numbers within a block of inputs, and from block to block in floats: a row's result is the
same beside any rows and on any number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.kernels.dot import INSTRUCTION_SETS, instruction_sets
from completion_engine.cpu.kernels.language import COUNTER, Floats, SharedKernel, inlined, places, task_of
from completion_engine.cpu.kernels.packing import RECORDS, ROW_BYTES, TILE_OUTPUTS, PackedWeight
from completion_engine.cpu.kernels.program import Step
from completion_engine.cpu.kernels.rounded import RoundedRows
from completion_engine.cpu.kernels.rows import LANE_BYTES
from completion_engine.cpu.kernels.unpacked_tile import (
    LINE,
    SMALLEST_GROUP,
    TOTAL_BYTES,
    begin,
    blocks_at_once,
    end,
    fetch_outputs,
    finish,
    room_for_blocks,
    unpack,
    unpacks,
    unpacks_from,
)
from completion_engine.cpu.kernels.unpacked_tile import add_up as add_blocks
from completion_engine.cpu.kernels.vectors import claim
from completion_engine.cpu.kernels.weight_tile import add_up

_TURN_BYTES = 1 << 17  # bytes of weights that a thread takes at a time
_TILES_WRITTEN = 4  # tiles whose outputs are written at a time: rows of outputs lie on pages of their own


class ProductTask(NamedTuple):
    """The arguments of `_multiply`: addresses of what it reads and writes, and how that is divided.

    `num_tiles_at_once` are a thread's turn; the last group of rows may be smaller than the others.
    """

    weights: int
    units: int
    bias: int
    num_tiles: int
    num_blocks: int
    num_tiles_at_once: int
    rows: int
    lanes: int
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
        self._wide_kernel = _UNPACKED_KERNELS.get(key, self._kernel)
        self._wide_from = unpacks_from(chosen)

    def __call__(self, rows: RoundedRows) -> Tensor:
        """`rows @ weight.T + bias`, [num_rows, num_outputs] float32."""
        outputs = torch.empty(rows.groups.num_held, self.width)
        self.step(rows, outputs).run()
        if outputs.shape == (rows.num_rows, self.num_outputs):
            return outputs
        return outputs[: rows.num_rows, : self.num_outputs].contiguous()

    def step(self, rows: RoundedRows, outputs: Tensor) -> Step:
        """The product into outputs [num_held, width] float32; memory after the result has no meaning."""
        num_tiles, num_blocks, num_bytes = self._weight.records.shape
        task = ProductTask(
            weights=self._weight.records.ctypes.data,
            units=self._weight.units.ctypes.data,
            bias=self._bias.ctypes.data,
            num_tiles=num_tiles,
            num_blocks=num_blocks,
            num_tiles_at_once=max(1, _TURN_BYTES // (num_blocks * num_bytes)),
            rows=rows.address,
            lanes=rows.lanes_address,
            outputs=outputs.data_ptr(),
            num_groups=rows.groups.number,
            group_size=rows.groups.size,
            last_group_size=rows.groups.last_size,
        )
        kernel = self._wide_kernel if rows.num_rows >= self._wide_from else self._kernel
        return Step(kernel, task_of(task), (self._weight, self._bias, rows, outputs))


@inlined
def _add_up(isa: Any, bits: Any, size: Any, places: Any, ends: Any, stride: Any, num_blocks: Any) -> None:
    """`add_up` for a group of any size.

    Places are those of weights, rows and lanes, ends those of units, bias and outputs.
    """
    weights, rows, lanes = places
    units, bias, outputs = ends
    if size == 16:
        add_up(isa, bits, 16, weights, rows, lanes, units, bias, outputs, stride, num_blocks)
    elif size == 8:
        add_up(isa, bits, 8, weights, rows, lanes, units, bias, outputs, stride, num_blocks)
    else:
        _add_few(isa, bits, size, places, ends, stride, num_blocks)


@inlined
def _add_few(isa: Any, bits: Any, size: Any, places: Any, ends: Any, stride: Any, num_blocks: Any) -> None:
    """`_add_up` for a group of up to four rows."""
    weights, rows, lanes = places
    units, bias, outputs = ends
    if size == 4:
        add_up(isa, bits, 4, weights, rows, lanes, units, bias, outputs, stride, num_blocks)
    elif size == 2:
        add_up(isa, bits, 2, weights, rows, lanes, units, bias, outputs, stride, num_blocks)
    else:
        add_up(isa, bits, 1, weights, rows, lanes, units, bias, outputs, stride, num_blocks)


@inlined
def _multiply(task: Any, isa: Any, bits: Any, num_bytes: Any) -> None:
    """Take tiles until none are left; `task` is a `ProductTask`."""
    num_tiles, num_blocks, turn = task[_AT.num_tiles], task[_AT.num_blocks], task[_AT.num_tiles_at_once]
    num_groups, group_size = task[_AT.num_groups], task[_AT.group_size]
    stride = num_tiles * TILE_OUTPUTS
    first = claim(task, COUNTER, turn)
    while first < num_tiles:
        for tile in range(first, min(first + turn, num_tiles)):
            weights = task[_AT.weights] + tile * num_blocks * num_bytes
            units, bias = task[_AT.units] + tile * TOTAL_BYTES, task[_AT.bias] + tile * TOTAL_BYTES
            for group in range(num_groups):
                before = group * num_blocks * group_size
                rows, lanes = task[_AT.rows] + before * ROW_BYTES, task[_AT.lanes] + before * LANE_BYTES
                outputs = task[_AT.outputs] + (group * group_size * num_tiles + tile) * TOTAL_BYTES
                size = group_size if group < num_groups - 1 else task[_AT.last_group_size]
                places, ends = (weights, rows, lanes), (units, bias, outputs)
                _add_up(isa, bits, size, places, ends, stride, num_blocks)
        first = claim(task, COUNTER, turn)


@inlined
def _add_blocks(task: Any, isa: Any, bits: Any, num_bytes: Any, at_once: Any, places: Any) -> None:
    """The sums of a tile for all groups that are not too small, with levels unpacked once for all.

    Places are those of the tile's weights, of its unpacked blocks, of the sums, and of its outputs.
    """
    weights, blocks, totals, outputs = places
    num_blocks, num_groups, group_size = task[_AT.num_blocks], task[_AT.num_groups], task[_AT.group_size]
    last_size = task[_AT.last_group_size]
    for block in range(0, num_blocks, at_once):
        number, part = min(at_once, num_blocks - block), weights + block * num_bytes
        unpack(isa, bits, part, blocks, number)
        for group in range(num_groups):
            size = group_size if group < num_groups - 1 else last_size
            before = group * num_blocks * group_size + block * size
            rows, lanes = task[_AT.rows] + before * ROW_BYTES, task[_AT.lanes] + before * LANE_BYTES
            total = totals + group * group_size * TOTAL_BYTES
            if block == 0:
                own_outputs = outputs + group * group_size * task[_AT.num_tiles] * TOTAL_BYTES
                fetch_outputs(isa, size, own_outputs, task[_AT.num_tiles] * TILE_OUTPUTS)
            if size == 16:
                add_blocks(isa, bits, 16, part, blocks, rows, lanes, total, number)
            elif size == 8:
                add_blocks(isa, bits, 8, part, blocks, rows, lanes, total, number)


@inlined
def _write_tiles(task: Any, isa: Any, bits: Any, num_bytes: Any, tiles: Any, totals: Any) -> None:
    """Write the outputs of tiles from the first of `tiles` to before the second, row by row.

    Totals are those of the first tile. A last group that is too small to be unpacked for is multiplied here.
    """
    num_tiles, num_blocks, last_size = task[_AT.num_tiles], task[_AT.num_blocks], task[_AT.last_group_size]
    num_groups, group_size, stride = task[_AT.num_groups], task[_AT.group_size], num_tiles * TILE_OUTPUTS
    for group in range(num_groups):
        for tile in range(tiles[0], tiles[1]):
            units, bias = task[_AT.units] + tile * TOTAL_BYTES, task[_AT.bias] + tile * TOTAL_BYTES
            outputs = task[_AT.outputs] + (group * group_size * num_tiles + tile) * TOTAL_BYTES
            total = totals + ((tile - tiles[0]) * num_groups + group) * group_size * TOTAL_BYTES
            if group < num_groups - 1 or last_size == 16:
                finish(16, total, units, bias, outputs, stride)
            elif last_size >= SMALLEST_GROUP:
                finish(8, total, units, bias, outputs, stride)
            else:
                before = group * num_blocks * group_size
                rows, lanes = task[_AT.rows] + before * ROW_BYTES, task[_AT.lanes] + before * LANE_BYTES
                weights = task[_AT.weights] + tile * num_blocks * num_bytes
                places, ends = (weights, rows, lanes), (units, bias, outputs)
                _add_few(isa, bits, last_size, places, ends, stride, num_blocks)


@inlined
def _multiply_unpacked(task: Any, isa: Any, bits: Any, num_bytes: Any, at_once: Any, room: Any) -> None:
    """As `_multiply`, by what is in `unpacked_tile`; only a last group that is too small for it is not."""
    num_tiles, num_blocks, turn = task[_AT.num_tiles], task[_AT.num_blocks], task[_AT.num_tiles_at_once]
    total_bytes = task[_AT.num_groups] * task[_AT.group_size] * TOTAL_BYTES
    memory = np.zeros(room + _TILES_WRITTEN * total_bytes + LINE, np.uint8)
    begin(isa)
    first = claim(task, COUNTER, turn)
    while first < num_tiles:
        end_of_turn = min(first + turn, num_tiles)
        for some in range(first, end_of_turn, _TILES_WRITTEN):
            # Read in the loop, because numba frees an array after the last line that names it.
            blocks = (memory.ctypes.data + LINE - 1) // LINE * LINE
            totals, after = blocks + room, min(some + _TILES_WRITTEN, end_of_turn)
            for tile in range(some, after):
                weights = task[_AT.weights] + tile * num_blocks * num_bytes
                outputs = task[_AT.outputs] + tile * TOTAL_BYTES
                places = weights, blocks, totals + (tile - some) * total_bytes, outputs
                _add_blocks(task, isa, bits, num_bytes, at_once, places)
            _write_tiles(task, isa, bits, num_bytes, (some, after), totals)
        first = claim(task, COUNTER, turn)
    end(isa)


def _kernel_of(isa: int, bits: int) -> SharedKernel:
    num_bytes = RECORDS[bits].num_bytes

    def multiply(task: Any) -> None:
        _multiply(task, isa, bits, num_bytes)

    return SharedKernel(multiply)


def _unpacked_kernel_of(isa: int, bits: int) -> SharedKernel:
    num_bytes, at_once, room = RECORDS[bits].num_bytes, blocks_at_once(isa), room_for_blocks(isa, bits)

    def multiply_unpacked(task: Any) -> None:
        _multiply_unpacked(task, isa, bits, num_bytes, at_once, room)

    return SharedKernel(multiply_unpacked)


_KERNELS = {
    (number, bits): _kernel_of(number, bits) for number in range(len(INSTRUCTION_SETS)) for bits in RECORDS
}
_UNPACKED_KERNELS = {
    (number, bits): _unpacked_kernel_of(number, bits)
    for number in range(len(INSTRUCTION_SETS))
    for bits in RECORDS
    if unpacks(number)
}
