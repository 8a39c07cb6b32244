"""Earlier loads on this machine: measured passes, and marks of loads that never ended.

Owns these files, beside the models. One that is damaged, or cannot be written, is as if nothing was measured.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import time
import uuid
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from completion_engine.choice.choice import JUDGED_ROWS, RECENT_LOADS, Passes
from completion_engine.runtime import parse_json, whole_file

logger = logging.getLogger(__name__)

FILE_NAME = "passes.json"
_MAX_BYTES = 64_000
_MAX_SETTINGS = 5
# Loads that are remembered of a setting. A model that the log calls too slow is loaded no more. Its times may
# be those of a busy machine: after 50 loads of others they are forgotten, and it gets another trial.
MAX_LOADS = 50

_Load = tuple[str, str, float]  # model, setting, milliseconds; the newest last
_SUFFIX = ".loading"
_MARK = re.compile(r"(.+)\.([0-9]+-[0-9]+-[0-9a-f]{32})\.loading")
_MAX_ATTEMPTS = 3  # an editor that was closed meanwhile leaves a mark too
_FORGOTTEN_S = 86_400.0
_SECONDS_APART = 2.0  # when a process began is known to a second, by a clock that is set now and then


class PassLog:
    """Loads by model and by their conditions: device, precision, cores, power."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME

    def record(self, target: str, setting: str, pass_ms: Mapping[int, float]) -> None:
        """Store the pass times (ms) of a loaded model, by number of rows.

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
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(self._path) as file:
                file.write(json.dumps({"loads": kept[-_MAX_SETTINGS * MAX_LOADS :]}).encode())
        except OSError as error:
            logger.debug("What passes took is not kept: %s", error)

    def of(self, setting: str) -> dict[str, Passes]:
        """Return the shortest pass of each model's last loads in a setting."""
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


def _checked(load: Any) -> _Load:
    """A load as it was written. Raises TypeError or ValueError for anything else."""
    target, setting, ms = load
    if not (isinstance(target, str) and isinstance(setting, str) and 0 < float(ms) < float("inf")):
        raise ValueError(load)
    return target, setting, float(ms)


class Attempts:
    """`<model>.<process>.loading` while a load is under way; one that ends in order takes its file away.

    A file of an ended process belongs to a load that never ended.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def of(self, target: str) -> Iterator[None]:
        """Around a load. If the file cannot be written, nothing is remembered."""
        began_s = psutil.Process().create_time()  # a later process may have the number of this one
        mark = self._folder / f"{target}.{os.getpid()}-{began_s:.0f}-{uuid.uuid4().hex}{_SUFFIX}"
        with contextlib.suppress(OSError):
            mark.touch()
        try:
            yield
        finally:
            for ended in (mark, *self._never_ended(target)):
                with contextlib.suppress(OSError):
                    ended.unlink()

    def refused(self, targets: list[str]) -> dict[str, str]:
        """Return the models whose loading recently ended the process several times, each with a sentence."""
        return {
            target: "loading it crashed the process again and again"
            for target in targets
            if sum(map(_is_fresh, self._never_ended(target))) >= _MAX_ATTEMPTS
        }

    def _never_ended(self, target: str) -> list[Path]:
        return [mark for mark, process in marks_in(self._folder, [target]) if not _runs(process)]


def marks_in(folder: Path, targets: Collection[str]) -> list[tuple[Path, str]]:
    """Return the files of loads of these models, each with the process in its name."""
    try:
        found = [(path, _MARK.fullmatch(path.name)) for path in folder.iterdir()]
    except OSError:
        return []
    return [(path, match[2]) for path, match in found if match and match[1] in targets]


def _is_fresh(mark: Path) -> bool:
    try:
        return abs(time.time() - mark.stat().st_mtime) < _FORGOTTEN_S
    except OSError:
        return False


def _runs(process: str) -> bool:
    """Whether the process of a mark is still there."""
    try:
        number, began_s, _ = process.split("-")
        found = psutil.Process(int(number))
        is_it = abs(found.create_time() - int(began_s)) < _SECONDS_APART
        return is_it and found.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError, OverflowError):
        return False
