"""Loads that never ended: after two, the stored files are made anew; after three, another model is tried.

Owns a file beside the models for each running load.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil

_SUFFIX = ".loading"
_MARK = re.compile(r"(.+)\.([0-9]+-[0-9]+-[0-9a-f]{32})\.loading")
_MAY_BE_FILES = 2  # an editor that was closed meanwhile leaves one too
_MAX_ATTEMPTS = _MAY_BE_FILES + 1
_FORGOTTEN_S = 86_400.0
_SECONDS_APART = 2.0  # when a process began is known to a second, by a clock that is set now and then


class Attempts:
    """`<model>.<process>.loading` while a load is under way; one that ends in order takes its file away.

    A file of an ended process belongs to a load that never ended.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def of(self, target: str) -> Iterator[None]:
        """Around a load. If the file cannot be written, nothing is remembered."""
        mark = self._folder / f"{target}.{_this_process()}-{uuid.uuid4().hex}{_SUFFIX}"
        with contextlib.suppress(OSError):
            mark.touch()
        try:
            yield
        finally:
            for ended in (mark, *self._never_ended(target)):
                with contextlib.suppress(OSError):
                    ended.unlink()

    def refused(self, targets: list[str]) -> dict[str, str]:
        """The models whose loading ended the process again and again lately, and that it did."""
        return {
            target: "loading it crashed the process again and again"
            for target in targets
            if self._num_failed(target) >= _MAX_ATTEMPTS
        }

    def needs_new_files(self, target: str) -> bool:
        """Whether the model's loading ended the process twice lately: what is stored for it may be why."""
        return self._num_failed(target) >= _MAY_BE_FILES

    def _num_failed(self, target: str) -> int:
        return sum(map(_is_fresh, self._never_ended(target)))

    def _never_ended(self, target: str) -> list[Path]:
        return [mark for mark, process in marks_in(self._folder, [target]) if not _runs(process)]


def marks_in(folder: Path, targets: Collection[str]) -> list[tuple[Path, str]]:
    """The files of loads of these models, each with what it tells of its process."""
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


def _this_process() -> str:
    """Its number, and the second in which it began, as a later process may have that number."""
    return f"{os.getpid()}-{psutil.Process().create_time():.0f}"


def _runs(process: str) -> bool:
    """Whether the process of a mark is still there."""
    try:
        number, began_s, _ = process.split("-")
        found = psutil.Process(int(number))
        is_it = abs(found.create_time() - int(began_s)) < _SECONDS_APART
        return is_it and found.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError, OverflowError):
        return False
