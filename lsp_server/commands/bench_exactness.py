"""Drafters on against drafters off, token by token, on real prompts. The count that differs must be 0."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

import typer

from completion_engine.decoding.ending import NoRules
from completion_engine.decoding.loop import Decoding
from completion_engine.engine import CompletionEngine
from completion_engine.request import CompletionRequest, MemorySetting, Progress
from lsp_server.commands.local_engine import Sample, context_of
from lsp_server.commands.terminal import show_figures
from ngram_cache import NgramIndex


@dataclass(frozen=True, slots=True)
class ExactnessOptions:
    """How each prompt is continued: tokens, and the setting repositoryMemory."""

    tokens_asked: int
    memory: MemorySetting = "auto"


@dataclass(slots=True)
class ExactnessReport:
    """Sums over prompts of one way of drafting against plain decoding."""

    num_prompts: int = 0
    num_tokens: int = 0
    num_forwards: int = 0
    accepted_by_source: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    @property
    def num_differing(self) -> int:
        """Number of prompts with any token that differs."""
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
            "accepted_by_source": dict(self.accepted_by_source),
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
        self.accepted_by_source.update(on.stats.accepted_by_source)
        self.ratios.append(ratio)
        if on.tokens[:num_tokens] != off.tokens[:num_tokens]:
            self.differing.append(sample.name)


def measure_exactness(
    tree: CompletionEngine,
    samples: Sequence[Sample],
    index: NgramIndex,
    given: ExactnessOptions,
    report: Progress,
) -> dict[str, Any]:
    """Compare `tree`, its chains and plain decoding with plain decoding, as one JSON object."""
    drafted = {"tree": tree, "chain": tree.beside(drafts_trees=False)}
    drafted["plain"] = tree.beside(drafters=())  # its ratio to plain decoding shows the noise

    def tell(done: Mapping[str, ExactnessReport]) -> None:
        num_differing = sum(found.num_differing for found in done.values())
        report(f"Comparing, {num_differing} differ", done["tree"].num_prompts, len(samples))

    plain = tree.beside(drafters=())
    found = compare(drafted, plain, samples, given, index=index, progress=tell)
    facts = tree.describe()
    return {
        **{f"{name}_{key}": value for name, done in found.items() for key, value in done.as_dict().items()},
        "bench": "exactness",
        "is_exact": not any(one.differing or one.num_prompts < len(samples) for one in found.values()),
        "prompts_asked": len(samples),
        **asdict(given),
        **{name: facts[name] for name in ("target", "device", "dtype", "exactness", "pass_ms")},
    }


def show_exactness(found: Mapping[str, Any], *, json: bool) -> None:
    """Show what `measure_exactness` returned. Raises typer.Exit with code 1 if any token differs."""
    show_figures(found, title="With and without drafters, same target, token by token", json=json)
    if not found["is_exact"]:
        raise typer.Exit(1)


def compare(  # noqa: PLR0913 - engines, prompts, and how they are continued
    drafted: Mapping[str, CompletionEngine],
    plain: CompletionEngine,
    samples: Iterable[Sample],
    given: ExactnessOptions,
    *,
    index: NgramIndex | None = None,
    progress: Callable[[Mapping[str, ExactnessReport]], None] = lambda _: None,
) -> dict[str, ExactnessReport]:
    """Decode every sample with all engines, which share one target, in turn, and compare the tokens.

    With an `index`, its snippets go in front of each prompt. A prompt's keys and values are computed once and
    copied. Ctrl+C ends it with what is compared by then. Raises ValueError where `plain` is among the others:
    the second time it would answer from its cache.
    """
    if any(engine is plain for engine in drafted.values()):
        raise ValueError("an engine cannot be compared with itself; take another one on the same target")
    reports, first = {name: ExactnessReport() for name in drafted}, next(iter(drafted.values()))
    with suppress(KeyboardInterrupt):
        for sample in samples:
            where = sample.prefix, sample.suffix, sample.language, sample.document
            request = CompletionRequest(*where, index=index, deadline_ms=0, repository_memory=given.memory)
            request = replace(request, context=context_of(first, request, "releases"))
            off, plain_s = _timed(plain, request, given.tokens_asked)
            for name, engine in drafted.items():
                engine.prepare_context(request, plain)
                on, drafted_s = _timed(engine, request, given.tokens_asked)
                reports[name].add(sample, on, off, plain_s / max(1e-9, drafted_s))
            progress(reports)
    return reports


def _timed(engine: CompletionEngine, request: CompletionRequest, max_tokens: int) -> tuple[Decoding, float]:
    engine.prepare_context(request)
    begin = time.perf_counter()
    done = engine.write(request, NoRules(), max_tokens)
    return done, time.perf_counter() - begin
