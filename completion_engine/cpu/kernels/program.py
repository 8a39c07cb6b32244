"""Kernels one behind the other without the interpreter between them.

A pass runs some two hundred kernels, many of them in less time than Python takes to call one. A program is
written once for a number of rows and then run as a whole.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]  # numba does not say what it exports
from numba.extending import intrinsic

from completion_engine.cpu.kernels import openmp
from completion_engine.cpu.kernels.language import Array, SharedKernel
from completion_engine.cpu.kernels.task import COUNTER, places, task_of
from completion_engine.cpu.kernels.vectors import I32, I64, int64_at


class StepFields(NamedTuple):
    """What `_run_steps` reads of a step: the addresses of its kernel and its task."""

    kernel: int
    task: int
    is_shared: int


class RunTask(NamedTuple):
    """What `_run_steps` is told: the address of `StepFields` [num_steps], and what starts threads."""

    steps: int
    num_steps: int
    openmp: int
    num_threads: int


_STEP, _AT = places(StepFields, 0), places(RunTask)
_STEP_SIZE = len(_STEP)


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
        (openmp.run if self.is_shared else openmp.call)(self.kernel.address, self.task.ctypes.data)


class Program:
    """Steps that run in order, on as many threads as torch has here."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)

    def run(self) -> None:
        """Run all of them. Lets other threads of Python run meanwhile."""
        start = openmp.openmp()
        if start is None:
            for step in self._steps:
                step.run()
            return
        address = ctypes.cast(start, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # a C function
        task = task_of(
            RunTask(
                steps=self._written.ctypes.data,
                num_steps=len(self._written),
                openmp=address,
                num_threads=torch.get_num_threads(),
            )
        )
        openmp.call(_run_steps.address, task.ctypes.data)

    @cached_property
    def _written(self) -> Array:
        """The steps as `_run_steps` reads them."""
        steps = [
            StepFields(kernel=step.kernel.address, task=step.task.ctypes.data, is_shared=step.is_shared)
            for step in self._steps
        ]
        return np.array(steps, np.int64)


def _typed_call(_: Any, function: Any, task: Any) -> Any:
    """The kernel at an address."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        kernel = ir.FunctionType(ir.VoidType(), [I64]).as_pointer()
        builder.call(builder.inttoptr(arguments[0], kernel), [arguments[1]])
        return context.get_dummy_value()

    return types.void(function, task), generate


def _typed_start(_: Any, openmp: Any, function: Any, task: Any, num_threads: Any) -> Any:
    """The kernel at an address on several threads, by `openmp.openmp` at another."""

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
    steps = carray(int64_at(task[_AT.steps]), (task[_AT.num_steps], _STEP_SIZE))
    for at in range(task[_AT.num_steps]):
        kernel, step = steps[at, _STEP.kernel], steps[at, _STEP.task]
        carray(int64_at(step), 1)[COUNTER] = 0
        if steps[at, _STEP.is_shared] and task[_AT.num_threads] > 1:
            _start(task[_AT.openmp], kernel, step, task[_AT.num_threads])
        else:
            _call(kernel, step)
