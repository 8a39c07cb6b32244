"""Products of rows in bytes with packed weights, shared among torch's threads strip by strip.

Sums run in whole numbers within a block of inputs, and block behind block in floats: a row's result is the
same beside any rows and on any number of threads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from completion_engine.cpu.dot import WAYS, ways
from completion_engine.cpu.language import Floats, SharedKernel, inlined
from completion_engine.cpu.packing import RECORDS, ROW_BYTES, STRIP, PackedWeight
from completion_engine.cpu.program import COUNTER, Step, task_of
from completion_engine.cpu.rounded import RoundedRows
from completion_engine.cpu.strip import add_up
from completion_engine.cpu.vectors import claim

_TURN_BYTES = 1 << 17  # of weights that a thread takes at a time
_STRIP_BYTES = 4 * STRIP  # of its outputs for a row


class Product:
    """Multiplies with one weight. Calls belong to one thread; they use all that torch was given."""

    def __init__(self, weight: PackedWeight, bias: Floats, way: int | None = None) -> None:
        """`bias` has an entry for each output of all strips; `way` is one of `dot.ways`, else the first."""
        num_strips, num_blocks, num_bytes = weight.records.shape
        self.num_outputs, self.width = weight.shape[0], num_strips * STRIP
        self._held = weight, bias
        self._said = (
            weight.records.ctypes.data,
            weight.units.ctypes.data,
            bias.ctypes.data,
            num_strips,
            num_blocks,
            max(1, _TURN_BYTES // (num_blocks * num_bytes)),
        )
        self._kernel = _KERNELS[ways()[0] if way is None else way, weight.record.bits]

    def __call__(self, rows: RoundedRows) -> Tensor:
        """`rows @ weight.T + bias`, [num_rows, num_outputs] float32."""
        outputs = torch.empty(rows.groups.num_held, self.width)
        self.step(rows, outputs).run()
        if outputs.shape == (rows.num_rows, self.num_outputs):
            return outputs
        return outputs[: rows.num_rows, : self.num_outputs].contiguous()

    def step(self, rows: RoundedRows, outputs: Tensor) -> Step:
        """The product into outputs [num_held, width] float32; what is behind the result means nothing."""
        groups = rows.groups
        shape = groups.number, groups.size, groups.last_size
        task = task_of(*self._said, rows.address, outputs.data_ptr(), *shape)
        return Step(self._kernel, task, (self._held, rows, outputs))


@inlined
def _multiply(task: Any, way: Any, bits: Any, num_bytes: Any) -> None:
    """Take strips until none are left; `task` is what `Product.step` put there."""
    num_strips, num_blocks, turn, num_groups = task[4], task[5], task[6], task[9]
    stride = num_strips * STRIP
    first = claim(task, COUNTER, turn)
    while first < num_strips:
        for strip in range(first, min(first + turn, num_strips)):
            weights = task[1] + strip * num_blocks * num_bytes
            units, bias = task[2] + strip * _STRIP_BYTES, task[3] + strip * _STRIP_BYTES
            for group in range(num_groups):
                rows = task[7] + group * num_blocks * task[10] * ROW_BYTES
                outputs = task[8] + (group * task[10] * num_strips + strip) * _STRIP_BYTES
                size = task[10] if group < num_groups - 1 else task[11]
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
        first = claim(task, COUNTER, turn)


def _kernel_of(way: int, bits: int) -> SharedKernel:
    num_bytes = RECORDS[bits].num_bytes

    def multiply(task: Any) -> None:
        _multiply(task, way, bits, num_bytes)

    return SharedKernel(multiply)


_KERNELS = {(way, bits): _kernel_of(way, bits) for way in range(len(WAYS)) for bits in RECORDS}
