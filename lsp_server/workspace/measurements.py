"""Counters and latencies of one server, since it started, a summary of those that are kept by day, and the
reported states of indexes.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from completion_engine.request import STAGES, CompletionStats
from ngram_cache.redaction import blank_parts

# Percentiles cover this number of last completions, and the list of latencies this number.
NUM_KEPT = 512
NUM_LISTED = 64

# Response times are counted in buckets; each ends 19 % above the one before, the last at 27 s.
_BUCKETS_PER_OCTAVE, _NUM_BUCKETS = 4, 60
_RESPONSE = "response_bucket_"
_SOURCE = "source_"


IndexState = Literal["waiting", "building", "ready", "error"]


@dataclass(frozen=True, slots=True)
class FolderReport:
    """The published state of a folder's index: `done` of `total` files while it is built."""

    folder: Path
    state: IndexState = "waiting"
    path: str = ""
    done: int = 0
    total: int = 0
    num_files: int = 0
    num_tokens: int = 0
    problem: str = ""


def _recent() -> deque[float]:
    return deque(maxlen=NUM_KEPT)


@dataclass(frozen=True, slots=True)
class Answered:
    """The last suggestion that was returned, and the text before it, which may name a secret in it."""

    id: str
    before: str
    text: str
    response_ms: float
    stats: CompletionStats

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values. Without a pass of the target, tokens per pass are 0."""
        num_written, num_forwards = self.stats.num_written, self.stats.num_forwards
        return {
            "id": self.id,
            "text": blank_parts(self.before, self.text)[1],
            "response_ms": round(self.response_ms, 3),
            "num_tokens": self.stats.num_tokens,
            "num_written": num_written,
            "num_forwards": num_forwards,
            "tokens_per_pass": round(num_written / num_forwards, 3) if num_forwards else 0.0,
            "accepted_by_source": dict(self.stats.accepted_by_source),
        }


@dataclass(slots=True)
class Measurements:
    """All counters and latencies. Used on the event loop only."""

    num_requests: int = 0
    num_answered: int = 0
    num_empty: int = 0
    num_cancelled: int = 0
    num_superseded: int = 0
    num_outdated: int = 0
    num_failures: int = 0
    num_shown: int = 0
    num_accepted: int = 0
    num_partially_accepted: int = 0
    num_accepted_chars: int = 0
    num_focused: int = 0
    num_changes: int = 0
    num_edit_requests: int = 0
    num_edits_proposed: int = 0
    num_edits_shown: int = 0
    num_edits_accepted: int = 0
    num_edits_rejected: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    accepted_by_source: Counter[str] = field(default_factory=Counter)
    stages_ms: dict[str, deque[float]] = field(default_factory=lambda: {stage: _recent() for stage in STAGES})
    response_ms: deque[float] = field(default_factory=_recent)
    response_buckets: Counter[str] = field(default_factory=Counter)
    change_ms: deque[float] = field(default_factory=_recent)
    cancel_to_idle_ms: deque[float] = field(default_factory=_recent)
    edit_ms: deque[float] = field(default_factory=_recent)
    last: Answered | None = None

    def add_completion(self, stats: CompletionStats) -> None:
        """Count one completion that the engine finished."""
        for stage in STAGES:
            self.stages_ms[stage].append(stats.ms.get(stage, 0.0))
        for name in ("num_tokens", "num_written", "num_forwards", "num_drafted", "num_accepted"):
            self.tokens[name] += getattr(stats, name)
        for name in ("num_prompt_tokens", "num_cached_tokens"):
            self.tokens[name] += getattr(stats, name)
        self.accepted_by_source.update(stats.accepted_by_source)

    def add_response(self, ms: float) -> None:
        """Count the time from a request to its answer."""
        self.response_ms.append(ms)
        self.response_buckets[bucket_of(ms)] += 1

    def usage(self) -> Counter[str]:
        """The counts that are kept by day. In each pass the target writes one token itself."""
        counts = Counter({name: getattr(self, name) for name in _KEPT_BY_DAY})
        counts.update(self.response_buckets)
        counts.update({source_count(source): number for source, number in self.accepted_by_source.items()})
        counts[source_count("target")] += self.tokens["num_forwards"]
        return counts

    def add_cancellation(self, ms: float) -> None:
        """Count the time from a cancellation to the moment the engine was free again."""
        self.cancel_to_idle_ms.append(ms)

    def add_edit(self, ms: float) -> None:
        """Count a proposed edit, and the time from its request."""
        self.num_edits_proposed += 1
        self.edit_ms.append(ms)

    def add_change(self, ms: float) -> None:
        """Count the time one change of a document took."""
        self.num_changes += 1
        self.change_ms.append(ms)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values; times in milliseconds."""
        counters = {name: getattr(self, name) for name in _COUNTERS}
        return {
            "counters": counters,
            "tokens": dict(self.tokens),
            "rules": dict(self.rules),
            "accepted_by_source": dict(self.accepted_by_source),
            "ms": {stage: percentiles(values) for stage, values in self.stages_ms.items()},
            "response_ms": percentiles(self.response_ms),
            "recent_response_ms": [round(ms, 3) for ms in tuple(self.response_ms)[-NUM_LISTED:]],
            "last": self.last.as_dict() if self.last else None,
            "edit_ms": percentiles(self.edit_ms),
            "change_ms": percentiles(self.change_ms),
            "cancel_to_idle_ms": percentiles(self.cancel_to_idle_ms),
        }


_KEPT_BY_DAY = ("num_answered", "num_accepted", "num_partially_accepted", "num_accepted_chars")
_COUNTERS = tuple(name for name in Measurements.__dataclass_fields__ if name.startswith("num_"))


def percent(done: int, total: int) -> int | None:
    """Return `done` of `total` in whole percent; None if the total is 0, which means unknown."""
    return min(100, 100 * done // total) if total else None


_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def percentiles(values: Iterable[float]) -> dict[str, float]:
    """Return count, percentiles by nearest rank, and maximum, to 3 decimals; all 0 without values."""
    ordered = sorted(values)
    ranks = {name: int(share * len(ordered)) for name, share in _SHARES.items()}  # below the count, always
    found = {name: round(ordered[rank], 3) if ordered else 0.0 for name, rank in ranks.items()}
    return {"count": len(ordered), **found, "max": round(ordered[-1], 3) if ordered else 0.0}


def bucket_of(response_ms: float) -> str:
    """The name of the count that a response time belongs to."""
    number = math.ceil(_BUCKETS_PER_OCTAVE * math.log2(max(response_ms, 1.0)))
    return f"{_RESPONSE}{min(number, _NUM_BUCKETS - 1):02d}"


def source_count(source: str) -> str:
    """The name of the count of tokens from a source."""
    return f"{_SOURCE}{source}"


def usage_summary(counts: Mapping[str, int]) -> dict[str, Any]:
    """The figures of some days for a person, as plain JSON values.

    A key is saved for each accepted character, less one for each acceptance. Times are the upper ends of
    their buckets, None without a response.
    """
    num_acceptances = counts.get("num_accepted", 0) + counts.get("num_partially_accepted", 0)
    buckets = sorted((int(name.removeprefix(_RESPONSE)), number) for name, number in _of(counts, _RESPONSE))
    return {
        "num_keys_saved": max(0, counts.get("num_accepted_chars", 0) - num_acceptances),
        "num_accepted": num_acceptances,
        "num_answered": counts.get("num_answered", 0),
        "p50_ms": _bucket_percentile(buckets, 0.5),
        "p95_ms": _bucket_percentile(buckets, 0.95),
        "tokens_by_source": {name.removeprefix(_SOURCE): number for name, number in _of(counts, _SOURCE)},
    }


def _of(counts: Mapping[str, int], kind: str) -> Iterator[tuple[str, int]]:
    return ((name, number) for name, number in counts.items() if name.startswith(kind))


def _bucket_percentile(buckets: list[tuple[int, int]], share: float) -> float | None:
    """The upper end of the bucket that holds it."""
    rank = math.floor(share * sum(number for _, number in buckets))
    for bucket, number in buckets:
        if rank < number:
            return round(2 ** (bucket / _BUCKETS_PER_OCTAVE), 1)
        rank -= number
    return None
