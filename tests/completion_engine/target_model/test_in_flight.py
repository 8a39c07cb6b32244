"""A device that returns at once and computes on: its passes are timed by itself, one at a time."""

from __future__ import annotations

import pytest

from completion_engine.request import Cancellation, CancelledError
from completion_engine.target_model.in_flight import Brake, HostMark, InFlight, Mark
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
    InFlight(Brake(), HostMark).run(lambda: None, times.append)
    assert len(times) == 1
    assert 0 <= times[0] < 1000
