"""Energy per token, by the counters of processors and GPUs that can be read.

Owns finding and reading them. Does not depend on what the energy was for. The counters include all programs
that run on the machine meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

POWERCAP = Path("/sys/class/powercap")
_MICROJOULE, _MILLIJOULE = 1e-6, 1e-3

Read = Callable[[], float]  # joules since some moment, never less than before


class RaplCounter:
    """One processor's counter in `folder`. It wraps around after minutes or hours."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "energy_uj"
        self._range = int((folder / "max_energy_range_uj").read_text())
        self._last = int(self._file.read_text())
        self._total = 0

    def __call__(self) -> float:
        """Return the joules since the counter was found. Raises OSError, ValueError."""
        now = int(self._file.read_text())
        self._total += now - self._last if now >= self._last else now + self._range - self._last
        self._last = now
        return self._total * _MICROJOULE


class EnergyMeter:
    """Joules per written token, over all that was measured; none unless every counter can be read."""

    def __init__(self, source: str, counters: tuple[Read, ...]) -> None:
        self.source = source
        self._counters = counters
        self._joules = 0.0
        self._num_tokens = 0

    @property
    def counts(self) -> bool:
        """Whether the machine has counters that can be read."""
        return bool(self._counters)

    @contextmanager
    def measured(self, num_tokens: Callable[[], int]) -> Iterator[None]:
        """Measure the block, however it ends; `num_tokens` returns the tokens that are written so far."""
        begin, num_before = self._read(), num_tokens()
        try:
            yield
        finally:
            end = self._read()
            if begin is not None and end is not None:
                self._joules += end - begin
                self._num_tokens += num_tokens() - num_before

    def describe(self) -> dict[str, Any] | None:
        """Return figures for users and programs; None while there are none."""
        if not self._num_tokens or not self.counts:
            return None
        joules = round(self._joules / self._num_tokens, 4)
        return {"source": self.source, "joules_per_token": joules, "num_tokens": self._num_tokens}

    def _read(self) -> float | None:
        try:
            return sum(counter() for counter in self._counters)
        except Exception:  # a counter is gone, whichever library reads it: figures without it would mislead
            self._counters = ()
            return None


def find_meter(device: str, powercap: Path = POWERCAP) -> EnergyMeter:
    """Return the meter of the processors, or of the GPU of `device` ("cuda:1"), that run the target."""
    if device.startswith("cuda"):
        return EnergyMeter("nvml", _gpu_counter(device))
    return EnergyMeter("rapl", _processor_counters(powercap))


def _processor_counters(powercap: Path) -> tuple[Read, ...]:
    """Return one for each processor; none if one cannot be read, which often takes root."""
    try:
        folders = [path for path in sorted(powercap.glob("intel-rapl:*")) if path.name.count(":") == 1]
        packages = [path for path in folders if (path / "name").read_text().startswith("package")]
        return tuple(RaplCounter(path) for path in packages)
    except (OSError, ValueError):
        return ()


def _gpu_counter(device: str) -> tuple[Read, ...]:
    """Return the counter of torch's `device`, by its UUID: NVML's own numbers ignore CUDA_VISIBLE_DEVICES."""
    try:
        import pynvml  # noqa: PLC0415 - useless without a GPU
        import torch  # noqa: PLC0415 - loaded already where there is a target on a GPU

        uuid = torch.cuda.get_device_properties(int(device.partition(":")[2] or 0)).uuid
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")

        def read() -> float:
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) * _MILLIJOULE

        read()
    except Exception:  # no library, no driver, or a GPU without a counter: then nothing is shown
        return ()
    return (read,)
