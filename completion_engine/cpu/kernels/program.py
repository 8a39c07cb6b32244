"""Runs kernels in sequence without the interpreter between them.

A pass runs some two hundred kernels, many of them in less time than Python takes to call one. A program is
written once for a number of rows and then run as a whole. A row of a branch attends to the keys of its own
branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import carray  # type: ignore[attr-defined]  # numba does not say what it exports

from completion_engine.cpu.kernels.language import COUNTER, Array, SharedKernel, places, task_of
from completion_engine.cpu.kernels.team import TEAM, call, load, share
from completion_engine.cpu.kernels.vectors import int64_at
from completion_engine.request import CancelledError
from completion_engine.target_model.brake import Brake
from completion_engine.target_model.threads import num_threads_here


class StepFields(NamedTuple):
    """What `_run_steps` reads of a step: the addresses of its kernel and its task."""

    kernel: int
    task: int
    is_shared: int


class RunTask(NamedTuple):
    """The arguments of `_run_steps`: the address of `StepFields` [num_steps], and of the words of `Team`.

    `brake` is as `Brake.address`. The counter is the number of steps that ran.
    """

    steps: int
    num_steps: int
    num_helpers: int
    words: int
    brake: int


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
        if self.is_shared:
            Program([self]).run()
            return
        self.task[COUNTER] = 0
        self.kernel.run(self.task)


class Program:
    """Steps that run in order, on as many threads as this thread takes."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)

    def run(self, brake: Brake | None = None) -> None:
        """Run all of them. Lets other threads of Python run meanwhile.

        Raises CancelledError where `brake` ended it before the last one.
        """
        written = self._written
        _ = _run_steps.address  # all is compiled before helpers are taken: they spin until this is done
        with TEAM.gathered(num_threads_here()) as num_helpers:
            task = task_of(
                RunTask(
                    steps=written.ctypes.data,
                    num_steps=len(written),
                    num_helpers=num_helpers,
                    words=TEAM.words,
                    brake=brake.address if brake else 0,
                )
            )
            _run_steps.run(task)
        if task[COUNTER] < len(written):
            raise CancelledError

    @cached_property
    def _written(self) -> Array:
        """The steps as `_run_steps` reads them."""
        steps = [
            StepFields(kernel=step.kernel.address, task=step.task.ctypes.data, is_shared=step.is_shared)
            for step in self._steps
        ]
        return np.array(steps, np.int64)


@SharedKernel
def _run_steps(task: Any) -> None:
    steps = carray(int64_at(task[_AT.steps]), (task[_AT.num_steps], _STEP_SIZE))
    for at in range(task[_AT.num_steps]):
        if task[_AT.brake] and load(int64_at(task[_AT.brake]), 0):
            return
        kernel, step = steps[at, _STEP.kernel], steps[at, _STEP.task]
        carray(int64_at(step), 1)[COUNTER] = 0
        if steps[at, _STEP.is_shared] and task[_AT.num_helpers]:
            share(int64_at(task[_AT.words]), kernel, step, task[_AT.num_helpers])
        else:
            call(kernel, step)
        task[COUNTER] = at + 1


NO_PATH: Array = np.empty(0, np.int64)  # for rows that only look


class BranchFields(NamedTuple):
    """What the table holds of a branch: `TableBranch`, with the address of its path and how long that is."""

    first: int
    number: int
    keys: int
    values: int
    start: int
    path: int
    num_path: int


BRANCH = places(BranchFields, 0)  # counted from where a branch begins
BRANCH_SIZE = len(BRANCH)
NUM_BRANCHES, FIRST_BRANCH = 0, 1  # places in the table


class TableBranch(NamedTuple):
    """Rows `first` to `first + number` attend here; rows `path` [num_path] int64 are written from `start` on.

    `keys` and `values` are addresses of a cache.
    """

    first: int
    number: int
    keys: int
    values: int
    start: int
    path: Array

    @property
    def fields(self) -> BranchFields:
        """As the table holds it; the path must outlive that."""
        return BranchFields(*self[:-1], path=self.path.ctypes.data, num_path=len(self.path))


class BranchTable:
    """A table that stays where it is while its content changes from pass to pass."""

    def __init__(self, max_branches: int) -> None:
        self.numbers: Array = np.zeros(FIRST_BRANCH + max_branches * BRANCH_SIZE, np.int64)
        self.address = self.numbers.ctypes.data
        self._paths: list[Array] = []

    def fill(self, branches: Sequence[TableBranch]) -> None:
        """From now on these are the branches."""
        self._paths = [branch.path for branch in branches]
        fields = np.array([branch.fields for branch in branches], np.int64).ravel()
        self.numbers[NUM_BRANCHES] = len(branches)
        self.numbers[FIRST_BRANCH : FIRST_BRANCH + len(fields)] = fields
