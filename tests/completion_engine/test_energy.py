"""Energy is read where every counter can be read, and nothing is said elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from completion_engine.energy import EnergyMeter, find_meter
from completion_engine.engine import CompletionEngine
from completion_engine.request import Cancellation, CancelledError, CompletionRequest

RANGE = 1_000_000_000


def domain(powercap: Path, folder: str, name: str, energy: int) -> Path:
    place = powercap / folder
    place.mkdir(parents=True)
    (place / "name").write_text(f"{name}\n")
    (place / "max_energy_range_uj").write_text(f"{RANGE}\n")
    (place / "energy_uj").write_text(f"{energy}\n")
    return place / "energy_uj"


def spend(counter: Path, microjoules: int) -> None:
    counter.write_text(f"{(int(counter.read_text()) + microjoules) % RANGE}\n")


def written(before: int, after: int) -> Callable[[], int]:
    """Returns the number of written tokens before and after a measurement."""
    return iter((before, after)).__next__


def test_all_processors_count_and_their_parts_do_not_count_twice(tmp_path: Path) -> None:
    first, second = (domain(tmp_path, f"intel-rapl:{n}", f"package-{n}", 5) for n in (0, 1))
    parts = [domain(tmp_path, "intel-rapl:0:0", "core", 5), domain(tmp_path, "intel-rapl:2", "psys", 5)]
    meter = find_meter("cpu", tmp_path)
    with meter.measured(written(3, 11)):
        spend(first, 3_000_000)
        spend(second, 1_000_000)
        for part in parts:
            spend(part, 100_000_000)
    assert meter.describe() == {"source": "rapl", "joules_per_token": 0.5, "num_tokens": 8}


def test_a_counter_that_begins_anew_goes_on(tmp_path: Path) -> None:
    counter = domain(tmp_path, "intel-rapl:0", "package-0", RANGE - 1_000_000)
    meter = find_meter("cpu", tmp_path)
    with meter.measured(written(0, 4)):
        spend(counter, 4_000_000)
    described = meter.describe()
    assert described is not None
    assert described["joules_per_token"] == 1.0


def nothing(_powercap: Path) -> None:
    return


def unreadable(powercap: Path) -> None:
    domain(powercap, "intel-rapl:0", "package-0", 5)
    domain(powercap, "intel-rapl:1", "package-1", 5).unlink()


def nonsense(powercap: Path) -> None:
    domain(powercap, "intel-rapl:0", "package-0", 5).write_text("none")


@pytest.mark.parametrize("prepare", [nothing, unreadable, nonsense])
def test_where_nothing_can_be_read_nothing_is_said(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    prepare(tmp_path)
    meter = find_meter("cpu", tmp_path)
    with meter.measured(written(0, 4)):
        pass
    assert meter.describe() is None


def test_a_counter_that_is_taken_away_takes_its_figures_with_it(tmp_path: Path) -> None:
    counter = domain(tmp_path, "intel-rapl:0", "package-0", 5)
    meter = find_meter("cpu", tmp_path)
    with meter.measured(written(0, 4)):
        pass
    assert meter.describe() is not None
    counter.unlink()
    with meter.measured(written(0, 4)):
        pass
    assert meter.describe() is None


def test_what_ends_before_its_time_has_taken_energy_all_the_same(tmp_path: Path) -> None:
    counter = domain(tmp_path, "intel-rapl:0", "package-0", 5)
    meter = find_meter("cpu", tmp_path)
    with pytest.raises(CancelledError), meter.measured(written(0, 2)):
        spend(counter, 3_000_000)
        raise CancelledError
    with meter.measured(written(0, 0)):
        spend(counter, 1_000_000)
    assert meter.describe() == {"source": "rapl", "joules_per_token": 2.0, "num_tokens": 2}


def test_tokens_count_once_where_they_are_written_be_it_in_idle_time(
    make_engine: Callable[..., CompletionEngine], tmp_path: Path
) -> None:
    engine = make_engine()
    domain(tmp_path, "intel-rapl:0", "package-0", 5)
    engine.energy = find_meter("cpu", tmp_path)
    request = CompletionRequest("def add(first, second):\n    ret", "\n", "python", "a.py", deadline_ms=0.0)
    engine.prefetch(request, writes=True)
    while engine.idle(Cancellation()):
        pass
    foreseen = engine.describe()["energy"]["num_tokens"]
    asked = engine.complete(request)
    assert (asked.stats.num_written, asked.stats.num_forwards) == (0, 0)
    assert 0 < asked.stats.num_tokens <= foreseen
    assert engine.describe()["energy"]["num_tokens"] == foreseen


def test_an_engine_tells_its_energy_only_where_there_is_a_counter(
    make_engine: Callable[..., CompletionEngine], tmp_path: Path
) -> None:
    engine = make_engine()
    request = CompletionRequest("def add(first, second):\n", "\n", "python", "a.py", deadline_ms=0.0)
    engine.energy = EnergyMeter("rapl", ())
    engine.complete(request)
    assert "energy" not in engine.describe()
    counter = domain(tmp_path, "intel-rapl:0", "package-0", 5)
    engine.energy = find_meter("cpu", tmp_path)
    engine.complete(CompletionRequest("class Reader:\n", "\n", "python", "b.py", deadline_ms=0.0))
    assert engine.describe()["energy"]["source"] == "rapl"
    assert counter.exists()


def test_a_gpu_is_found_by_its_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML counts all GPUs, torch those that CUDA_VISIBLE_DEVICES leaves."""
    asked: list[str] = []
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: asked.append(uuid) or "handle",
        nvmlDeviceGetTotalEnergyConsumption=lambda _: 5,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda at: SimpleNamespace(uuid=f"of-{at}"))
    assert find_meter("cuda:1").counts
    assert asked == ["GPU-of-1"]
