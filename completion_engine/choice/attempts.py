"""Loads that never ended: a model whose load was killed for lack of memory is not tried again.

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
_MAX_ATTEMPTS = 2  # an editor that was closed meanwhile leaves one too
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
            target: "loading it crashed the process twice"
            for target in targets
            if sum(map(_is_fresh, self._never_ended(target))) >= _MAX_ATTEMPTS
        }

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
