"""Drafters on against drafters off, token by token, on real prompts. The count that differs must be 0."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from completion_engine.decoding.ending import NoRules
from completion_engine.decoding.loop import Decoding
from completion_engine.engine import CompletionEngine
from completion_engine.request import CompletionRequest, MemoryWish
from lsp_server.commands.sample_positions import Sample, context_of
from ngram_cache import NgramIndex

_REPOSITORY = "releases"


@dataclass(slots=True)
class ExactnessReport:
    """What an exactness run found for one way of drafting, prompt by prompt, against plain decoding."""

    num_prompts: int = 0
    num_tokens: int = 0
    num_forwards: int = 0
    accepted_by_source: dict[str, int] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    @property
    def num_differing(self) -> int:
        """Prompts with any token that differs."""
        return len(self.differing)

    def as_dict(self) -> dict[str, Any]:
        """One JSON object."""
        ordered = sorted(self.ratios)
        return {
            "num_prompts": self.num_prompts,
            "num_tokens": self.num_tokens,
            "num_differing": self.num_differing,
            "differing": self.differing,
            "tokens_per_pass": round(self.num_tokens / max(1, self.num_forwards), 3),
            "accepted_by_source": self.accepted_by_source,
            "speedup_median": round(median(ordered), 3) if ordered else 0.0,
            "speedup_p1": round(ordered[len(ordered) // 100], 3) if ordered else 0.0,
        }

    def add(self, sample: Sample, on: Decoding, off: Decoding, ratio: float) -> None:
        """Count one prompt, decoded with and without drafters."""
        # A last pass may write past the limit; both are compared up to the shorter one's end.
        num_tokens = min(len(on.tokens), len(off.tokens))
        self.num_prompts += 1
        self.num_tokens += on.stats.num_forwards + on.stats.num_accepted
        self.num_forwards += on.stats.num_forwards
        for source, count in on.stats.accepted_by_source.items():
            self.accepted_by_source[source] = self.accepted_by_source.get(source, 0) + count
        self.ratios.append(ratio)
        if on.tokens[:num_tokens] != off.tokens[:num_tokens]:
            self.differing.append(sample.name)


def compare(  # noqa: PLR0913 - engines, what to ask them, how, and whom to tell
    drafted: Mapping[str, CompletionEngine],
    plain: CompletionEngine,
    samples: Iterable[Sample],
    max_tokens: int,
    *,
    index: NgramIndex | None = None,
    memory: MemoryWish = "auto",
    temperature: float = 0.0,
    progress: Callable[[Mapping[str, ExactnessReport]], None] = lambda _: None,
) -> dict[str, ExactnessReport]:
    """Decode every sample with all engines, which share one target, in turn, and compare the tokens.

    With an `index` all of them have what it holds for a sample in front of their prompts. A prompt's keys and
    values are computed once and copied: drafts come behind it. Ctrl+C ends it with what is compared by then.
    Raises ValueError where `plain` is among the others: the second time it answers from its cache.
    """
    if any(engine is plain for engine in drafted.values()):
        raise ValueError("an engine cannot be compared with itself; take another one on the same target")
    reports = {name: ExactnessReport() for name in drafted}
    with suppress(KeyboardInterrupt):
        for seed, sample in enumerate(samples):
            request = CompletionRequest(
                sample.prefix,
                sample.suffix,
                sample.language,
                sample.document,
                temperature=temperature,
                seed=seed,
                deadline_ms=0,
                index=index,
                repository_memory=memory,
            )
            request = replace(request, context=context_of(plain, request, _REPOSITORY))
            off, plain_s = _timed(plain, request, max_tokens)
            for name, engine in drafted.items():
                engine.prepare_context(request, plain)
                on, drafted_s = _timed(engine, request, max_tokens)
                reports[name].add(sample, on, off, plain_s / max(1e-9, drafted_s))
            progress(reports)
    return reports


def _timed(engine: CompletionEngine, request: CompletionRequest, max_tokens: int) -> tuple[Decoding, float]:
    engine.prepare_context(request)
    begin = time.perf_counter()
    done = engine.write(request, NoRules(), max_tokens)
    return done, time.perf_counter() - begin
