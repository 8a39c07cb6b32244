"""The share of first suggestions that equal the rest of the original line, with and without ingredients.

One engine answers at the same positions in several ways, in turn: as an editor has it after a moment's rest,
with parts of that off, and with the plain prefix/suffix prompt that most tools build. Ways that show the
target the same prompt share its keys and values. The files of a position's project are indexed; its own is
known as an editor has it: without the rest of the line.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from completion_engine.context.snippet_choice import INGREDIENTS, usual_ingredients
from completion_engine.cutting.repeats import Stop
from completion_engine.decoding.ending import NoRules
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from completion_engine.prompting.prompt import Prompt
from completion_engine.request import Completion, CompletionRequest, MemorySetting, RepositoryContext
from completion_engine.text_window import TextWindow
from lsp_server.commands.local_engine import Sample, context_of
from lsp_server.workspace.settings import Settings
from ngram_cache import NgramIndex
from tests.benchmarks.judging import judge
from tests.benchmarks.quality.results import Asked, QualityResults
from tests.benchmarks.quality.text_probabilities import probabilities_of
from tests.benchmarks.samples import Position, repository_index

_MAX_TOKENS = 48
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Way:
    """A way of asking: by default but for what is `left_out`; with all there is; with the plain prompt."""

    name: str
    left_out: frozenset[str] = frozenset()
    has_all: bool = False
    is_plain: bool = False
    eagerness: float = 1.0

    @property
    def memory(self) -> MemorySetting:
        """Whether the repository's memory is mixed in."""
        return "off" if "memory" in self.left_out else "on" if self.has_all else "auto"

    def ingredients_in(self, language: str) -> tuple[str, ...]:
        """What its context is made of."""
        most = INGREDIENTS if self.has_all else usual_ingredients(language)
        return () if "context" in self.left_out else tuple(name for name in most if name not in self.left_out)


SWITCHES = (*INGREDIENTS, "context", "memory")
PLAIN = Way("plain prefix/suffix prompt", frozenset(SWITCHES), is_plain=True)
USUAL = Way("by default")
TYPING = Way("by default, while typing", eagerness=Settings().eagerness)
WHOLE = Way("with everything", has_all=True)
WAYS = {"typing": TYPING, "default": USUAL, "everything": WHOLE}  # in the order in which they ask


def named_way(name: str) -> Way:
    """The way of a name in `WAYS`. Raises UserError."""
    if name not in WAYS:
        raise UserError(f"Unknown: {name}.", advice=f"Choose from {', '.join(WAYS)}.")
    return WAYS[name]


def way_without(names: str) -> Way:
    """The way that lacks some of `SWITCHES`, joined by `+`. Raises UserError."""
    left_out = names.split("+")
    if unknown := [name for name in left_out if name not in SWITCHES]:
        raise UserError(f"Unknown: {unknown[0]}.", advice=f"Choose out of {', '.join(SWITCHES)}.")
    return Way(f"without {' and '.join(left_out)}", frozenset(left_out))


class FirstLine(NoRules):
    """Writes one line."""

    def stop(self, generated: str) -> Stop | None:
        """Stop after the first line end."""
        end = generated.find("\n")
        return None if end < 0 else Stop("single-line", end)


@dataclass(slots=True)
class QualityRun:
    """One engine, the ways to ask it, and how long it may go on. No new position is begun `until_s`."""

    engine: CompletionEngine
    ways: Sequence[Way]
    results: QualityResults
    until_s: float = float("inf")
    projects: dict[Path, NgramIndex] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """What the results are kept under."""
        facts = self.engine.describe()
        return f"{facts['target']} {facts['dtype']}, {facts['num_context_tokens']} tokens of context"

    def measure(self, positions: Sequence[Position], progress: Progress) -> None:
        """Ask at the positions where that is not done yet."""
        for num_done, position in enumerate(positions):
            language, sample = position.language, position.sample
            asked = {Asked(self.model, language, sample.name, way.name): way for way in self.ways}
            missing = {key: way for key, way in asked.items() if key not in self.results.found}
            if missing and time.monotonic() >= self.until_s:
                return
            self._ask(position, missing)
            progress(num_done + 1, len(positions))

    def _ask(self, position: Position, missing: Mapping[Asked, Way]) -> None:
        sample, request = position.sample, self._request_at(position)
        contexts: dict[tuple[str, ...], RepositoryContext | None] = {(): None}
        language = sample.language
        for key, way in missing.items():
            num_bits, ended = 0.0, {}
            if way.is_plain:
                text, num_prompt_tokens = plain_text(self.engine, sample, _document(sample, way))
                text = text.partition("\n")[0]
            else:
                ingredients = way.ingredients_in(language)
                if ingredients not in contexts:
                    project = sample.document.partition("/")[0]
                    contexts[ingredients] = context_of(self.engine, request, project, ingredients)
                asked = replace(
                    request,
                    document=_document(sample, way),
                    context=contexts[ingredients],
                    repository_memory=way.memory,
                    eagerness=way.eagerness,
                )
                done = _answer(self.engine, asked)
                text, num_prompt_tokens = done.text, done.stats.num_prompt_tokens
                num_bits = _num_bits(self.engine, asked, sample.expected)
                ended = {
                    "reason": done.stats.finish_reason,
                    "rule": done.rule,
                    "num_replaced": done.num_replaced,
                }
            self.results.add(key, judge(sample, text, num_prompt_tokens, num_bits), text, ended)
        for document in {_document(sample, way) for way in missing.values()}:
            self.engine.forget(document)

    def _request_at(self, position: Position) -> CompletionRequest:
        sample = position.sample
        return CompletionRequest(
            sample.prefix,
            sample.suffix,
            sample.language,
            index=self._index_of(position),
            indexed_as=sample.document.partition("/")[2],
            max_tokens=_MAX_TOKENS,
            deadline_ms=0,
            patience_ms=float("inf"),
        )

    def _index_of(self, position: Position) -> NgramIndex:
        project = position.root / position.sample.document.partition("/")[0]
        if project not in self.projects:
            self.projects[project] = repository_index(project, self.engine.tokenizer.encode_many)
        return self.projects[project]


def _document(sample: Sample, way: Way) -> str:
    """Ways with the same prompt ask about the same document, so that keys and values are computed once."""
    return f"{'plain' if way.is_plain else '+'.join(way.ingredients_in(sample.language))} {sample.document}"


def _answer(engine: CompletionEngine, request: CompletionRequest) -> Completion:
    """The suggestion that an editor would show, however long it takes."""
    engine.prepare_context(request)
    return engine.complete(request)


def _num_bits(engine: CompletionEngine, request: CompletionRequest, expected: str) -> float:
    """Bits of the original text for the target."""
    probabilities = probabilities_of(engine.write(request, NoRules(), 1), expected)
    return round(-sum(math.log2(max(one, 1e-12)) for one in probabilities), 2)


def plain_text(engine: CompletionEngine, sample: Sample, document: str) -> tuple[str, int]:
    """The target's own text, up to a line end, after `<prefix> before <suffix> after <middle>`.

    No word is healed. Returns it with the length of the prompt.
    """
    tokenizer, fim = engine.tokenizer, engine.tokenizer.fim
    window = TextWindow.for_device(engine.target.device.type)
    before = tokenizer.encode(sample.prefix[-window.num_before :])
    after = tokenizer.encode(sample.suffix[: window.num_after])
    tokens = [fim.prefix, *before, fim.suffix, *after, fim.middle] if fim else before
    request = CompletionRequest(sample.prefix, sample.suffix, sample.language, document)
    writing = engine.write(request, FirstLine(), _MAX_TOKENS, Prompt(tuple(tokens), b""))
    return writing.written.text, len(tokens)


COLUMNS = (
    "",
    "positions",
    "exact",
    "similarity",
    "parses",
    "whole",
    "bits",
    "prompt tokens",
    "pairs won, lost",
    "bits lost",
)


def table_rows(results: QualityResults) -> list[list[str]]:
    """A row for each model, language and way."""
    rows = []
    for row in results.rows(USUAL.name):
        figures = [f"{row[name]:.3f}" for name in ("exact", "similarity", "parses", "whole", "bits")]
        split = f"{row['num_won']}, {row['num_lost']} (p {row['chance']:.2g})" if "num_won" in row else ""
        name = f"{row['model'].partition(' ')[0]}, {row['language']}: {row['way']}"
        bits = f"{row['bits_lost']:+.2f} ± {row['bits_error']:.2f}" if "bits_lost" in row else ""
        rows.append([name, str(row["num_positions"]), *figures, str(row["prompt_tokens"]), split, bits])
    return rows
