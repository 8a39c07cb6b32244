"""Measured passes of earlier loads on this machine, kept beside the models.

Owns that file. One that is damaged, or cannot be written, is as if nothing was measured.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from completion_engine.choice.choice import Passes
from completion_engine.choice.prices import JUDGED_ROWS, RECENT_LOADS
from completion_engine.runtime import parse_json, whole_file

logger = logging.getLogger(__name__)

FILE_NAME = "passes.json"
_MAX_BYTES = 64_000
_MAX_SETTINGS = 5
# Loads that are remembered of a setting. A model that the log calls too slow is loaded no more. Its times may
# be those of a busy machine: after 50 loads of others they are forgotten, and it gets another trial.
MAX_LOADS = 50

_Load = tuple[str, str, float]  # model, setting, milliseconds; the newest last


class PassLog:
    """Loads by model and by their conditions: device, precision, cores, power."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME

    def record(self, target: str, setting: str, pass_ms: Mapping[int, float]) -> None:
        """A model was loaded, and these are its passes by rows.

        If several processes record at the same time, one record is kept.
        """
        wide = [ms for rows, ms in pass_ms.items() if rows >= JUDGED_ROWS]
        if not wide:
            return
        loads = [*self._read(), (target, setting, round(min(wide), 3))]
        kept: list[_Load] = []
        for load in reversed(loads):
            if sum(other[1] == load[1] for other in kept) < MAX_LOADS:
                kept.insert(0, load)
        try:
            self._write(kept[-_MAX_SETTINGS * MAX_LOADS :])
        except OSError as error:
            logger.debug("What passes took is not kept: %s", error)

    def of(self, setting: str) -> dict[str, Passes]:
        """The quickest of each model's last loads in a setting."""
        found: dict[str, deque[float]] = {}
        for target, known, ms in self._read():
            if known == setting:
                found.setdefault(target, deque(maxlen=RECENT_LOADS)).append(ms)
        return {target: Passes(min(times), len(times)) for target, times in found.items()}

    def _read(self) -> list[_Load]:
        try:
            with self._path.open("rb") as file:
                found = parse_json(file.read(_MAX_BYTES))
            return [_checked(load) for load in found["loads"]]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def _write(self, loads: list[_Load]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self._path) as file:
            file.write(json.dumps({"loads": loads}).encode())


def _checked(load: Any) -> _Load:
    """A load as it was written. Raises TypeError or ValueError for anything else."""
    target, setting, ms = load
    if not (isinstance(target, str) and isinstance(setting, str) and 0 < float(ms) < float("inf")):
        raise ValueError(load)
    return target, setting, float(ms)
