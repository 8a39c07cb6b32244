"""A device that returns at once and computes on, and the brake that ends a pass before its next kernel."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from numba import carray

from completion_engine.cpu.kernels.language import Array, SharedKernel, task_of
from completion_engine.cpu.kernels.program import Program, Step
from completion_engine.cpu.kernels.vectors import int64_at
from completion_engine.request import Cancellation, CancelledError
from completion_engine.target_model.in_flight import Brake, InFlight, Mark
from completion_engine.target_model.passes import PassClock

PASS_MS = 20.0


class Device:
    """Work that is queued is done later, when `now_ms` has come that far; each pass takes `PASS_MS`."""

    def __init__(self) -> None:
        self.now_ms, self.free_at_ms, self.most_queued = 0.0, 0.0, 0.0

    def work(self) -> None:
        self.free_at_ms = max(self.free_at_ms, self.now_ms) + PASS_MS
        self.most_queued = max(self.most_queued, self.free_at_ms - self.now_ms)

    def mark(self) -> Mark:
        return DeviceMark(self, max(self.free_at_ms, self.now_ms))


class DeviceMark:
    def __init__(self, device: Device, at_ms: float) -> None:
        self._device, self.at_ms = device, at_ms

    def is_passed(self) -> bool:
        """Each look takes the host a millisecond."""
        self._device.now_ms += 1.0
        return self._device.now_ms >= self.at_ms

    def ms_since(self, earlier: Mark) -> float:
        assert isinstance(earlier, DeviceMark)
        return self.at_ms - earlier.at_ms


@pytest.fixture
def device() -> Device:
    return Device()


def test_the_clock_does_not_drift_with_passes_that_return_at_once(device: Device) -> None:
    """Timed by the host, 18 such passes drive the level to 0.29."""
    clock, brake = PassClock({8: PASS_MS}, 0.0), Brake()
    flight = InFlight(brake, device.mark)
    for _ in range(18):
        flight.run(device.work, lambda ms: [clock.record(PASS_MS, ms), None][1])
    flight.wait()
    assert clock.level == pytest.approx(1.0, abs=0.01)


def test_at_most_one_pass_is_queued(device: Device) -> None:
    flight = InFlight(Brake(), device.mark)
    for _ in range(5):
        flight.run(device.work, lambda _: None)
    assert device.most_queued <= PASS_MS


def test_a_wait_ends_when_the_brake_is_pulled_and_nothing_more_is_started(device: Device) -> None:
    brake, cancellation, times = Brake(), Cancellation(), []
    flight = InFlight(brake, device.mark)
    flight.run(device.work, times.append)
    with brake.pulled_by(cancellation, lambda: True):
        cancellation.cancel()
        with pytest.raises(CancelledError):
            flight.run(device.work, times.append)
    assert (times, device.free_at_ms) == ([], PASS_MS)
    flight.wait()
    assert times == [PASS_MS]


def test_work_that_the_host_waits_for_is_reported_at_once() -> None:
    times: list[float] = []
    InFlight(Brake(), lambda: Mark(torch.device("cpu"))).run(lambda: None, times.append)
    assert len(times) == 1
    assert 0 <= times[0] < 1000


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
