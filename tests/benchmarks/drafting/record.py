"""Records traces: completes real samples with a target while all drafters are asked at every position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from completion_engine.decoding.ending import NoRules
from completion_engine.drafting.drafts import Drafter, DraftScope
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.engine import CompletionEngine
from completion_engine.request import CompletionRequest
from lsp_server.commands.local_engine import Sample
from ngram_cache import NgramIndex
from tests.benchmarks.drafting.trace import Recorder, Trace, Traces
from tests.benchmarks.peers.tasks import widened


def record(
    engine: CompletionEngine,
    drafters: Mapping[str, Drafter],
    samples: Iterable[Sample],
    max_tokens: int,
    index: NgramIndex | None,
    progress: Callable[[int], None] = lambda _: None,
) -> Traces:
    """Traces of `max_tokens` tokens after each sample, with several lines removed if it lacks one.

    `drafters` serve no other caller meanwhile. A sample's own file is not drafted from.
    """
    recorder = Recorder(list(drafters.values()))
    recording = CompletionEngine(engine.config, engine.target, engine.tokenizer, {"recorder": recorder})
    traces: list[Trace] = []
    for sample in map(widened, samples):
        ngram = drafters.get("ngram")
        if isinstance(ngram, NgramDrafter):
            ngram.enter(DraftScope("", "", index, sample.document))
        request = CompletionRequest(
            sample.prefix, sample.suffix, sample.language, sample.document, deadline_ms=0
        )
        recording.prepare(request)
        recording.write(request, NoRules(), max_tokens)
        traces.append(recorder.trace(sample.name))
        progress(len(traces))
    target = engine.target
    costs = target.costs_from(1, target.max_branches)
    step_ms = {name: drafter.step_ms for name, drafter in drafters.items() if drafter.step_ms}
    return Traces(engine.config.target, str(target.device), costs, step_ms, tuple(traces))
