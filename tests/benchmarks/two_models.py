"""The larger model with and without what the smaller one wrote: `python -m tests.benchmarks.two_models`.

At each place the smaller model writes first, as with the target `auto`. Then the larger one completes the
same request twice, with its prompt computed: in an engine that drafts from what the smaller one wrote, and in
one that does not.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.load_engine import load_engine
from completion_engine.request import Completion, CompletionRequest
from lsp_server.commands.local_engine import Sample, context_of, drawn_samples
from lsp_server.commands.terminal import interruptible, progress_bar, show_figures
from lsp_server.workspace.measurements import percentiles
from lsp_server.workspace.settings import Settings
from ngram_cache import NgramIndex
from tests.benchmarks import command_line as cli
from tests.benchmarks.released_sources import released_modules, released_sources
from tests.benchmarks.samples import from_folder, repository_index

_EAGERNESS = Settings().eagerness

Typed = Annotated[
    int, typer.Option("--typed", min=0, help="Characters of the smaller model's text that are typed.")
]


@dataclass(slots=True)
class Sums:
    """The larger model's completions of one engine."""

    num_forwards: int = 0
    num_written: int = 0
    num_in_one_pass: int = 0
    ms: list[float] = field(default_factory=list)

    def add(self, completion: Completion, ms: float) -> None:
        """Count one completion, which took `ms`."""
        self.num_forwards += completion.stats.num_forwards
        self.num_written += completion.stats.num_written
        self.num_in_one_pass += completion.stats.num_forwards <= 1
        self.ms.append(ms)

    def as_dict(self) -> dict[str, Any]:
        """The figures, for one JSON object."""
        took = percentiles(self.ms)
        return {
            "tokens_per_pass": round(self.num_written / max(1, self.num_forwards), 3),
            "share_in_one_pass": round(self.num_in_one_pass / max(1, len(self.ms)), 3),
            "ms_mean": round(sum(self.ms) / max(1, len(self.ms)), 1),
            **{f"ms_{name}": round(took[name], 1) for name in ("p50", "p95")},
        }


@dataclass(slots=True)
class Comparison:
    """Sums over places: both engines of the larger model, and where the two models differ."""

    alone: Sums = field(default_factory=Sums)
    shared: Sums = field(default_factory=Sums)
    num_tokens: int = 0
    num_differing: int = 0
    num_models_differ: int = 0
    first_differing: Counter[int] = field(default_factory=Counter)

    def add(self, small: Completion, alone: Completion, shared: Completion) -> None:
        """Count the texts at one place: the larger model's must be equal, token by token."""
        tokens, drafted, wrote = (tokens_of(completion) for completion in (alone, shared, small))
        self.num_tokens += len(tokens)
        self.num_differing += sum(one != other for one, other in zip(tokens, drafted, strict=False))
        self.num_differing += abs(len(tokens) - len(drafted)) + (alone.text != shared.text)
        self.num_models_differ += small.text != alone.text
        pairs = enumerate(zip(tokens, wrote, strict=False))
        at = next((at for at, ((token, _), (other, _)) in pairs if token != other), None)
        if at is not None:
            self.first_differing[at] += 1

    def as_dict(self) -> dict[str, Any]:
        """One JSON object; `first_differing` counts places by the first token in which the models differ."""
        num_places = len(self.alone.ms)
        return {
            "num_places": num_places,
            "num_tokens": self.num_tokens,
            "num_differing": self.num_differing,
            **{f"alone_{name}": value for name, value in self.alone.as_dict().items()},
            **{f"shared_{name}": value for name, value in self.shared.as_dict().items()},
            "ms_ratio": round(sum(self.shared.ms) / max(1e-9, sum(self.alone.ms)), 3),
            "share_shown_differs": round(self.num_models_differ / max(1, num_places), 3),
            "first_differing": dict(sorted(self.first_differing.items())),
        }


def tokens_of(completion: Completion) -> list[tuple[str, float]]:
    """The written tokens of a completion as text, each with its probability."""
    found = completion.forecast
    starts = (0, *found.ends)
    texts = [found.text[start:end] for start, end in zip(starts, found.ends, strict=False)]
    return list(zip(texts, found.probabilities, strict=True))


def compare(
    small: CompletionEngine,
    large: CompletionEngine,
    samples: Sequence[Sample],
    index: NgramIndex,
    num_typed: int,
    progress: Callable[[int, int], None],
) -> Comparison:
    """Complete each sample by all engines, `small` first; `num_typed` characters of its text are typed."""
    alone, shared, found = large.beside(), large.beside(), Comparison()
    shared.share_recent(small)
    for at, sample in enumerate(samples):
        where = sample.prefix, sample.suffix, sample.language, sample.document
        request = CompletionRequest(*where, index=index, deadline_ms=0, eagerness=_EAGERNESS)
        request = replace(request, context=context_of(large, request, "releases"))
        small.prepare_context(request)
        written = small.complete(request)
        if len(written.text) < num_typed:
            continue
        request = replace(request, prefix=sample.prefix + written.text[:num_typed])
        alone.prepare_context(request)
        shared.prepare_context(request, alone)
        arms = {alone: found.alone, shared: found.shared}
        answers = {}
        for engine in (alone, shared) if at % 2 else (shared, alone):
            answers[engine], ms = timed(engine, request)
            arms[engine].add(answers[engine], ms)
        found.add(written, answers[alone], answers[shared])
        progress(at + 1, len(samples))
    return found


def timed(engine: CompletionEngine, request: CompletionRequest) -> tuple[Completion, float]:
    """A completion and its milliseconds."""
    begin = time.perf_counter()
    completion = engine.complete(request)
    return completion, (time.perf_counter() - begin) * 1e3


def two_models(
    *,
    prompts: cli.Prompts = 48,
    sources: cli.Sources = None,
    modules: Annotated[bool, typer.Option("--modules", help="Places in three released modules.")] = False,
    typed: Typed = 0,
    small: cli.Target = DEFAULT_TARGET,
    large: Annotated[str, typer.Option("--large")] = "qwen2.5-coder-1.5b",
    json: cli.Json = False,
) -> None:
    """Compare the larger model's completions with and without the smaller one's as a draft."""
    root = sources or released_sources()
    samples = drawn_samples(released_modules(), root, prompts) if modules else from_folder(root, prompts)
    with interruptible(), progress_bar(quiet=json) as report:
        first, target = (load_engine(EngineConfig(target=name), report) for name in (small, large))
        index = repository_index(root, target.tokenizer.encode_many)
        found = compare(
            first, target, samples, index, typed, lambda at, total: report("Comparing", at, total)
        )
    figures = {"bench": "two_models", "small": small, **cli.engine_facts(target), **found.as_dict()}
    show_figures(figures, title="The larger model with and without what the smaller one wrote", json=json)
    if found.num_differing:
        raise typer.Exit(1)


if __name__ == "__main__":
    cli.run(two_models)
