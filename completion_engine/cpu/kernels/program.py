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
from completion_engine.cpu.kernels.team import TEAM, call, share
from completion_engine.cpu.kernels.vectors import I32, I64, int64_at


class StepFields(NamedTuple):
    """What `_run_steps` reads of a step: the addresses of its kernel and its task."""

    kernel: int
    task: int
    is_shared: int


class RunTask(NamedTuple):
    """What `_run_steps` is told: the address of `StepFields` [num_steps], and what threads there are.

    Those of `openmp`, where that is not 0, or else the helpers that share the words of `Team`.
    """

    steps: int
    num_steps: int
    num_threads: int
    openmp: int
    words: int


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
        start = openmp.openmp()
        if self.is_shared and start is None:
            Program([self]).run()
            return
        self.task[COUNTER] = 0
        if self.is_shared and start is not None:
            start(self.kernel.address, self.task.ctypes.data, torch.get_num_threads(), 0)
        else:
            openmp.call(self.kernel.address, self.task.ctypes.data)


class Program:
    """Steps that run in order, on as many threads as torch has here."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)

    def run(self) -> None:
        """Run all of them. Lets other threads of Python run meanwhile."""
        num_threads, start = torch.get_num_threads(), openmp.openmp()
        if start is not None:
            address = ctypes.cast(start, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # a C function
            self._run(num_threads, address)
            return
        with TEAM.gathered(num_threads) as num_helpers:
            self._run(1 + num_helpers, 0)

    def _run(self, num_threads: int, start: int) -> None:
        task = task_of(
            RunTask(
                steps=self._written.ctypes.data,
                num_steps=len(self._written),
                num_threads=num_threads,
                openmp=start,
                words=TEAM.words,
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


def _typed_start(_: Any, openmp: Any, function: Any, task: Any, num_threads: Any) -> Any:
    """The kernel at an address on several threads, by `openmp.openmp` at another."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        start = ir.FunctionType(ir.VoidType(), [I64, I64, I32, I32]).as_pointer()
        number = builder.trunc(arguments[3], I32)
        builder.call(builder.inttoptr(arguments[0], start), [*arguments[1:3], number, I32(0)])
        return context.get_dummy_value()

    return types.void(openmp, function, task, num_threads), generate


_start: Any = intrinsic(_typed_start)


@SharedKernel
def _run_steps(task: Any) -> None:
    steps = carray(int64_at(task[_AT.steps]), (task[_AT.num_steps], _STEP_SIZE))
    for at in range(task[_AT.num_steps]):
        kernel, step = steps[at, _STEP.kernel], steps[at, _STEP.task]
        carray(int64_at(step), 1)[COUNTER] = 0
        if steps[at, _STEP.is_shared] and task[_AT.num_threads] > 1:
            if task[_AT.openmp]:
                _start(task[_AT.openmp], kernel, step, task[_AT.num_threads])
            else:
                share(int64_at(task[_AT.words]), kernel, step, task[_AT.num_threads] - 1)
        else:
            call(kernel, step)
