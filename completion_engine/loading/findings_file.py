"""Stores what loading found out about a target, beside its packed weights, for a week.

A file is valid for one set of weights, kernels and libraries and for one processor, which its name
identifies. If it cannot be read, the findings are measured again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
import torch

from completion_engine.cpu.kernels.dot import instruction_sets
from completion_engine.cpu.kernels.kernel_cache import flaw_of, folder_for, machine_mark
from completion_engine.runtime import whole_file
from completion_engine.target_model.passes import Findings
from completion_engine.target_model.threads import thread_counts

logger = logging.getLogger(__name__)

_VALID_S = 7 * 86_400
_MAX_BYTES = 1 << 16
# parts of the engine whose code influences the findings
_PARTS = ("cpu", "target_model")
_TIMES = ("pass_ms", "branch_ms", "chunk_ms", "thread_paces")
_FLAGS = ("is_row_invariant", "verifies_drafts", "verifies_trees", "are_settled")


def findings_path(packed: Path, capacity: int) -> Path:
    """Return the path of the findings for the weights at `packed`, with caches of `capacity` positions."""
    facts = (
        packed.name, capacity, _code(), machine_mark(), instruction_sets(), thread_counts(),
        torch.__version__, numba.__version__,
    )  # fmt: skip
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    return packed.with_name(f"{packed.stem}-{digest}.json")


def read_findings(path: Path, now: float) -> Findings | None:
    """Return findings that are at most a week old; None without any. `now` in seconds."""
    try:
        status = path.lstat()
        if flaw_of(status) or status.st_size > _MAX_BYTES or not 0 <= now - status.st_mtime < _VALID_S:
            return None
        return _findings_in(json.loads(path.read_text(encoding="ascii")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        logger.warning("Findings in %s are damaged and made anew: %s", path, error)
        return None


def store_findings(path: Path, findings: Findings) -> None:
    """Store findings for later loads. If this fails, they are measured again."""
    if not path.parent.is_dir():
        return
    told = {name: getattr(findings, name) for name in (*_FLAGS, *_TIMES)}
    with suppress(OSError), whole_file(path) as file:
        file.write(json.dumps(told).encode("ascii"))


@cache
def _code() -> str:
    """Return a hash of the code that computes a pass, and that compares and times passes."""
    package = Path(__file__).parents[1]
    return folder_for([file for part in _PARTS for file in (package / part).rglob("*.py")]).name


def _findings_in(told: Mapping[str, Any]) -> Findings:
    flags = {name: told[name] for name in _FLAGS}
    if not all(isinstance(flag, bool) for flag in flags.values()):
        raise ValueError("a verdict is neither true nor false")
    return Findings(
        **flags,
        pass_ms=_by_number(told["pass_ms"]),
        branch_ms=_checked(told["branch_ms"]),
        chunk_ms=_checked(told["chunk_ms"]),
        thread_paces=_by_number(told["thread_paces"]),
    )


def _by_number(told: Mapping[str, Any]) -> dict[int, float]:
    found = {int(name): _checked(value) for name, value in told.items()}
    if not found or min(found) < 1:
        raise ValueError("a table is empty or of no numbers")
    return found


def _checked(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{number} is not a time")
    return number
