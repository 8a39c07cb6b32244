"""How often the first suggestion is the rest of the line that a person wrote, with and without ingredients.

One engine answers at the same positions in several ways, in turn: as an editor has it after a moment's rest,
with parts of that off, and with the plain prefix/suffix prompt that most tools build. The files of a
position's project are indexed; its own is known as an editor has it: without the rest of the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from completion_engine.context.choosing import INGREDIENTS
from completion_engine.decoding.run import NoRules
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.windows import PREFIX_CHARS, SUFFIX_CHARS
from completion_engine.request import CompletionRequest, MemoryWish
from completion_engine.suggestions.rules import Stop
from lsp_server.tools.bench.context import context_of
from lsp_server.tools.bench.judging import QualityReport
from lsp_server.tools.bench.prompts import Sample, repository_index
from ngram_cache import NgramIndex

_MAX_TOKENS = 48
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Way:
    """A way of asking: what stands in front, whether memory is mixed in; or the plain prompt."""

    name: str
    ingredients: tuple[str, ...] = INGREDIENTS
    memory: MemoryWish = "auto"
    is_plain: bool = False


PLAIN = Way("plain prefix/suffix prompt", (), is_plain=True)
NO_CONTEXT = Way("without context", ())
DEFAULT = Way("Slipstream")
SWITCHES = (*INGREDIENTS, "memory")


def ways_without(switches: Sequence[str]) -> tuple[Way, ...]:
    """The ways that are always measured, and one for each of `SWITCHES` that is to be off by itself."""
    left_out = (
        Way(
            f"without {name}",
            tuple(other for other in INGREDIENTS if other != name),
            "off" if name == "memory" else "auto",
        )
        for name in switches
    )
    return (PLAIN, NO_CONTEXT, *left_out, DEFAULT)


class FirstLine(NoRules):
    """Writes one line."""

    def check(self, generated: str) -> Stop | None:
        """Stops behind the first line end."""
        end = generated.find("\n")
        return None if end < 0 else Stop("single-line", end)


def measure_quality(
    engine: CompletionEngine, samples: Sequence[Sample], root: Path, ways: Sequence[Way], progress: Progress
) -> list[QualityReport]:
    """A report for each way. `samples` are positions in the projects, each a folder below `root`."""
    reports = {way: QualityReport(way.name) for way in ways}
    projects: dict[str, NgramIndex] = {}
    for num_done, sample in enumerate(samples):
        project = sample.document.partition("/")[0]
        if project not in projects:
            projects[project] = repository_index(root / project, engine.tokenizer.encode_many)
        for way, report in reports.items():
            ask = _plain_answer if way.is_plain else _answer
            text, num_prompt_tokens = ask(engine, sample, projects[project], way)
            report.add(sample, text, num_prompt_tokens)
        progress(num_done + 1, len(samples))
    return list(reports.values())


def _answer(engine: CompletionEngine, sample: Sample, index: NgramIndex, way: Way) -> tuple[str, int]:
    """The suggestion that an editor would show, however long it takes, and the length of its prompt."""
    project, _, path = sample.document.partition("/")
    request = CompletionRequest(
        sample.prefix,
        sample.suffix,
        sample.language,
        document=f"{way.name} {sample.document}",
        index=index,
        indexed_as=path,
        max_tokens=_MAX_TOKENS,
        deadline_ms=0,
        patience_ms=float("inf"),
        repository_memory=way.memory,
    )
    request = replace(request, context=context_of(engine, request, project, way.ingredients))
    engine.prepare_context(request)
    completion = engine.complete(request)
    engine.forget(request.document)
    return completion.text, completion.stats.num_prompt_tokens


def _plain_answer(engine: CompletionEngine, sample: Sample, _index: NgramIndex, _way: Way) -> tuple[str, int]:
    """The target alone with the prompt `<prefix> before <suffix> after <middle>`, nothing healed."""
    tokenizer, fim, kind = engine.tokenizer, engine.tokenizer.fim, engine.target.device.type
    before = tokenizer.encode(sample.prefix[-PREFIX_CHARS[kind] :])
    after = tokenizer.encode(sample.suffix[: SUFFIX_CHARS[kind]])
    tokens = [fim.prefix, *before, fim.suffix, *after, fim.middle] if fim else before
    request = CompletionRequest(sample.prefix, sample.suffix, sample.language, f"plain {sample.name}")
    writing = engine.write(request, FirstLine(), _MAX_TOKENS, Prompt(tuple(tokens), b""))
    engine.forget(request.document)
    return writing.written.text.partition("\n")[0], len(tokens)


COLUMNS = ("", "positions", "exact", "similarity", "no worse to parse", "prompt tokens")


def table_rows(found: Mapping[str, Sequence[QualityReport]]) -> list[list[str]]:
    """A row for each language and way."""
    rows = []
    for language, reports in found.items():
        for report in reports:
            shown = report.as_dict()
            exact, similarity, parses = (f"{shown[name]:.3f}" for name in ("exact", "similarity", "parses"))
            count = str(shown["num_positions"])
            name = f"{language}: {shown['name']}"
            rows.append([name, count, exact, similarity, parses, str(shown["prompt_tokens"])])
    return rows
