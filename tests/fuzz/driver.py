"""Runs one kind of hostile input: the cost of each in time and memory, and broken oracles.

Does not depend on the inputs: a kind is a function that makes one from random numbers and judges it.
"""

from __future__ import annotations

import faulthandler
import random
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_INPUT_S = 5.0  # seconds of processor time; a machine that is busy with other work changes nothing
MAX_INPUT_BYTES = 256 << 20
HANG_S = 120.0
WATCH_EVERY_S = 1.0  # setting the watch starts a thread, which takes longer than most inputs
MEMORY_EVERY = 16  # measuring memory makes an input several times slower
MAX_FAILURES = 5


@dataclass(frozen=True, slots=True)
class Budget:
    """Where a run ends, whatever comes first."""

    num_inputs: int
    seconds: float


@dataclass(slots=True)
class Result:
    """What a run of one kind found. `failures` are seeds with what went wrong."""

    kind: str
    num_inputs: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    largest_bytes: int = 0
    failures: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "kind": self.kind,
            "num_inputs": self.num_inputs,
            "seconds": round(self.seconds, 1),
            "slowest_s": round(self.slowest_s, 3),
            "largest_mb": round(self.largest_bytes / (1 << 20), 1),
            "failures": self.failures,
        }


class Run:
    """Inputs of one kind, one after the other. A hang ends the process with every thread's stack."""

    def __init__(self, kind: str, check: Callable[[random.Random], None], budget: Budget) -> None:
        self.result = Result(kind)
        self._check, self._budget = check, budget
        self._begin_s = time.monotonic()
        self._watched_s = -WATCH_EVERY_S

    @property
    def has_ended(self) -> bool:
        """Whether the budget is spent, or enough has failed."""
        result = self.result
        result.seconds = time.monotonic() - self._begin_s
        is_spent = result.num_inputs >= self._budget.num_inputs or result.seconds >= self._budget.seconds
        return is_spent or len(result.failures) >= MAX_FAILURES

    def take(self, name: str, rng: random.Random) -> bool:
        """Judge the input that these numbers make; whether it kept to its oracle."""
        self._watch()
        try:
            _run_one(self._check, rng, self.result)
        except Exception:
            self.result.failures.append(f"{name}\n{traceback.format_exc(limit=-6)}")
            return False
        finally:
            self.result.num_inputs += 1
        return True

    def _watch(self) -> None:
        now_s = time.monotonic()
        if now_s - self._watched_s >= WATCH_EVERY_S:
            self._watched_s = now_s
            faulthandler.dump_traceback_later(HANG_S, exit=True, file=sys.__stderr__)


def run_kind(kind: str, check: Callable[[random.Random], None], budget: Budget, seed: str) -> Result:
    """Inputs from random numbers; the seed names them all, or the only one."""
    run = Run(kind, check, budget)
    try:
        while not run.has_ended:
            name = seed if budget.num_inputs == 1 else f"{seed}:{kind}:{run.result.num_inputs}"
            run.take(name, random.Random(name))  # noqa: S311 - no secret
    finally:
        faulthandler.cancel_dump_traceback_later()
    return run.result


def _run_one(check: Callable[[random.Random], None], rng: random.Random, result: Result) -> None:
    measures_memory = result.num_inputs % MEMORY_EVERY == 1
    if measures_memory:
        tracemalloc.start()
    before = time.process_time()
    try:
        check(rng)
    finally:
        used_s = time.process_time() - before
        _, peak = tracemalloc.get_traced_memory() if measures_memory else (0, 0)
        tracemalloc.stop()
    result.slowest_s = max(result.slowest_s, used_s)
    result.largest_bytes = max(result.largest_bytes, peak)
    assert used_s < MAX_INPUT_S, f"{used_s:.1f} s of processor time"
    assert peak < MAX_INPUT_BYTES, f"{peak >> 20} MB at its peak"
