"""Kernels one behind the other without the interpreter between them.

A pass runs some two hundred kernels, many of them in less time than Python takes to call one. A program is
written once for a number of rows and then run as a whole.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]  # numba does not say what it exports
from numba.extending import intrinsic

from completion_engine.cpu import team
from completion_engine.cpu.language import Array, SharedKernel
from completion_engine.cpu.vectors import I32, I64, int64_at

COUNTER = 0  # place in a task of the work that no thread has taken yet


def task_of(*said: int) -> Array:
    """What a kernel is told: a counter that threads take their work from, then sizes and addresses."""
    return np.array([0, *said], np.int64)


def bits_of(number: float) -> int:
    """A float32 as a task holds it."""
    return int(np.float32(number).view(np.int32))


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel with its task. `held` is what the addresses in it point to."""

    kernel: SharedKernel
    task: Array
    held: Sequence[Any]
    is_shared: bool = True  # among threads, where that pays

    def run(self) -> None:
        """Run it by itself."""
        self.task[COUNTER] = 0
        (team.run if self.is_shared else team.call)(self.kernel.address, self.task.ctypes.data)


class Program:
    """Steps that run in order, on as many threads as torch has here."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)

    def run(self) -> None:
        """Run all of them. Lets other threads of Python run meanwhile."""
        start = team.openmp()
        if start is None:
            for step in self._steps:
                step.run()
            return
        address = ctypes.cast(start, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # a C function
        said = task_of(self._written.ctypes.data, len(self._written), address, torch.get_num_threads())
        team.call(_run_steps.address, said.ctypes.data)

    @cached_property
    def _written(self) -> Array:
        """The steps as `_run_steps` reads them."""
        steps = [(step.kernel.address, step.task.ctypes.data, step.is_shared) for step in self._steps]
        return np.array(steps, np.int64)


def _typed_call(_: Any, function: Any, task: Any) -> Any:
    """The kernel at an address."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        kernel = ir.FunctionType(ir.VoidType(), [I64]).as_pointer()
        builder.call(builder.inttoptr(arguments[0], kernel), [arguments[1]])
        return context.get_dummy_value()

    return types.void(function, task), generate


def _typed_start(_: Any, openmp: Any, function: Any, task: Any, num_threads: Any) -> Any:
    """The kernel at an address on several threads, by `team.openmp` at another."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        start = ir.FunctionType(ir.VoidType(), [I64, I64, I32, I32]).as_pointer()
        number = builder.trunc(arguments[3], I32)
        builder.call(builder.inttoptr(arguments[0], start), [*arguments[1:3], number, I32(0)])
        return context.get_dummy_value()

    return types.void(openmp, function, task, num_threads), generate


_call: Any = intrinsic(_typed_call)
_start: Any = intrinsic(_typed_start)


@SharedKernel
def _run_steps(task: Any) -> None:
    steps = carray(int64_at(task[1]), (task[2], 3))
    for at in range(task[2]):
        function, step = steps[at, 0], steps[at, 1]
        carray(int64_at(step), 1)[COUNTER] = 0
        if steps[at, 2] and task[4] > 1:
            _start(task[3], function, step, task[4])
        else:
            _call(function, step)
