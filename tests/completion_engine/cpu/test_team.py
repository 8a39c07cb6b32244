"""Threads do every step once and in order, with late, missing or busy threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numba import carray

from completion_engine.cpu.kernels import program, team
from completion_engine.cpu.kernels.language import COUNTER, Array, SharedKernel, task_of
from completion_engine.cpu.kernels.program import Program, Step
from completion_engine.cpu.kernels.vectors import claim, int64_at
from completion_engine.target_model.threads import num_threads_here, use_threads

NUM_CELLS = 64


@SharedKernel
def _pass_on(task: Any) -> None:
    """Each cell of one row becomes what stands in the row before, turned around, and one more."""
    before, after = carray(int64_at(task[1]), 64), carray(int64_at(task[2]), 64)
    while True:
        cell = claim(task, COUNTER, 1)
        if cell >= 64:
            return
        after[cell] += before[63 - cell] + 1


@pytest.fixture(autouse=True)
def more_threads_than_cores() -> Iterator[None]:
    before = num_threads_here()
    use_threads(3)
    yield
    use_threads(before)


def steps(rows: Array) -> list[Step]:
    return [
        Step(_pass_on, task_of([int(a.ctypes.data), int(b.ctypes.data)]), (rows,)) for a, b in pairwise(rows)
    ]


def runs_right(num_steps: int = 200, num_runs: int = 20) -> bool:
    """Whether every cell holds what it must: a step that is done twice, or too early, shows in it."""
    rows = np.zeros((num_steps + 1, NUM_CELLS), np.int64)
    whole = Program(steps(rows))
    for _ in range(num_runs):
        rows[1:] = 0
        whole.run()
        if not (rows == np.arange(num_steps + 1)[:, None]).all():
            return False
    return True


@pytest.mark.parametrize("num_threads", [1, 2, 3, 8])
def test_each_step_is_done_once_and_after_the_one_before(num_threads: int) -> None:
    use_threads(num_threads)
    assert runs_right()


def test_a_single_step_is_shared_too() -> None:
    rows = np.zeros((2, NUM_CELLS), np.int64)
    (step,) = steps(rows)
    step.run()
    assert (rows[1] == 1).all()


def test_programs_at_the_same_time_do_not_disturb_each_other() -> None:
    found = []
    callers = [threading.Thread(target=lambda: found.append(runs_right())) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [True] * 4


def test_without_helpers_the_caller_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    alone = team.Team()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with alone.gathered(3) as num_helpers:
        assert num_helpers == 0
    with alone.gathered(3) as num_helpers:  # it is given back
        assert num_helpers == 0


def test_helpers_that_another_has_are_not_waited_for() -> None:
    with team.TEAM.gathered(2) as mine, team.TEAM.gathered(2) as others:
        assert (mine > 0, others) == (True, 0)
        assert runs_right(num_runs=1)


class Looking:
    """A kernel that looks, when it is compiled, whether another program could have helpers."""

    def __init__(self, kernel: SharedKernel) -> None:
        self._kernel = kernel
        self.has_helpers = False

    @cached_property
    def address(self) -> int:
        with team.TEAM.gathered(2) as num_helpers:
            self.has_helpers = num_helpers > 0
        return self._kernel.address

    def run(self, task: Array) -> None:
        assert self.address
        self._kernel.run(task)


def test_helpers_are_free_while_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, passes_on = Looking(program._run_steps), Looking(_pass_on)
    monkeypatch.setattr(program, "_run_steps", runs)
    rows = np.zeros((2, NUM_CELLS), np.int64)
    (step,) = steps(rows)
    Program([replace(step, kernel=passes_on)]).run()
    assert (rows[1] == 1).all()
    assert (passes_on.has_helpers, runs.has_helpers) == (True, True)


def test_who_wants_helpers_compiles_what_they_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers end with the process, whatever they are compiling then."""
    helps, compilers = team._help, []

    class Helping:
        @cached_property
        def address(self) -> int:
            compilers.append(threading.current_thread())
            return helps.address

        def run(self, task: Array) -> None:
            assert self.address
            helps.run(task)

    monkeypatch.setattr(team, "_help", Helping())
    with team.Team().gathered(2):
        pass
    assert compilers == [threading.current_thread()]
