"""Loads that never ended: a model under which the process was killed, for want of memory, is left alone.

Owns a file beside the models for each load that is under way. Must not know how a model is loaded.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".loading"
_MAX_ATTEMPTS = 2  # an editor that was closed meanwhile leaves one behind too
_FORGOTTEN_S = 86_400.0


class Attempts:
    """Each unfinished load is a line in the model's file; a load that ends in order takes the file away."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def of(self, target: str) -> Iterator[None]:
        """Around a load. Where the file cannot be written nothing is remembered."""
        mark = self._folder / f"{target}{SUFFIX}"
        with contextlib.suppress(OSError), mark.open("a", encoding="utf-8") as file:
            file.write("begun\n")
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                mark.unlink()

    def refused(self, targets: list[str]) -> dict[str, str]:
        """The models whose loading ended the process again and again lately, and that it did."""
        return {target: "loading it ended the process twice" for target in targets if self._is_bad(target)}

    def _is_bad(self, target: str) -> bool:
        mark = self._folder / f"{target}{SUFFIX}"
        try:
            is_fresh = abs(time.time() - mark.stat().st_mtime) < _FORGOTTEN_S
            return is_fresh and len(mark.read_text(encoding="utf-8").splitlines()) >= _MAX_ATTEMPTS
        except (OSError, ValueError):
            return False
