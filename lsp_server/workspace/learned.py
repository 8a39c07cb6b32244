"""What this user's windows learned of how sure each target's texts are, kept in one small file of the user's.

Shared by all windows of a process; other processes add to the same file. It holds counts and no text. A file
that does not read well counts for nothing. Must not know how anything is judged.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from completion_engine.calibration import NUM_BINS, SHIPPED, Calibration, Evidence, learned
from lsp_server.sharing.log import log_path
from lsp_server.supervision import on_own_thread

_VERSION = 1
_MAX_TARGETS = 16
_MAX_BYTES = 64 << 10
_MAX_COUNT = 10_000.0
_NUM_UNTOLD = 64  # tokens that are kept in memory before the file is told


def learned_path() -> Path:
    """Where it lies: beside the log, with which it is removed."""
    return log_path().with_name("learned.json")


class Learned:
    """Calibrations by target. Used on the event loop only; the file is read and written beside it."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or learned_path()
        self._stored: Mapping[str, Evidence] = read_learned(self._path)
        self._new: dict[str, Evidence] = {}
        self._is_storing = False
        self._task: asyncio.Task[None] | None = None
        self._calibrations: dict[str, Calibration] = {}

    def calibration_of(self, target: str) -> Calibration:
        """What holds for a target: what is shipped, moved by what was learned."""
        if target not in self._calibrations:
            evidence = self._stored.get(target, Evidence()) + self._new.get(target, Evidence())
            self._calibrations[target] = learned(evidence) if evidence.num_tokens else SHIPPED
        return self._calibrations[target]

    def add(self, target: str, share: float, *, is_right: bool) -> None:
        """A token of that share was right, or wrong."""
        self._new[target] = self._new.get(target, Evidence()).plus(share, is_right=is_right)
        self._calibrations.pop(target, None)

    def store_if_due(self) -> None:
        """Have the file told in the background, once there is so much that it should know."""
        if not self._is_storing and sum(found.num_tokens for found in self._new.values()) >= _NUM_UNTOLD:
            self._task = asyncio.get_running_loop().create_task(self.store())

    async def store(self) -> None:
        """Add what is new to what the file says by now; what was deleted there is forgotten here."""
        if self._is_storing or not self._new:
            return
        self._is_storing = True
        try:
            new, self._new = self._new, {}
            self._stored = await on_own_thread(_add_to, self._path, new)
            self._calibrations.clear()
        finally:
            self._is_storing = False


def forget_learned(path: Path) -> bool:
    """Delete what was learned; False where there was nothing. Raises OSError."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _add_to(path: Path, new: Mapping[str, Evidence]) -> Mapping[str, Evidence]:
    told = read_learned(path)
    for target, evidence in new.items():
        told[target] = told.pop(target, Evidence()) + evidence
    with contextlib.suppress(OSError):
        _write(path, told)
    return told


def read_learned(path: Path) -> dict[str, Evidence]:
    """The counts in a file by target; none where it does not read well."""
    try:
        with path.open("rb") as file:
            told = json.loads(file.read(_MAX_BYTES))
        if told["version"] != _VERSION:
            return {}
        return {
            str(target): _evidence(counts) for target, counts in list(told["targets"].items())[:_MAX_TARGETS]
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _evidence(told: Mapping[str, Any]) -> Evidence:
    return Evidence(_counts(told["right"]), _counts(told["wrong"]))


def _counts(told: Any) -> tuple[float, ...]:
    counts = tuple(map(float, told))
    if len(counts) != NUM_BINS or not all(
        math.isfinite(count) and 0 <= count <= _MAX_COUNT for count in counts
    ):
        raise ValueError("these are no counts")
    return counts


def _write(path: Path, told: Mapping[str, Evidence]) -> None:
    targets = {
        target: {"right": evidence.right, "wrong": evidence.wrong}
        for target, evidence in list(told.items())[-_MAX_TARGETS:]
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        new.write_text(json.dumps({"version": _VERSION, "targets": targets}), encoding="ascii")
        new.chmod(0o600)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
