"""A pass takes fewer threads while others need the cores, and all of them again when those are free."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import psutil
import pytest
import torch

from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.measuring import threads_agree
from completion_engine.target_model.threads import (
    IdleCores,
    PassCores,
    ThreadGovernor,
    num_threads_here,
    take_free_threads,
    thread_counts,
    use_threads,
)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = num_threads_here()
    yield
    use_threads(before)


FREE = {4: 1.0, 2: 1.5, 1: 2.6}


def all_idle() -> float:
    return 64.0


def paces_of(
    governor: ThreadGovernor, world: dict[int, float], num_passes: int, start_s: float = 0.0
) -> list[float]:
    """Chosen paces if passes take the times in `world` by number of threads, ten passes a second."""
    found = []
    for at in range(num_passes):
        found.append(world[governor.num_threads])
        governor.record(found[-1], start_s + at / 10)
    return found


def test_it_starts_with_what_was_quickest_at_load() -> None:
    assert ThreadGovernor(FREE).num_threads == 4
    assert ThreadGovernor({2: 1.0, 1: 0.4}).num_threads == 1


@pytest.mark.parametrize(
    ("world", "wanted"),
    [
        pytest.param({4: 1.0, 2: 1.5, 1: 2.6}, 4, id="free"),
        pytest.param({4: 1.4, 2: 2.0, 1: 3.4}, 4, id="slower, but free"),
        pytest.param({4: 9.0, 2: 1.6, 1: 2.6}, 2, id="two cores taken"),
        pytest.param({4: 20.0, 2: 12.0, 1: 3.0}, 1, id="all cores taken"),
    ],
)
def test_it_ends_up_with_the_best_number(world: dict[int, float], wanted: int) -> None:
    governor = ThreadGovernor(FREE, all_idle)
    paces_of(governor, world, 40)
    late = paces_of(governor, world, 200, start_s=4.0)
    assert sum(pace == world[wanted] for pace in late) > 0.9 * len(late)


def test_a_machine_that_was_busy_at_load_gets_all_its_threads_later() -> None:
    governor = ThreadGovernor({2: 1.0, 1: 0.4}, all_idle)
    paces_of(governor, {2: 0.2, 1: 0.4}, 30)
    assert governor.num_threads == 2


@pytest.mark.parametrize("num_idle", [0.0, 0.6, 1.0, 1000.0])
def test_a_load_takes_the_cores_that_others_leave_idle(num_idle: float) -> None:
    num_threads = take_free_threads(lambda: num_idle)
    assert num_threads == num_threads_here() == torch.get_num_threads()
    assert num_threads == (max(thread_counts()) if num_idle == 1000 else 1)


def test_a_load_on_a_busy_machine_assumes_that_threads_share_the_work_and_tries() -> None:
    governor = ThreadGovernor({2: 0.5, 1: 1.0}, all_idle, num_threads=1)
    assert governor.num_threads == 1
    paces_of(governor, {2: 0.6, 1: 1.0}, 10)
    assert governor.num_threads == 2
    governor.record(3.0, 2.0)
    assert governor.num_threads == 1


def test_one_pass_that_takes_for_ever_is_enough_to_step_back() -> None:
    governor = ThreadGovernor({2: 1.0, 1: 1.6})
    governor.record(8.0, 0.0)
    assert governor.num_threads == 1


def test_one_slow_pass_is_not() -> None:
    governor = ThreadGovernor({2: 1.0, 1: 1.6})
    for at, pace in enumerate([1.0, 2.9, 1.0, 1.1]):
        governor.record(pace, at / 10)
    assert governor.num_threads == 2


def test_while_others_stay_it_tries_seldom() -> None:
    world = {2: 10.0, 1: 1.6}
    governor = ThreadGovernor({2: 1.0, 1: 1.6}, all_idle)
    paces = paces_of(governor, world, 1000)  # 100 seconds
    assert paces.count(10.0) <= 9
    assert 10.0 in paces[500:]  # and never gives up


def test_while_others_leave_no_core_it_does_not_try() -> None:
    world = {2: 10.0, 1: 1.6}
    free = 1.3
    governor = ThreadGovernor({2: 1.0, 1: 1.6}, lambda: free)
    assert paces_of(governor, world, 300).count(10.0) == 1
    free = 1.9
    world[2] = 1.0
    assert 1.0 in paces_of(governor, world, 300, start_s=30.0)


def times() -> tuple[float, float]:
    """Seconds that passed, and those that this process computed."""
    return time.monotonic(), time.process_time()


def compute(seconds: float) -> None:
    """Use this process' own processor time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_a_core_that_computes_for_passes_is_free_for_them() -> None:
    before = times()
    cores = PassCores()
    with cores.used_by(2):
        begun = times()
        compute(0.2)
        done = times()
    own_cores = cores()
    after = times()
    assert own_cores >= (done[1] - begun[1]) / (after[0] - before[0])
    assert own_cores <= (after[1] - before[1]) / (done[0] - begun[0])


def test_a_core_that_computes_something_else_is_not() -> None:
    cores = PassCores()
    with cores.used_by(0):  # others of this process compute while it runs
        compute(0.05)
    compute(0.05)
    assert cores() == 0.0


def test_a_pass_counts_while_threads_are_chosen_for_the_next() -> None:
    governor = ThreadGovernor(FREE, lambda: 2.75, num_threads=1)
    governor.chosen(1.0)
    with governor.computing():
        compute(0.2)
    assert governor.chosen(9.0) == 4


@pytest.mark.parametrize(("num_idle", "wanted"), [(0.9, 2), (0.6, 1)])
def test_more_threads_need_cores_beyond_those_that_there_are(num_idle: float, wanted: int) -> None:
    governor = ThreadGovernor({2: 1.0, 1: 1.6}, lambda: 1.0 + num_idle, num_threads=1)
    paces_of(governor, {2: 1.0, 1: 1.6}, 4, start_s=1.0)
    assert governor.num_threads == wanted


@pytest.mark.parametrize(("num_free", "wanted"), [(8.0, 4), (3.0, 4), (2.0, 2), (0.1, 1)])
def test_after_a_pause_it_takes_the_cores_that_others_leave(num_free: float, wanted: int) -> None:
    governor = ThreadGovernor(FREE, lambda: num_free)
    assert governor.chosen(1.0) == 4
    assert governor.chosen(9.0) == wanted == governor.num_threads


def test_idle_cores_are_those_of_this_machine() -> None:
    idle = IdleCores()
    time.sleep(0.1)
    assert 0.0 <= idle() <= (psutil.cpu_count() or 1) * 1.05


class Times(NamedTuple):
    """As Linux counts: guests' times are in `user` and `nice` too."""

    user: float = 0.0
    nice: float = 0.0
    idle: float = 0.0
    guest: float = 0.0
    guest_nice: float = 0.0


@pytest.mark.parametrize(
    "after",
    [
        Times(user=2.0, nice=1.0, idle=1.0),
        Times(user=2.0, nice=1.0, idle=1.0, guest=2.0),
        Times(user=2.0, nice=1.0, idle=1.0, guest=1.0, guest_nice=1.0),
    ],
    ids=["none", "guests", "niced guests"],
)
def test_cores_that_guests_use_are_counted_once(monkeypatch: pytest.MonkeyPatch, after: Times) -> None:
    times = iter([Times(), after])
    monkeypatch.setattr(psutil, "cpu_times", lambda: next(times))
    monkeypatch.setattr(psutil, "cpu_count", lambda: 8)
    assert IdleCores()() == pytest.approx(2.0)


def test_the_number_of_threads_changes_no_bit(target: LanguageModel) -> None:
    most = num_threads_here()
    assert threads_agree(target, ThreadGovernor({most: 1.0}), ThreadGovernor({1: 1.0}))


@pytest.mark.parametrize(("in_torch", "wanted"), [(True, 3), (False, 1)])
def test_torch_keeps_to_one_thread_where_it_computes_nothing_large(*, in_torch: bool, wanted: int) -> None:
    use_threads(3, in_torch=in_torch)
    assert (num_threads_here(), torch.get_num_threads()) == (3, wanted)


def test_each_thread_that_computes_has_a_number_of_its_own() -> None:
    use_threads(1)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(num_threads_here).result() == max(thread_counts())
        other.submit(use_threads, 3).result()
    assert num_threads_here() == 1
