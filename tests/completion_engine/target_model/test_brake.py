"""The brake ends a pass before its next kernel."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numba import carray

from completion_engine.cpu.kernels.language import Array, SharedKernel, task_of
from completion_engine.cpu.kernels.program import Program, Step
from completion_engine.cpu.kernels.vectors import int64_at
from completion_engine.request import Cancellation, CancelledError
from completion_engine.target_model.brake import Brake


@SharedKernel
def _count_and_pull(task: Any) -> None:
    """Adds one to a cell, and writes to the word of a brake where it is given one."""
    carray(int64_at(task[1]), 1)[0] += 1
    if task[2]:
        carray(int64_at(task[2]), 1)[0] = 1


def counting(cells: Array, pulls_at: int = -1, word: int = 0) -> Program:
    """Each step counts in a cell of its own; step `pulls_at` asks for the end."""
    tasks = [
        task_of([int(cells[at:].ctypes.data), word if at == pulls_at else 0]) for at in range(len(cells))
    ]
    return Program([Step(_count_and_pull, task, (cells,), is_shared=False) for task in tasks])


@pytest.mark.parametrize(("pulls_at", "num_run"), [(0, 1), (2, 3), (3, 4)])
def test_the_step_that_runs_is_the_last(pulls_at: int, num_run: int) -> None:
    cells, brake = np.zeros(5, np.int64), Brake()
    with brake.pulled_by(Cancellation(), lambda: True):
        program = counting(cells, pulls_at, brake.address)
        with pytest.raises(CancelledError):
            program.run(brake)
    assert cells.tolist() == [1] * num_run + [0] * (5 - num_run)


def test_who_pulls_in_the_last_step_comes_too_late() -> None:
    cells, brake = np.zeros(5, np.int64), Brake()
    with brake.pulled_by(Cancellation(), lambda: True):
        counting(cells, 4, brake.address).run(brake)
    assert cells.all()


@pytest.mark.parametrize(("is_in_vain", "num_run"), [(True, 0), (False, 5)])
def test_only_work_that_is_in_vain_ends(is_in_vain: bool, num_run: int) -> None:
    cells, brake, cancellation = np.zeros(5, np.int64), Brake(), Cancellation()
    program = counting(cells)
    with brake.pulled_by(cancellation, lambda: is_in_vain):
        cancellation.cancel()
        if is_in_vain:
            with pytest.raises(CancelledError):
                program.run(brake)
        else:
            program.run(brake)
    assert cells.sum() == num_run


def test_outside_of_its_block_nobody_ends_anything() -> None:
    cells, brake, cancellation = np.zeros(5, np.int64), Brake(), Cancellation()
    with brake.pulled_by(cancellation, lambda: True):
        pass
    cancellation.cancel()
    assert brake.address == 0
    counting(cells).run(brake)
    with brake.pulled_by(Cancellation(), lambda: True):
        counting(cells).run(brake)
    assert cells.tolist() == [2] * 5


def test_blocks_within_each_other_have_words_of_their_own() -> None:
    brake, outer, inner = Brake(), Cancellation(), Cancellation()
    words = []
    with brake.pulled_by(outer, lambda: True):
        words.append(brake.address)
        with brake.pulled_by(inner, lambda: True):
            words.append(brake.address)
        words.append(brake.address)
    assert [a == b for a, b in pairwise(words)] == [False, False]
    assert words[0] == words[2]
