"""How often the first suggestion is the rest of the line that a person wrote, with and without ingredients.

One engine answers at the same positions in several ways, in turn: as an editor has it after a moment's rest,
with parts of that off, and with the plain prefix/suffix prompt that most tools build. Ways that show the
target the same prompt share its keys and values. The files of a position's project are indexed; its own is
known as an editor has it: without the rest of the line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from completion_engine.context.choosing import INGREDIENTS
from completion_engine.decoding.run import NoRules
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.windows import PREFIX_CHARS, SUFFIX_CHARS
from completion_engine.request import CompletionRequest, MemoryWish, RepositoryContext
from completion_engine.suggestions.rules import Stop
from lsp_server.tools.bench.context import context_of
from lsp_server.tools.bench.judging import judge
from lsp_server.tools.bench.prompts import Position, Sample, repository_index
from lsp_server.tools.bench.quality_results import Asked, QualityResults
from ngram_cache import NgramIndex

_MAX_TOKENS = 48
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Way:
    """A way of asking: what stands in front, whether memory is mixed in; or the plain prompt."""

    name: str
    ingredients: tuple[str, ...] = INGREDIENTS
    memory: MemoryWish = "on"
    is_plain: bool = False


PLAIN = Way("plain prefix/suffix prompt", (), "off", is_plain=True)
WHOLE = Way("with everything")
SWITCHES = (*INGREDIENTS, "context", "memory")


def way_without(names: str) -> Way:
    """The way that lacks some of `SWITCHES`, joined by `+`. Raises UserError."""
    left_out = names.split("+")
    if unknown := [name for name in left_out if name not in SWITCHES]:
        raise UserError(f"Unknown: {unknown[0]}.", advice=f"Choose out of {', '.join(SWITCHES)}.")
    kept = () if "context" in left_out else tuple(name for name in INGREDIENTS if name not in left_out)
    return Way(f"without {' and '.join(left_out)}", kept, "off" if "memory" in left_out else "on")


class FirstLine(NoRules):
    """Writes one line."""

    def check(self, generated: str) -> Stop | None:
        """Stops behind the first line end."""
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
        for key, way in missing.items():
            if way.is_plain:
                text, num_prompt_tokens = plain_text(self.engine, sample, _document(sample, way))
                text = text.partition("\n")[0]
            else:
                if way.ingredients not in contexts:
                    project = sample.document.partition("/")[0]
                    contexts[way.ingredients] = context_of(self.engine, request, project, way.ingredients)
                text, num_prompt_tokens = _answer(
                    self.engine,
                    replace(
                        request,
                        document=_document(sample, way),
                        context=contexts[way.ingredients],
                        repository_memory=way.memory,
                    ),
                )
            self.results.add(key, judge(sample, text, num_prompt_tokens), text)
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
    return f"{'plain' if way.is_plain else '+'.join(way.ingredients)} {sample.document}"


def _answer(engine: CompletionEngine, request: CompletionRequest) -> tuple[str, int]:
    """The suggestion that an editor would show, however long it takes, and the length of its prompt."""
    engine.prepare_context(request)
    completion = engine.complete(request)
    return completion.text, completion.stats.num_prompt_tokens


def plain_text(engine: CompletionEngine, sample: Sample, document: str) -> tuple[str, int]:
    """What the target alone writes, up to a line's end, behind `<prefix> before <suffix> after <middle>`.

    Nothing is healed. And the length of the prompt.
    """
    tokenizer, fim, kind = engine.tokenizer, engine.tokenizer.fim, engine.target.device.type
    before = tokenizer.encode(sample.prefix[-PREFIX_CHARS[kind] :])
    after = tokenizer.encode(sample.suffix[: SUFFIX_CHARS[kind]])
    tokens = [fim.prefix, *before, fim.suffix, *after, fim.middle] if fim else before
    request = CompletionRequest(sample.prefix, sample.suffix, sample.language, document)
    writing = engine.write(request, FirstLine(), _MAX_TOKENS, Prompt(tuple(tokens), b""))
    return writing.written.text, len(tokens)


COLUMNS = ("", "positions", "exact", "similarity", "no worse to parse", "prompt tokens", "pairs won, lost")


def table_rows(results: QualityResults) -> list[list[str]]:
    """A row for each model, language and way."""
    rows = []
    for row in results.rows(WHOLE.name):
        figures = [f"{row[name]:.3f}" for name in ("exact", "similarity", "parses")]
        split = f"{row['num_won']}, {row['num_lost']} (p {row['chance']:.2g})" if "num_won" in row else ""
        name = f"{row['model'].partition(' ')[0]}, {row['language']}: {row['way']}"
        rows.append([name, str(row["num_positions"]), *figures, str(row["prompt_tokens"]), split])
    return rows
