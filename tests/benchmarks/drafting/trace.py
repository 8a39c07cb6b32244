"""The drafts of every source at every position of real completions, and the target's text.

Owns the recording and its file. Does not depend on a policy: a trace holds all drafts.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from completion_engine.drafting.drafts import Allowed, Draft, Drafter, DraftToken
from completion_engine.errors import UserError
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.passes import Costs

_STEP_SURVIVAL = 0.02  # a costly drafter is recorded down to this probability
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class TracedDrafts:
    """One position: all drafts, and the milliseconds that each drafter took for them."""

    drafts: tuple[Draft, ...]
    ms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Trace:
    """One completion. `asked[at]` was drafted before the target wrote `tokens[at]`; equally long."""

    name: str
    tokens: tuple[int, ...]
    asked: tuple[TracedDrafts, ...]


@dataclass(frozen=True, slots=True)
class Traces:
    """Completions of one target, in the order of recording, with what its passes cost when all was quiet.

    `step_ms` is the price of one more depth by source, for sources that have one.
    """

    target: str
    device: str
    costs: Costs
    step_ms: Mapping[str, float]
    traces: tuple[Trace, ...]


class Recorder(Drafter):
    """A drafter that asks others, notes what they say and proposes nothing: every position is visited."""

    def __init__(self, drafters: Sequence[Drafter]) -> None:
        super().__init__()
        self._drafters = drafters
        self._asked: list[TracedDrafts] = []
        self._written: list[int] = []

    def trace(self, name: str) -> Trace:
        """The completion that was written since `begin`."""
        count = min(len(self._asked), len(self._written))
        return Trace(name, tuple(self._written[:count]), tuple(self._asked[:count]))

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:
        """See `Drafter.begin`."""
        self._asked, self._written = [], []
        for drafter in self._drafters:
            drafter.begin(prompt, cache)

    def extend(self, tokens: Sequence[int]) -> None:
        """See `Drafter.extend`."""
        self._written += tokens
        for drafter in self._drafters:
            drafter.extend(tokens)

    def drafts(self, max_tokens: int, allowed: Allowed, min_probability: float) -> list[Draft]:
        """See `Drafter.drafts`."""
        if not self._asked:
            self._written = []  # the cache held these tokens already
        found: list[Draft] = []
        ms: dict[str, float] = {}
        for drafter in self._drafters:
            begin = time.perf_counter()
            drafts = drafter.drafts(max_tokens, allowed, _STEP_SURVIVAL if drafter.step_ms else 0.0)
            took = (time.perf_counter() - begin) * 1e3
            for source in {guess.source for draft in drafts for guess in draft[:1]}:
                ms[source] = ms.get(source, 0.0) + took
            found += drafts
        self._asked.append(TracedDrafts(tuple(found), ms))
        return []

    def end(self) -> None:
        """See `Drafter.end`."""
        for drafter in self._drafters:
            drafter.end()


def save(traces: Traces, path: Path) -> None:
    """Write traces as gzipped JSON lines. Raises UserError where that cannot be done."""
    head = {
        "format": _FORMAT,
        "target": traces.target,
        "device": traces.device,
        "pass_ms": {str(width): ms for width, ms in traces.costs.pass_ms.items()},
        "branch_ms": traces.costs.branch_ms,
        "max_branches": traces.costs.max_branches,
        "step_ms": dict(traces.step_ms),
    }
    try:
        with gzip.open(path, "wt", encoding="utf-8") as file:
            for line in (head, *map(_as_json, traces.traces)):
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror}.", advice="Choose another place."
        ) from error


def load(path: Path) -> Traces:
    """Read what `save` wrote. Raises UserError for anything else."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return _parsed(*map(json.loads, file))
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} holds no traces: {error!r}.", advice="Record them again.") from error


def _parsed(head: Mapping[str, Any], *lines: Mapping[str, Any]) -> Traces:
    if head["format"] != _FORMAT:
        raise ValueError(f"format {head['format']}")
    pass_ms = {int(width): float(ms) for width, ms in head["pass_ms"].items()}
    costs = Costs(pass_ms, float(head["branch_ms"]), int(head["max_branches"]))
    return Traces(head["target"], head["device"], costs, head["step_ms"], tuple(map(_from_json, lines)))


def _as_json(trace: Trace) -> dict[str, Any]:
    asked = [[[list(map(astuple, draft)) for draft in at.drafts], dict(at.ms)] for at in trace.asked]
    return {"name": trace.name, "tokens": trace.tokens, "asked": asked}


def _from_json(found: Mapping[str, Any]) -> Trace:
    asked = tuple(
        TracedDrafts(tuple(tuple(DraftToken(*guess) for guess in draft) for draft in drafts), ms)
        for drafts, ms in found["asked"]
    )
    return Trace(found["name"], tuple(found["tokens"]), asked)
