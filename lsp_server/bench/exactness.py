"""Drafters on against drafters off, token by token, on real prompts. The count that differs must be 0."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from completion_engine.decoding import Decoding
from completion_engine.engine import CompletionEngine
from completion_engine.request import CompletionRequest
from lsp_server.bench.prompts import Sample
from ngram_cache import NgramIndex


class NoRules:
    """Writes to the end of the infill or to the limit: nothing in the text stops it."""

    def check(self, generated: str) -> None:
        """Never stops."""

    def boundary(self, generated: str) -> int:
        """All of it counts."""
        return len(generated)


@dataclass(slots=True)
class ExactnessReport:
    """What an exactness run found. A pair is one prompt decoded with and without drafters."""

    num_prompts: int = 0
    num_tokens: int = 0
    num_forwards: int = 0
    num_differing: int = 0
    differing: list[str] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """One JSON object."""
        ordered = sorted(self.ratios)
        return {
            "num_prompts": self.num_prompts,
            "num_tokens": self.num_tokens,
            "num_differing": self.num_differing,
            "differing": self.differing,
            "tokens_per_pass": round(self.num_tokens / max(1, self.num_forwards), 3),
            "speedup_median": round(median(ordered), 3) if ordered else 0.0,
            "speedup_p1": round(ordered[len(ordered) // 100], 3) if ordered else 0.0,
        }


def compare(  # noqa: PLR0913 - two engines, what to ask them, how much, and whom to tell
    drafted: CompletionEngine,
    plain: CompletionEngine,
    samples: Iterable[Sample],
    max_tokens: int,
    *,
    index: NgramIndex | None = None,
    progress: Callable[[ExactnessReport], None] = lambda _: None,
) -> ExactnessReport:
    """Decode every sample with both engines, which share one target, in turn, and compare the tokens."""
    report = ExactnessReport()
    for sample in samples:
        request = CompletionRequest(sample.prefix, sample.suffix, sample.language, sample.name, deadline_ms=0)
        pair, seconds = [], []
        for engine, repository in ((drafted, index), (plain, None)):
            engine.write(replace(request, index=repository), NoRules(), 1)  # the prompt is warm from here on
            begin = time.perf_counter()
            pair.append(engine.write(replace(request, index=repository), NoRules(), max_tokens))
            seconds.append(time.perf_counter() - begin)
        _record(report, sample, pair[0], pair[1], seconds)
        progress(report)
    return report


def _record(
    report: ExactnessReport, sample: Sample, on: Decoding, off: Decoding, seconds: list[float]
) -> None:
    # A last pass may write past the limit; both are compared up to the shorter one's end.
    num_tokens = min(len(on.tokens), len(off.tokens))
    report.num_prompts += 1
    report.num_tokens += on.stats.num_forwards + on.stats.num_accepted
    report.num_forwards += on.stats.num_forwards
    report.ratios.append(seconds[1] / max(1e-9, seconds[0]))
    if on.tokens[:num_tokens] != off.tokens[:num_tokens]:
        report.num_differing += 1
        report.differing.append(sample.name)
